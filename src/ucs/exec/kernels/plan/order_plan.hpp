// Orders for a mover's kernel: how one is written into a line of the ring, how it is read again,
// and how it is cut. Same code on CPU and GPU, so that tests can run all of it.
//
// A line says all of an order: one block repeated over one or two dims, by words of 4 to 16 bytes,
// on both sides or on one with contiguous memory on the other. Code for other layouts was tried in
// the same kernel: with what it needs (descriptions fetched across the bus, more registers) it took
// 10 to 20 us where a launch takes 9 to 10 (one H100, bench/results/2026-11-24-h100-bursts.md).
#pragma once

#include "ucs/exec/kernels/move/divide32.hpp"
#include "ucs/exec/kernels/move/word.hpp"
#include "ucs/gpu/mover.hpp"
#include "ucs/gpu/order_ring.hpp"

namespace cuda_nc::exec {

constexpr uint32_t mover_threads = 512;       // of a thread block that moves
constexpr uint32_t mover_thread_blocks = 16;  // at most 32: a warp deals for all of them
constexpr uint32_t words_in_flight = 4;       // of a thread
constexpr uint32_t shortest_piece = 8 << 10;  // bytes: one thread block moves it in one round
constexpr uint32_t longest_piece = 64 << 10;  // so that a thread block is not busy for long
static_assert(gpu::longest_order <= uint64_t{gpu::most_order_pieces} * longest_piece &&
              mover_thread_blocks <= gpu::most_order_pieces);

// Places in a line. The thread block that deals orders out fills in which piece another one moves.
namespace order_word {
constexpr uint32_t header = 0, length = 1;
constexpr uint32_t place = 2;                       // in the ring: of the end word
constexpr uint32_t begin = 3, end = 4, pieces = 5;  // of the piece; how many the order has
constexpr uint32_t source = 6, target = 8, first = 10, block_length = 11, block_magic = 12;
constexpr uint32_t stride = 13, count = 15, count_magic = 16;  // of the first dim, ...
constexpr uint32_t next_stride = 17;                           // ... and of the second
constexpr uint32_t number = 21, piece = 22;  // low bits of the order's; of this piece, from 0
}  // namespace order_word
constexpr uint32_t most_line_dims = 2, least_line_word_log2 = 2;

enum class order_kind : uint32_t { leave, move };
// Which side of a line is contiguous.
enum class packed_side : uint32_t { none, source, target };

CUDA_NC_KERNEL uint32_t order_header(order_kind kind, uint32_t dims, uint32_t word_log2,
                                     packed_side packed) {
    return static_cast<uint32_t>(kind) | dims << 4 | word_log2 << 8 |
           static_cast<uint32_t>(packed) << 12;
}
CUDA_NC_KERNEL order_kind kind_of_order(uint32_t header) {
    return static_cast<order_kind>(header & 15);
}
CUDA_NC_KERNEL uint32_t dims_of_order(uint32_t header) {
    return header >> 4 & 15;
}
CUDA_NC_KERNEL uint32_t word_log2_of_order(uint32_t header) {
    return header >> 8 & 15;
}
CUDA_NC_KERNEL packed_side packed_side_of_order(uint32_t header) {
    return static_cast<packed_side>(header >> 12 & 3);
}
// Of moves alone: a bit of the header beside those of order_header().
constexpr uint32_t into_own_memory_bit = 1u << 16;
CUDA_NC_KERNEL bool is_into_own_memory(uint32_t header) {
    return (header & into_own_memory_bit) != 0;
}

// Writes `one` into *words_p. False: the kernel does not serve it.
bool plan_order(const gpu::move_order &one, uint32_t (*words_p)[gpu::order_words]) noexcept;

// What a line says of where the bytes lie. Each thread makes its own, in registers: so nothing of
// it is divided or indexed there.
struct order_line_place {
    const char *source;  // displacement 0; of a contiguous side offset 0
    char *target;
    packed_side packed;
    uint32_t first;  // of the order's offsets
    fast_divide32 by_block, by_count;
    int64_t stride, next_stride;

    // Of offset p, which lies at displacement `at` of a layout.
    CUDA_NC_KERNEL int64_t source_at(uint32_t p, int64_t at) const {
        return packed == packed_side::source ? p : at;
    }
    CUDA_NC_KERNEL int64_t target_at(uint32_t p, int64_t at) const {
        return packed == packed_side::target ? p : at;
    }
    // Of offset p, for that many dims.
    template <uint32_t Dims>
    CUDA_NC_KERNEL int64_t displacement(uint32_t p) const {
        const uint32_t pass = by_block.quotient(p);
        const uint32_t in_block = by_block.remainder(p, pass);
        if constexpr (Dims == 1) {
            return static_cast<int64_t>(pass) * stride + in_block;
        } else {
            const uint32_t next = by_count.quotient(pass);
            return static_cast<int64_t>(by_count.remainder(pass, next)) * stride +
                   static_cast<int64_t>(next) * next_stride + in_block;
        }
    }
};
CUDA_NC_KERNEL order_line_place read_order_line(const uint32_t *words) {
    auto number = [&](uint32_t at) { return uint64_t{words[at + 1]} << 32 | words[at]; };
    auto divide = [&](uint32_t divisor_at, uint32_t magic_at) {
        fast_divide32 made;
        made.divisor = words[divisor_at];
        made.magic = words[magic_at];
        made.shift = log2_ceil(made.divisor);
        return made;
    };
    order_line_place line;
    line.source =
        reinterpret_cast<const char *>(static_cast<uintptr_t>(number(order_word::source)));
    line.target = reinterpret_cast<char *>(static_cast<uintptr_t>(number(order_word::target)));
    line.packed = packed_side_of_order(words[order_word::header]);
    line.first = words[order_word::first];
    line.by_block = divide(order_word::block_length, order_word::block_magic);
    line.by_count = divide(order_word::count, order_word::count_magic);
    line.stride = static_cast<int64_t>(number(order_word::stride));
    line.next_stride = static_cast<int64_t>(number(order_word::next_stride));
    return line;
}

// How many pieces an order is cut into where `idle` thread blocks wait for one, and how long they
// are (the last one may be shorter). To share costs less than to read another GPU's memory twice:
// a piece is as short as one read of each thread (measured on two H200: bench/results, announced).
struct order_cut {
    uint32_t pieces, length;
};
CUDA_NC_KERNEL order_cut cut_order(uint32_t length, uint32_t idle) {
    const uint32_t least = (length + longest_piece - 1) / longest_piece;
    const uint32_t full = length / shortest_piece, most = min_u32(full < 1 ? 1 : full, idle);
    const uint32_t wanted = least > most ? least : most;
    const uint32_t share = (length + wanted - 1) / wanted;
    const uint32_t piece = (share + shortest_piece - 1) / shortest_piece * shortest_piece;
    return {(length + piece - 1) / piece, piece};
}

}  // namespace cuda_nc::exec
