// Orders for a mover's kernel: how one is written into a line of the ring, how it is read again,
// and how it is cut. Same code on CPU and GPU, so that tests can run all of it.
//
// A line says all of an order: blocks on both sides, or on one with contiguous memory on the other,
// by words of 4 to 16 bytes. They are one block repeated over one or two dims, or a list whose
// tables lie in the GPU's memory. Lists that repeat took longer than by a launch
// (bench/results/2026-11-27-h200x2-lists-by-orders.md). Other layouts would need descriptions
// fetched across the bus: with these an order took 10 to 20 us where a launch takes 9 to 10 (one
// H100, bench/results/2026-11-24-h100-bursts.md).
#pragma once

#include <type_traits>

#include "ucs/exec/kernels/move/divide32.hpp"
#include "ucs/exec/kernels/move/locate.hpp"
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
// In place of block_length and what follows, of lists; addresses of tables. Of one length:
constexpr uint32_t displacement_at = 13, frame_displacement = 15, block_first = 17;
// Of different lengths:
constexpr uint32_t its_displacement = 11, its_frame_displacement = 13;
constexpr uint32_t packed_table = 15, frame_packed = 17;
constexpr uint32_t unit_block = 19;                   // null: there is none
constexpr uint32_t num_blocks = 10, list_first = 23;  // in whose four lowest bits is `first`
// Of a progression:
constexpr uint32_t first_length = 11, length_step = 12, block_stride = 13;
}  // namespace order_word
constexpr uint32_t most_line_dims = 2, least_line_word_log2 = 2;
// Bytes of a list's order: longer ones gain nothing (measured in the same place).
constexpr uint64_t longest_list_order = uint64_t{256} << 10;

enum class order_kind : uint32_t { leave, move };
// Which side of a line is contiguous.
enum class packed_side : uint32_t { none, source, target };
// How the blocks lie.
enum class line_layout : uint32_t {
    dims1,  // one block, repeated over one dim ...
    dims2,  // ... or two
    uniform_list,
    varying_list,  // of different lengths
    progression    // a varying list without tables
};

// A header, from its lowest bit: kind, layout, word, packed side (4 bits each), is_into_own_memory
// (1); of a list's tables granule_log2 (5) and unit_log2 (6).
constexpr uint32_t layout_at = 4, word_at = 8, side_at = 12, granule_at = 17, unit_at = 22;

CUDA_NC_KERNEL uint32_t order_header(order_kind kind, line_layout what, uint32_t word_log2,
                                     packed_side packed) {
    return static_cast<uint32_t>(kind) | static_cast<uint32_t>(what) << layout_at |
           word_log2 << word_at | static_cast<uint32_t>(packed) << side_at;
}
CUDA_NC_KERNEL order_kind kind_of_order(uint32_t header) {
    return static_cast<order_kind>(header & 15);
}
CUDA_NC_KERNEL line_layout layout_of_order(uint32_t header) {
    return static_cast<line_layout>(header >> layout_at & 15);
}
CUDA_NC_KERNEL uint32_t word_log2_of_order(uint32_t header) {
    return header >> word_at & 15;
}
CUDA_NC_KERNEL packed_side packed_side_of_order(uint32_t header) {
    return static_cast<packed_side>(header >> side_at & 3);
}
// Of moves alone: a bit of the header beside those of order_header().
constexpr uint32_t into_own_memory_bit = 1u << 16;
CUDA_NC_KERNEL bool is_into_own_memory(uint32_t header) {
    return (header & into_own_memory_bit) != 0;
}

// Writes `one` into *words_p. False: the kernel does not serve it.
bool plan_order(const gpu::move_order &one, uint32_t (*words_p)[gpu::order_words]) noexcept;

CUDA_NC_KERNEL uint64_t order_number(const uint32_t *words, uint32_t at) {
    return uint64_t{words[at + 1]} << 32 | words[at];
}
template <class Entry>
CUDA_NC_KERNEL const Entry *order_table(const uint32_t *words, uint32_t at) {
    return reinterpret_cast<const Entry *>(static_cast<uintptr_t>(order_number(words, at)));
}
CUDA_NC_KERNEL fast_divide32 order_divide(uint32_t divisor, uint32_t magic) {
    fast_divide32 made;
    made.divisor = divisor;
    made.magic = magic;
    made.shift = log2_ceil(divisor);
    return made;
}

// What a line says of the two sides. Each thread makes its own, in registers: so nothing of it is
// divided or indexed there.
struct order_sides {
    const char *source;  // displacement 0; of a contiguous side offset 0
    char *target;
    packed_side packed;
    uint32_t first;  // of the order's offsets

    CUDA_NC_KERNEL explicit order_sides(const uint32_t *words)
        : source(order_table<char>(words, order_word::source)),
          target(const_cast<char *>(order_table<char>(words, order_word::target))),
          packed(packed_side_of_order(words[order_word::header])),
          first(words[order_word::first]) {}

    // Of offset p, which lies at displacement `at` of a layout.
    CUDA_NC_KERNEL int64_t source_at(uint32_t p, int64_t at) const {
        return packed == packed_side::source ? p : at;
    }
    CUDA_NC_KERNEL int64_t target_at(uint32_t p, int64_t at) const {
        return packed == packed_side::target ? p : at;
    }
};

