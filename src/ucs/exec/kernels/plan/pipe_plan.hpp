// The arguments of a pipe's kernel, and its index arithmetic. One launch serves several sides of
// pipes, because a launch costs the CPU as much as all else of a message.
#pragma once

#include "ucs/exec/kernels/plan/policy.hpp"
#include "ucs/gpu/pipe.hpp"

namespace cuda_nc::exec {

// A message of at most max_pipe_length bytes leaves the range of 32-bit offsets at most once.
constexpr uint32_t max_pipe_parts = 2;

// A side has an entry for each part; entries after the first use `begin` and `what` alone. A pull
// has the parts of the source, then those of the target: for each chunk, those are moved one after
// the other. Where both are laid out alike it has copies instead.
struct pipe_arguments {
    gpu::pipe_geometry geometry;
    gpu::direction dir{};
    bool resumes = false;
    bool pulls = false;
    bool into_own_memory = false;
    uint32_t num_parts = 0;
    uint32_t chunks = 0,
             longer_channels = 0;  // of a channel; the first longer_channels have one more
    uint64_t length = 0;           // bytes
    uint64_t sequence = 0, launch_number = 0;
    uint64_t patience_ns = 0;
    char *ring = nullptr, *flags = nullptr, *credits = nullptr;
    gpu::pipe_state *state = nullptr;
    gpu::pipe_report *report = nullptr;
    uint64_t begin = 0;  // of the part, bytes from the message's first
    part what;
};

// A launch takes longer with more than 2 KB of parameters.
constexpr uint32_t max_pipe_entries = gpu::max_pipe_sides;

struct pipe_batch {
    uint32_t num_entries = 0;
    // Thread blocks from this one on, one a channel, serve the entry's side. Further entries of a
    // side have the first thread block after the side's.
    uint32_t first_thread_block[max_pipe_entries] = {};
    pipe_arguments entries[max_pipe_entries];
};
static_assert(sizeof(pipe_batch) <= 2048);

// A pull that is alone in its launch: one part, or one of the source and one of the target.
struct lone_pull {
    pipe_arguments entries[2];
};

struct pipe_plan {
    pipe_batch batch;
    uint32_t num_thread_blocks = 0;
    kernel_choice mover;     // serves every part
    uint32_t slot_size = 0;  // bytes of shared memory for a pull's chunk
};

// Adds one side. False: one kernel cannot serve it together with the sides already there; in an
// empty plan: a layout has more than max_pipe_parts parts.
bool add_pipe(const gpu::pipe_work &work, pipe_plan *plan_p) noexcept;

// log2 of the bytes of a unit, a warp's share of a piece, so that all warps have one where that
// pays. Larger units than 2^12 bytes gain nothing.
CUDA_NC_KERNEL uint32_t unit_log2_of_piece(uint32_t length, uint32_t warps) {
    constexpr uint32_t least = 9, most = 12;
    const uint32_t share = length / warps;
    const uint32_t log2 = share == 0 ? least : log2_floor(share);
    return log2 < least ? least : log2 > most ? most : log2;
}

// The first entry of the side that `thread_block` serves.
CUDA_NC_KERNEL uint32_t pipe_entry(const pipe_batch &b, uint32_t thread_block) {
    uint32_t entry = 0;
    for (uint32_t i = 1; i < b.num_entries; ++i) {
        entry = thread_block >= b.first_thread_block[i] ? i : entry;
    }
    return entry;
}

CUDA_NC_KERNEL uint32_t pipe_chunks(const pipe_arguments &a, uint32_t channel) {
    return a.chunks + (channel < a.longer_channels ? 1 : 0);
}

// Where the channel's k-th chunk lies in the ring.
CUDA_NC_KERNEL char *pipe_slot(const pipe_arguments &a, uint32_t channel, uint32_t k) {
    const uint32_t depth = a.geometry.depth;
    return a.ring +
           (uint64_t{channel} * depth + (k < depth ? k : k % depth)) * a.geometry.chunk_size;
}

// Narrows *piece_p, a copy of the part of entry `at`, to the bytes in the channel's k-th chunk of
// side `a`, moved to or from that chunk's slot. False: there are none.
CUDA_NC_KERNEL bool pipe_piece(const pipe_arguments &a, const pipe_arguments &at, uint32_t channel,
                               uint32_t k, char *slot, part *piece_p) {
    const uint32_t size = a.geometry.chunk_size;
    const uint64_t chunk = (uint64_t{k} * a.geometry.channels + channel) * size;
    const uint64_t whole_end = at.begin + at.what.length;
    uint64_t end = chunk + size < a.length ? chunk + size : a.length;
    end = end < whole_end ? end : whole_end;
    const uint64_t begin = chunk > at.begin ? chunk : at.begin;
    if (begin >= end) {
        return false;
    }
    piece_p->first = at.what.first + static_cast<uint32_t>(begin - at.begin);
    piece_p->length = static_cast<uint32_t>(end - begin);
    if (at.what.dir != gpu::direction::copy) {
        piece_p->packed = slot + (begin - chunk);
    }
    return true;
}

}  // namespace cuda_nc::exec
