// Orders for a mover's kernel: how one is written into a line of the ring and its body, how it is
// read again, and how it is cut. Same code on CPU and GPU, so that tests can run all of it.
#pragma once

#include "ucs/exec/kernels/plan/pipe_plan.hpp"
#include "ucs/gpu/mover.hpp"
#include "ucs/gpu/order_ring.hpp"

namespace cuda_nc::exec {

constexpr uint32_t mover_threads = 512;       // of a thread block that moves
constexpr uint32_t mover_thread_blocks = 16;  // at most 24: a warp deals for all of them
constexpr uint32_t order_slot = 16 << 10;     // bytes of shared memory between the two sides
constexpr uint32_t shortest_piece = 4 << 10;  // bytes: smaller ones are not shared
constexpr uint32_t longest_piece = 64 << 10;  // so that a thread block is not busy for long

// By which code an order's parts are moved. Fewer kinds than pipes have, as all are in one kernel:
// strided layouts of one and two dims have their own locators, lists of blocks of different lengths
// move by units.
struct order_mover {
    method how = method::words;  // words, windows or units
    locator_kind locator = locator_kind::any_dims;
    uint8_t word_log2 = 0;
};

// What is to be moved: one part where both sides are laid out alike, else the source's and the
// target's.
struct order_body {
    order_mover mover;
    uint32_t num_parts = 0;
    uint32_t first[2] = {};  // of the parts, before they are narrowed
    part parts[2];
};

// Places in a line. The thread block that deals orders out fills in which piece another one moves.
namespace order_word {
constexpr uint32_t header = 0, length = 1;
constexpr uint32_t place = 2;                       // in the ring: of the body and the end word
constexpr uint32_t begin = 3, end = 4, pieces = 5;  // of the piece; how many the order has
constexpr uint32_t base = 6, packed = 8, first = 10, block_length = 11, dims = 12;
constexpr uint32_t most_dims = 3;
constexpr uint32_t number = 21;  // of the order, two words
}  // namespace order_word

enum class order_kind : uint32_t { leave, in_line, in_body };

CUDA_NC_KERNEL uint32_t order_header(order_kind kind, const order_mover &mover, uint32_t dims) {
    return static_cast<uint32_t>(kind) | static_cast<uint32_t>(mover.how) << 4 |
           static_cast<uint32_t>(mover.locator) << 8 | uint32_t{mover.word_log2} << 12 | dims << 16;
}
CUDA_NC_KERNEL order_kind kind_of_order(uint32_t header) {
    return static_cast<order_kind>(header & 15);
}

// Writes `one` into *words_p, and into *body_p where it does not fit there. False: the kernel does
// not serve it. `scratch` is overwritten.
bool plan_order(const gpu::move_order &one, pipe_plan *scratch, uint32_t (&words)[gpu::order_words],
                order_body *body_p) noexcept;

CUDA_NC_KERNEL fast_divide32 divide32_by(uint32_t divisor) {
    fast_divide32 made;
    made.divisor = divisor;
    made.shift = 0;
    while (made.shift < 31 && (1u << made.shift) < divisor) {
        ++made.shift;
    }
    made.magic = static_cast<uint32_t>((uint64_t{1} << (31 + made.shift)) / divisor) + 1;
    return made;
}

// Reads the order of a line whose header says in_line. `body` is default-constructed, or was read
// from another line.
CUDA_NC_KERNEL void read_order_line(const uint32_t *words, order_body *body) {
    const uint32_t header = words[order_word::header];
    auto address = [&](uint32_t at) {
        return reinterpret_cast<char *>(
            static_cast<uintptr_t>(uint64_t{words[at + 1]} << 32 | words[at]));
    };
    body->mover.how = static_cast<method>(header >> 4 & 15);
    body->mover.locator = static_cast<locator_kind>(header >> 8 & 15);
    body->mover.word_log2 = static_cast<uint8_t>(header >> 12 & 15);
    body->num_parts = 1;
    body->first[0] = words[order_word::first];
    part &p = body->parts[0];
    p.base = address(order_word::base);
    p.packed = address(order_word::packed);
    p.first = words[order_word::first];
    p.length = words[order_word::length];
    p.block_length = words[order_word::block_length];
    p.by_block = divide32_by(p.block_length);
    p.dir = gpu::direction::copy;
    p.list = false;
    p.num_blocks = 1;
    p.num_dims = header >> 16;
    for (uint32_t d = 0; d < p.num_dims; ++d) {
        const uint32_t *dim = words + order_word::dims + 3 * d;
        p.dims[d].stride = static_cast<int64_t>(uint64_t{dim[1]} << 32 | dim[0]);
        p.dims[d].by_count = divide32_by(dim[2]);
    }
}

// How many pieces an order is cut into where `idle` thread blocks wait for one, and how long they
// are (the last one may be shorter).
struct order_cut {
    uint32_t pieces, length;
};
CUDA_NC_KERNEL order_cut cut_order(uint32_t length, uint32_t idle) {
    const uint32_t least = (length + longest_piece - 1) / longest_piece;
    const uint32_t most = min_u32((length + shortest_piece - 1) / shortest_piece, idle);
    const uint32_t wanted = least > most ? least : most;
    const uint32_t share = (length + wanted - 1) / wanted;
    const uint32_t piece = (share + shortest_piece - 1) / shortest_piece * shortest_piece;
    return {(length + piece - 1) / piece, piece};
}

// Narrows part `which` to bytes [begin, end) of the order, which go through `slot` where source and
// target are not laid out alike.
CUDA_NC_KERNEL void narrow_order(order_body *body, uint32_t which, uint32_t begin, uint32_t end,
                                 char *slot) {
    part &p = body->parts[which];
    p.first = body->first[which] + begin;
    p.length = end - begin;
    if (p.dir != gpu::direction::copy) {
        p.packed = slot;
    }
}

}  // namespace cuda_nc::exec