// Displacements of offsets p, p + step, ... up to `last`, one after the other.
template <class Line, int N>
CUDA_NC_KERNEL void find_each_place(const Line &line, uint32_t p, uint32_t step, uint32_t last,
                                    int64_t (&displacements)[N]) {
    CUDA_NC_UNROLL
    for (int u = 0; u < N; ++u) {
        const uint32_t own = p + static_cast<uint32_t>(u) * step;
        if (own <= last) {
            displacements[u] = line.displacement(own);
        }
    }
}

// ... and of a block that is repeated over so many dims.
template <uint32_t Dims>
struct order_rows : order_sides {
    fast_divide32 by_block, by_count;
    int64_t stride, next_stride;

    CUDA_NC_KERNEL explicit order_rows(const uint32_t *words)
        : order_sides(words),
          by_block(order_divide(words[order_word::block_length], words[order_word::block_magic])),
          by_count(order_divide(words[order_word::count], words[order_word::count_magic])),
          stride(static_cast<int64_t>(order_number(words, order_word::stride))),
          next_stride(static_cast<int64_t>(order_number(words, order_word::next_stride))) {}

    // Of offset p.
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
    template <int N>
    CUDA_NC_KERNEL void find_places(uint32_t p, uint32_t step, uint32_t last,
                                    int64_t (&displacements)[N]) const {
        find_each_place(*this, p, step, last, displacements);
    }
};

// ... and of a list. Its part has what the list's locator reads, and no more.
template <line_layout What>
struct order_list : order_sides {
    using locator = std::conditional_t<
        What == line_layout::uniform_list, uniform_locator,
        std::conditional_t<What == line_layout::progression, progression_locator, varying_locator>>;
    part of;

    CUDA_NC_KERNEL explicit order_list(const uint32_t *words) : order_sides(words) {
        using namespace order_word;
        of.granule_log2 = static_cast<uint8_t>(words[header] >> granule_at & 31);
        if constexpr (What == line_layout::uniform_list) {
            of.by_block = order_divide(words[block_length], words[block_magic]);
            of.tables.displacement = order_table<uint32_t>(words, displacement_at);
            of.tables.frame_displacement = order_table<int64_t>(words, frame_displacement);
            of.block_first = words[block_first];
        } else if constexpr (What == line_layout::varying_list) {
            of.tables.displacement = order_table<uint32_t>(words, its_displacement);
            of.tables.frame_displacement = order_table<int64_t>(words, its_frame_displacement);
            of.tables.packed = order_table<uint32_t>(words, packed_table);
            of.tables.frame_packed = order_table<uint64_t>(words, frame_packed);
            of.tables.unit_block = order_table<uint32_t>(words, unit_block);
            of.tables.unit_log2 = words[header] >> unit_at & 63;
            of.num_blocks = words[num_blocks];
            of.list_first = words[list_first] & ~15u;
            first = words[list_first] & 15;
        } else {
            of.progression.first_length = words[first_length];
            of.progression.length_step = static_cast<int32_t>(words[length_step]);
            of.progression.stride = static_cast<int64_t>(order_number(words, block_stride));
            of.list_first = words[list_first];
        }
    }

    // Of offset p.
    CUDA_NC_KERNEL int64_t displacement(uint32_t p) const {
        part list = of;
        list.num_dims = 0;  // so the compiler sees that nothing is indexed
        cursor there;
        locator::seek(list, p, &there);
        return there.displacement;
    }
    template <int N>
    CUDA_NC_KERNEL void find_places(uint32_t p, uint32_t step, uint32_t last,
                                    int64_t (&displacements)[N]) const {
        if constexpr (What == line_layout::varying_list) {
            uint32_t all[N];
            CUDA_NC_UNROLL
            for (int u = 0; u < N; ++u) {
                all[u] = min_u32(p + static_cast<uint32_t>(u) * step, last);
            }
            locator::find_places(of, all, displacements);
        } else {
            find_each_place(*this, p, step, last, displacements);
        }
    }
};

// How many pieces an order is cut into where `idle` thread blocks wait for one, and how long they
// are (the last one may be shorter). To share costs less than to read another GPU's memory twice:
// a piece is as short as one read of each thread (measured on two H200: bench/results, announced).
struct order_cut {
    uint32_t pieces, length;
};
CUDA_NC_KERNEL order_cut cut_order(uint32_t length, uint32_t idle, uint32_t longest) {
    const uint32_t least = (length + longest - 1) / longest;
    const uint32_t full = length / shortest_piece, most = min_u32(full < 1 ? 1 : full, idle);
    const uint32_t wanted = least > most ? least : most;
    const uint32_t share = (length + wanted - 1) / wanted;
    const uint32_t piece = (share + shortest_piece - 1) / shortest_piece * shortest_piece;
    return {(length + piece - 1) / piece, piece};
}
CUDA_NC_KERNEL order_cut cut_order(uint32_t length, uint32_t idle) {
    return cut_order(length, idle, longest_piece);
}

}  // namespace cuda_nc::exec
