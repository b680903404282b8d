#include "bench/stencil_check.hpp"

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <utility>

namespace {

// In [1, 2), with all bits of the mantissa in use.
double value_of(uint64_t number) {
    number = (number ^ (number >> 30)) * 0xbf58476d1ce4e5b9u;
    number = (number ^ (number >> 27)) * 0x94d049bb133111ebu;
    number ^= number >> 31;
    return 1 + double(number >> 12) / double(uint64_t(1) << 52);
}

int around(int value, int size) {
    return ((value % size) + size) % size;
}

// Visits the elements of a region, in the order of memory.
template <class Function>
void walk(const stencil_region &region, const Function &visit) {
    for (int x = region.from[0]; x < region.to[0]; ++x) {
        for (int y = region.from[1]; y < region.to[1]; ++y) {
            for (int z = region.from[2]; z < region.to[2]; ++z) {
                visit(x, y, z);
            }
        }
    }
}

// A piece of the ring of all boxes, or the whole of it, closed to a ring. What is wrong at the seam
// of a piece comes one element nearer with each step.
class ring_piece {
  public:
    ring_piece(const stencil_grid &grid, int steps) : grid_(grid) {
        const int whole = grid.ranks * grid.box, margin = steps + 1;
        const bool all = whole <= grid.box + 2 * margin;
        length_ = all ? whole : grid.box + 2 * margin;
        first_ = all ? 0 : grid.rank * grid.box - margin;
        for (int d = 0; d < 3; ++d) {
            sizes_[d] = d == grid.dimension ? length_ : grid.across();
        }
    }
    size_t elements() const { return size_t(sizes_[0]) * size_t(sizes_[1]) * size_t(sizes_[2]); }
    void fill() {
        const int whole = grid_.ranks * grid_.box;
        values_.resize(elements());
        walk({{0, 0, 0}, {sizes_[0], sizes_[1], sizes_[2]}}, [&](int x, int y, int z) {
            int at[3] = {x, y, z};
            at[grid_.dimension] = around(first_ + at[grid_.dimension], whole);
            uint64_t number = 0;
            for (int d = 0; d < 3; ++d) {
                number = number * uint64_t(whole + grid_.across()) + uint64_t(at[d]);
            }
            values_[place(x, y, z)] = value_of(number + 1);
        });
        old_ = values_;  // the halos that never change are in both
    }
    void step() {
        std::swap(old_, values_);
        stencil_region inner = {{1, 1, 1}, {sizes_[0] - 1, sizes_[1] - 1, sizes_[2] - 1}};
        inner.from[grid_.dimension] = 0;
        inner.to[grid_.dimension] = length_;
        int low[3], high[3];
        walk(inner, [&](int x, int y, int z) {
            const int at[3] = {x, y, z};
            for (int d = 0; d < 3; ++d) {
                low[d] = at[d] == 0 ? sizes_[d] - 1 : at[d] - 1;
                high[d] = at[d] == sizes_[d] - 1 ? 0 : at[d] + 1;
            }
            const double along_x = old_[place(low[0], y, z)] + old_[place(high[0], y, z)];
            const double along_y = old_[place(x, low[1], z)] + old_[place(x, high[1], z)];
            const double along_z = old_[place(x, y, low[2])] + old_[place(x, y, high[2])];
            values_[place(x, y, z)] = old_[place(x, y, z)] / 4 + (along_x + along_y + along_z) / 8;
        });
    }
    // Of an element of the rank's field.
    double value(int x, int y, int z) const {
        int at[3] = {x, y, z};
        at[grid_.dimension] =
            around(grid_.rank * grid_.box + at[grid_.dimension] - 1 - first_, length_);
        return values_[place(at[0], at[1], at[2])];
    }

  private:
    size_t place(int x, int y, int z) const {
        return (size_t(x) * size_t(sizes_[1]) + size_t(y)) * size_t(sizes_[2]) + size_t(z);
    }

    const stencil_grid grid_;
    int length_, first_, sizes_[3];
    std::vector<double> values_, old_;
};

bool inside(int at, const stencil_grid &grid) {
    return at >= 1 && at <= grid.box;
}

// How many of the coordinates lie in a halo.
int outside(const stencil_grid &grid, int x, int y, int z) {
    return !inside(x, grid) + !inside(y, grid) + !inside(z, grid);
}

std::vector<double> field_of(const stencil_grid &grid, const ring_piece &ring, bool exchanged) {
    std::vector<double> field(grid.elements());
    const int n = grid.across();
    walk({{0, 0, 0}, {n, n, n}}, [&](int x, int y, int z) {
        const int at[3] = {x, y, z};
        const size_t element = grid.index(x, y, z);
        const bool in_halo = !inside(at[grid.dimension], grid);
        const bool comes = exchanged && outside(grid, x, y, z) == 1;
        field[element] = in_halo && !comes ? -double(element) - 1 : ring.value(x, y, z);
    });
    return field;
}

}  // namespace

std::vector<double> initial_field(const stencil_grid &grid) {
    ring_piece ring(grid, 0);
    ring.fill();
    return field_of(grid, ring, false);
}

std::vector<double> expected_field(const stencil_grid &grid, int steps) {
    ring_piece ring(grid, steps);
    ring.fill();
    for (int i = 0; i < steps; ++i) {
        ring.step();
    }
    return field_of(grid, ring, true);
}

double expected_work(const stencil_grid &grid, int steps) {
    return double(ring_piece(grid, steps).elements()) * steps;
}

std::vector<double> pattern_of_face(const stencil_grid &grid, int rank, stencil_side side) {
    std::vector<double> values(grid.face_elements());
    const uint64_t face = uint64_t(rank) * 2 + uint64_t(side) + 1;
    for (size_t i = 0; i < values.size(); ++i) {
        values[i] = value_of(face << 32 | i);
    }
    return values;
}

std::vector<double> elements_of(const stencil_grid &grid, const stencil_region &region,
                                const std::vector<double> &field) {
    std::vector<double> values;
    walk(region, [&](int x, int y, int z) { values.push_back(field[grid.index(x, y, z)]); });
    return values;
}

void set_elements(const stencil_grid &grid, const stencil_region &region,
                  const std::vector<double> &values, std::vector<double> *field_p) {
    size_t i = 0;
    walk(region, [&](int x, int y, int z) { (*field_p)[grid.index(x, y, z)] = values[i++]; });
}

size_t count_wrong(const std::vector<double> &found, const std::vector<double> &expected,
                   size_t *first_p) {
    size_t wrong = 0;
    for (size_t i = expected.size(); i-- > 0;) {
        if (std::memcmp(&found[i], &expected[i], sizeof(double)) != 0) {
            *first_p = i;
            ++wrong;
        }
    }
    return wrong;
}

std::string place_of(const stencil_grid &grid, size_t element) {
    const auto n = size_t(grid.across());
    const int x = int(element / n / n), y = int(element / n % n), z = int(element % n);
    static const char *const parts[] = {"inside", "in the halo", "at an edge of the halo",
                                        "at a corner of the halo"};
    char text[100];
    std::snprintf(text, sizeof(text), "element (%d, %d, %d) %s", x, y, z,
                  parts[outside(grid, x, y, z)]);
    return text;
}
