// The stencil, and packing by hand, as CUDA kernels: what a careful application writer would write.
// Halos have a stream of their own with a higher priority than the interior's, so that no thread
// block of the interior that has not begun yet delays them.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "bench/stencil_work.hpp"

namespace {

void check(cudaError_t result, const char *what) {
    if (result != cudaSuccess) {
        std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(result));
        std::exit(2);
    }
}

unsigned blocks_of(int elements, int a_block) {
    return unsigned((elements + a_block - 1) / a_block);
}

__device__ double next_at(const double *now, size_t at, size_t row, size_t plane) {
    return stencil_next(now[at], now[at - plane], now[at + plane], now[at - row], now[at + row],
                        now[at - 1], now[at + 1]);
}

// A thread walks up to `planes` planes along x and keeps three of their elements in registers.
__global__ void relax(const double *__restrict__ now, double *__restrict__ next,
                      stencil_region region, int across, int planes) {
    const int z = region.from[2] + int(blockIdx.x * blockDim.x + threadIdx.x);
    const int y = region.from[1] + int(blockIdx.y * blockDim.y + threadIdx.y);
    const int begin = region.from[0] + int(blockIdx.z) * planes;
    if (z >= region.to[2] || y >= region.to[1]) {
        return;
    }
    const size_t row = size_t(across), plane = row * row;
    size_t at = size_t(begin) * plane + size_t(y) * row + size_t(z);
    double low = now[at - plane], centre = now[at];
    const int end = min(begin + planes, region.to[0]);
#pragma unroll 4
    for (int x = begin; x < end; ++x, at += plane) {
        const double high = now[at + plane];
        next[at] =
            stencil_next(centre, low, high, now[at - row], now[at + row], now[at - 1], now[at + 1]);
        low = centre;
        centre = high;
    }
}

// Where a face's elements lie: `fast` and `slow` are the distances between its columns and rows.
struct face_shape {
    size_t fast, slow;
    size_t at[2];  // the first element of the low and of the high one
    int box;
};

// Both faces at once. Neighbouring threads take neighbouring columns.
__global__ void relax_faces(const double *__restrict__ now, double *__restrict__ next,
                            face_shape shape, int across) {
    const int column = int(blockIdx.x * blockDim.x + threadIdx.x);
    const int line = int(blockIdx.y * blockDim.y + threadIdx.y);
    if (column >= shape.box || line >= shape.box) {
        return;
    }
    const size_t row = size_t(across), plane = row * row;
    const size_t at =
        shape.at[blockIdx.z] + size_t(line) * shape.slow + size_t(column) * shape.fast;
    next[at] = next_at(now, at, row, plane);
}

// A thread moves a word of one or two columns; blockIdx.z says of which face. Double columns need
// an even edge: then words are aligned in contiguous memory, and in the field too where columns are
// neighbours there (x and y).
template <bool packs, bool pairs>
__global__ void move_faces(double *__restrict__ field, double *__restrict__ faces, face_shape shape,
                           size_t face_pitch) {
    constexpr int width = pairs ? 2 : 1;
    const int column = int(blockIdx.x * blockDim.x + threadIdx.x) * width;
    const int line = int(blockIdx.y * blockDim.y + threadIdx.y);
    if (column >= shape.box || line >= shape.box) {
        return;
    }
    double *laid_out =
        field + shape.at[blockIdx.z] + size_t(line) * shape.slow + size_t(column) * shape.fast;
    double *packed = faces + blockIdx.z * face_pitch + size_t(line) * size_t(shape.box) + column;
    if constexpr (!pairs) {
        if constexpr (packs) {
            *packed = *laid_out;
        } else {
            *laid_out = *packed;
        }
    } else {
        auto *both = reinterpret_cast<double2 *>(packed);
        const bool neighbours = shape.fast == 1;
        if constexpr (packs) {
            *both = neighbours ? *reinterpret_cast<const double2 *>(laid_out)
                               : double2{laid_out[0], laid_out[shape.fast]};
        } else if (neighbours) {
            *reinterpret_cast<double2 *>(laid_out) = *both;
        } else {
            const double2 value = *both;
            laid_out[0] = value.x;
            laid_out[shape.fast] = value.y;
        }
    }
}

