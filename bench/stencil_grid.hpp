// The box of one rank of the stencil benchmark: doubles in C order (x varies slowest) with a halo
// of width 1. The ranks stand in a ring along one dimension; the halos of the two others hold
// values that never change.
#pragma once

#include <cstddef>

#ifdef __CUDACC__
#define STENCIL_FUNCTION __host__ __device__
#else
#define STENCIL_FUNCTION
#endif

// Elements from[d] to to[d] - 1 of each dimension.
struct stencil_region {
    int from[3], to[3];
};

enum class stencil_side { low, high };

struct stencil_grid {
    int box;        // elements of an edge, without the halo; at least 2
    int dimension;  // of the ring; 0: x, 1: y, 2: z
    int rank, ranks;

    int across() const { return box + 2; }
    size_t elements() const { return size_t(across()) * across() * across(); }
    size_t face_elements() const { return size_t(box) * box; }
    // Of faces in a contiguous buffer: so that each is aligned to 128 bytes.
    size_t face_pitch() const { return (face_elements() + 15) / 16 * 16; }
    size_t index(int x, int y, int z) const {
        return (size_t(x) * across() + size_t(y)) * across() + size_t(z);
    }
    int neighbour(stencil_side side) const {
        return (rank + (side == stencil_side::low ? ranks - 1 : 1)) % ranks;
    }

    // What the neighbour on this side gets.
    stencil_region face(stencil_side side) const {
        const int at = side == stencil_side::low ? 1 : box;
        return part(at, at + 1);
    }
    // Where the neighbour's face goes.
    stencil_region halo(stencil_side side) const {
        const int at = side == stencil_side::low ? 0 : box + 1;
        return part(at, at + 1);
    }
    // What can be computed without the halo: all but the two faces.
    stencil_region interior() const { return part(2, box); }

  private:
    stencil_region part(int from, int to) const {
        stencil_region region = {{1, 1, 1}, {box + 1, box + 1, box + 1}};
        region.from[dimension] = from;
        region.to[dimension] = to;
        return region;
    }
};

// One element's next value. Factors are powers of two: the products are exact, so that fused and
// separate operations round alike on every processor.
STENCIL_FUNCTION inline double stencil_next(double centre, double low_x, double high_x,
                                            double low_y, double high_y, double low_z,
                                            double high_z) {
    return 0.25 * centre + 0.125 * (((low_x + high_x) + (low_y + high_y)) + (low_z + high_z));
}
