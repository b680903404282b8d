// Datatypes that the subtests send: one of each shape that the product treats differently, in sizes
// that go by different protocols of UCX.
#pragma once

#include <vector>

#include "support/made_type.hpp"

namespace mpi_test {

constexpr int num_shapes = 8;

// Committed, not contiguous, about `bytes` packed (at least one element); the same on every rank.
made_type sample_type(int shape, int64_t bytes);

struct sample {
    made_type type;
    int count;
};

// Every shape in three sizes, a few of several megabytes, and a count of 0.
const std::vector<sample> &samples();
// A few of them, for subtests that send each many times.
const std::vector<sample> &few_samples();

}  // namespace mpi_test
