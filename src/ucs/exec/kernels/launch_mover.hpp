// Launches a mover's kernel; callable from C++ code.
#pragma once

#include "ucs/exec/kernels/loaded_kernels.hpp"
#include "ucs/exec/kernels/plan/order_plan.hpp"
#include "ucs/gpu/mover_desk.hpp"

namespace cuda_nc::exec {

// What the kernel's thread blocks share, in GPU memory, zero before the first launch.
struct mover_state {
    gpu::order_line boxes[mover_thread_blocks];  // the piece that a thread block moves next
    uint64_t words[mover_thread_blocks];         // block_word: what a thread block says of itself
};
// `done`: pieces that it has ended, of all launches. `instance`: the last launch that it runs in.
CUDA_NC_HD uint64_t block_word(uint32_t done, uint32_t instance) {
    return uint64_t{instance} << 32 | done;
}

struct mover_arguments {
    gpu::mover_memory *shared = nullptr;
    mover_state *state = nullptr;
    gpu::mover_launch how;
    uint64_t stay_ns = 0;      // after which it leaves although orders keep coming
    uint64_t patience_ns = 0;  // of the thread blocks with each other, after which they give up
};

// Enqueues it on `stream` of the current device.
cudaError_t launch_mover(loaded_kernels &kernels, const mover_arguments &arguments,
                         cudaStream_t stream) noexcept;
// Moves orders [first, first + number), 2 to gpu::most_of_set, and leaves. `most_blocks`: of thread
// blocks, each of which has a multiprocessor.
cudaError_t launch_set(loaded_kernels &kernels, gpu::mover_memory *shared,
                       const uint32_t (*words)[gpu::order_words], size_t number, uint64_t first,
                       uint32_t most_blocks, cudaStream_t stream) noexcept;
// Loads them there, which may wait for kernels that run on the device.
cudaError_t load_mover(loaded_kernels &to) noexcept;

}  // namespace cuda_nc::exec