class gpu_work : public stencil_work {
  public:
    explicit gpu_work(const stencil_grid &grid) : grid_(grid) {
        int devices = 0, least = 0, most = 0;
        check(cudaGetDeviceCount(&devices), "cudaGetDeviceCount");
        check(cudaSetDevice(grid.rank % devices), "cudaSetDevice");
        check(cudaGetDeviceProperties(&properties_, grid.rank % devices), "device properties");
        check(cudaDeviceGetStreamPriorityRange(&least, &most), "priorities");
        check(cudaStreamCreateWithPriority(&interior_, cudaStreamNonBlocking, least), "stream");
        check(cudaStreamCreateWithPriority(&halo_, cudaStreamNonBlocking, most), "stream");
        check(cudaEventCreate(&begin_), "event");
        check(cudaEventCreate(&end_), "event");
    }
    ~gpu_work() override {
        cudaEventDestroy(begin_);
        cudaEventDestroy(end_);
        cudaStreamDestroy(interior_);
        cudaStreamDestroy(halo_);
    }

    std::string processor() const override { return properties_.name; }

    void start_interior(stencil_buffer &now, stencil_buffer &next) override {
        const stencil_region region = grid_.interior();
        const int planes = grid_.box >= 256 ? 32 : 8;
        const dim3 threads(64, 4);
        const dim3 blocks(blocks_of(region.to[2] - region.from[2], 64),
                          blocks_of(region.to[1] - region.from[1], 4),
                          blocks_of(region.to[0] - region.from[0], planes));
        check(cudaEventRecord(begin_, interior_), "event");
        if (grid_.box > 2) {
            relax<<<blocks, threads, 0, interior_>>>(now.data(), next.data(), region,
                                                     grid_.across(), planes);
            check(cudaGetLastError(), "the interior's kernel");
        }
        check(cudaEventRecord(end_, interior_), "event");
    }
    void start_boundary(stencil_buffer &now, stencil_buffer &next) override {
        relax_faces<<<blocks(grid_.box), threads(), 0, halo_>>>(
            now.data(), next.data(), shape(&stencil_grid::face), grid_.across());
        check(cudaGetLastError(), "the boundary's kernel");
    }
    void start_pack(stencil_buffer &field, stencil_buffer &faces) override {
        move<true>(field.data(), faces.data(), shape(&stencil_grid::face));
    }
    void start_unpack(stencil_buffer &faces, stencil_buffer &field) override {
        move<false>(field.data(), faces.data() + 2 * grid_.face_pitch(),
                    shape(&stencil_grid::halo));
    }
    void wait_halo() override { check(cudaStreamSynchronize(halo_), "the halo's stream"); }
    void wait_all() override { check(cudaDeviceSynchronize(), "the GPU"); }
    double interior_us() override {
        float milliseconds = 0;
        check(cudaEventElapsedTime(&milliseconds, begin_, end_), "time");
        return milliseconds * 1e3;
    }

  private:
    static dim3 threads() { return dim3(32, 8); }
    dim3 blocks(int columns) const {
        return dim3(blocks_of(columns, 32), blocks_of(grid_.box, 8), 2);
    }
    face_shape shape(stencil_region (stencil_grid::*which)(stencil_side) const) const {
        const size_t row = size_t(grid_.across()), plane = row * row;
        face_shape made = {};
        made.fast = grid_.dimension == 2 ? row : 1;
        made.slow = grid_.dimension == 0 ? row : plane;
        made.box = grid_.box;
        for (int side = 0; side < 2; ++side) {
            const stencil_region region = (grid_.*which)(stencil_side(side));
            made.at[side] = grid_.index(region.from[0], region.from[1], region.from[2]);
        }
        return made;
    }
    template <bool packs>
    void move(double *field, double *faces, const face_shape &shape) {
        if (grid_.box % 2 == 0) {
            move_faces<packs, true><<<blocks(grid_.box / 2), threads(), 0, halo_>>>(
                field, faces, shape, grid_.face_pitch());
        } else {
            move_faces<packs, false><<<blocks(grid_.box), threads(), 0, halo_>>>(
                field, faces, shape, grid_.face_pitch());
        }
        check(cudaGetLastError(), packs ? "the pack kernel" : "the unpack kernel");
    }

    const stencil_grid grid_;
    cudaDeviceProp properties_;
    cudaStream_t interior_, halo_;
    cudaEvent_t begin_, end_;
};

}  // namespace

std::unique_ptr<stencil_work> stencil_work::make_gpu(const stencil_grid &grid) {
    return std::make_unique<gpu_work>(grid);
}
