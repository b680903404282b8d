// Several orders that one launch moves: the argument of its kernel, and which thread block moves
// what. Same code on CPU and GPU, so that tests can run all of it.
//
// The lines are those of a mover's ring; here the CPU cuts them into pieces, each of which has a
// thread block and tells of its own end.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ucs/exec/kernels/plan/order_plan.hpp"
#include "ucs/gpu/mover_desk.hpp"

namespace cuda_nc::exec {

constexpr uint32_t set_threads = 512;  // of a thread block
// Of thread blocks, as many as the GPU has multiprocessors at most: else some begin when others
// end.
constexpr uint32_t most_set_blocks = 128;

constexpr auto longest_in_set = static_cast<uint32_t>(gpu::longest_of_many);  // bytes

// `Most`: orders. A launch takes longer with more bytes of arguments.
template <uint32_t Most>
struct order_set {
    gpu::order_ends *ends = nullptr;
    uint32_t number = 0;             // of orders
    uint16_t first_block[Most + 1];  // of each order; behind the last one, how many there are
    uint32_t words[Most][gpu::order_words];
};
constexpr uint32_t few_in_set = 4, many_in_set = gpu::most_of_set;
static_assert(sizeof(order_set<many_in_set>) <= 2048, "a launch takes longer with more");

// Orders [first, first + number), number <= Most, by at most `blocks` thread blocks, or one for
// each order.
template <uint32_t Most>
void plan_set(const uint32_t (*words)[gpu::order_words], size_t number, uint64_t first,
              uint32_t blocks, order_set<Most> *set_p) noexcept {
    uint32_t next = 0;
    set_p->number = static_cast<uint32_t>(number);
    const uint32_t share = blocks / set_p->number;
    const uint32_t idle = share == 0 ? 1 : min_u32(share, gpu::most_order_pieces);
    for (uint32_t i = 0; i < set_p->number; ++i) {
        uint32_t(&line)[gpu::order_words] = set_p->words[i];
        for (uint32_t word = 0; word < gpu::order_words; ++word) {
            line[word] = words[i][word];
        }
        // Nobody waits for these thread blocks to take other pieces.
        const order_cut cut = cut_order(line[order_word::length], idle, longest_in_set);
        line[order_word::place] = static_cast<uint32_t>((first + i) % gpu::order_ring_size);
        line[order_word::begin] = 0;
        line[order_word::end] = cut.length;  // of the first piece
        line[order_word::pieces] = cut.pieces;
        line[order_word::number] = static_cast<uint32_t>(first + i);
        set_p->first_block[i] = static_cast<uint16_t>(next);
        next += cut.pieces;
    }
    set_p->first_block[set_p->number] = static_cast<uint16_t>(next);
}

// The order of which thread block `block` moves a piece.
template <uint32_t Most>
CUDA_NC_KERNEL uint32_t order_of_block(const order_set<Most> &set, uint32_t block) {
    uint32_t which = 0;
    CUDA_NC_UNROLL
    for (uint32_t i = 1; i < Most; ++i) {
        which = i < set.number && block >= set.first_block[i] ? i : which;
    }
    return which;
}

// Of a line of plan_set(): offsets of piece `piece`.
struct order_piece {
    uint32_t begin, end;
};
CUDA_NC_KERNEL order_piece piece_of_line(const uint32_t *line, uint32_t piece) {
    const uint32_t length = line[order_word::end];
    return {piece * length, min_u32(line[order_word::length], (piece + 1) * length)};
}

}  // namespace cuda_nc::exec
