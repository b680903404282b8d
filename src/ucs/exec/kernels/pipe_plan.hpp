// What one side of a pipe moves, chunk by chunk: the kernel's arguments and its index code.
#pragma once

#include "ucs/exec/kernels/policy.hpp"
#include "ucs/gpu/pipe.hpp"

namespace cuda_nc::exec {

// A message of at most max_pipe_length bytes crosses the range of 32-bit offsets once at most.
constexpr uint32_t max_pipe_parts = 2;

struct pipe_arguments {
    gpu::pipe_geometry geometry;
    gpu::direction dir{};
    uint32_t num_parts = 0;
    uint64_t length = 0;  // bytes
    uint64_t sequence = 0, turn = 0;
    uint64_t patience_ns = 0;
    char *ring = nullptr, *flags = nullptr, *credits = nullptr;
    gpu::pipe_state *state = nullptr;
    gpu::pipe_report *report = nullptr;
    uint64_t begin[max_pipe_parts] = {};  // of each part, bytes from the message's first
    part parts[max_pipe_parts];
};

struct pipe_plan {
    pipe_arguments arguments;
    kernel_choice mover;  // serves every part
};

// False: the parts of the layout are more than max_pipe_parts.
bool plan_pipe(const gpu::pipe_work &work, pipe_plan *plan_p) noexcept;

// Narrows *piece_p, a copy of part `which`, to what lies in the lane's k-th chunk, to or from that
// chunk's slot of the ring; false where nothing does.
CUDA_NC_KERNEL bool pipe_piece(const pipe_arguments &a, uint32_t lane, uint32_t k, uint32_t which,
                               part *piece_p) {
    const uint32_t size = a.geometry.chunk_size;
    const uint64_t chunk = (uint64_t{k} * a.geometry.lanes + lane) * size;
    const part &whole = a.parts[which];
    const uint64_t whole_end = a.begin[which] + whole.length;
    uint64_t end = chunk + size < a.length ? chunk + size : a.length;
    end = end < whole_end ? end : whole_end;
    const uint64_t begin = chunk > a.begin[which] ? chunk : a.begin[which];
    if (begin >= end) {
        return false;
    }
    piece_p->first = whole.first + static_cast<uint32_t>(begin - a.begin[which]);
    piece_p->length = static_cast<uint32_t>(end - begin);
    piece_p->packed = a.ring + (uint64_t{lane} * a.geometry.depth + k % a.geometry.depth) * size +
                      (begin - chunk);
    return true;
}

}  // namespace cuda_nc::exec
