// What a field must hold, computed by plain loops without any message.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "bench/stencil_grid.hpp"

// The field before the first step. What neighbours send is missing: those elements have values that
// occur nowhere else.
std::vector<double> initial_field(const stencil_grid &grid);

// The field after so many steps and an exchange. Edges of the halo, where nothing comes, are as in
// initial_field().
std::vector<double> expected_field(const stencil_grid &grid, int steps);
// Elements that expected_field() computes.
double expected_work(const stencil_grid &grid, int steps);

// What a rank sends to a side where it sends no part of the field.
std::vector<double> pattern_of_face(const stencil_grid &grid, int rank, stencil_side side);

// The elements of a region.
std::vector<double> elements_of(const stencil_grid &grid, const stencil_region &region,
                                const std::vector<double> &field);
void set_elements(const stencil_grid &grid, const stencil_region &region,
                  const std::vector<double> &values, std::vector<double> *field_p);

// How many elements differ in any bit, and the first of them.
size_t count_wrong(const std::vector<double> &found, const std::vector<double> &expected,
                   size_t *first_p);
std::string place_of(const stencil_grid &grid, size_t element);
