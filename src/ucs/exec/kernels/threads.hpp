// What one thread of a kernel does. The same code runs on a GPU and, one thread after the other, in
// the tests on a CPU.
#pragma once

#include <type_traits>

#include "ucs/exec/kernels/move_bytes.hpp"
#include "ucs/exec/kernels/move_tiles.hpp"
#include "ucs/exec/kernels/policy.hpp"

namespace cuda_nc::exec {

struct thread_place {
    uint32_t thread, threads;  // in its block
    uint32_t block, grid;      // blocks
};

template <class Locator, int W>
CUDA_NC_KERNEL void words_thread(const part &a, uint32_t per_block, const thread_place &at) {
    const word_range r = split_words<W>(a);
    if (at.block == 0) {
        move_edges<Locator, W>(a, r, at.thread);
    }
    for (uint32_t begin = at.block * per_block; begin < r.count; begin += at.grid * per_block) {
        uint32_t limit = r.count - begin < per_block ? r.count : begin + per_block;
        move_words<Locator, W, unroll_words<W>>(a, r, begin + at.thread, at.threads, limit);
    }
}

template <class Locator>
CUDA_NC_KERNEL void windows_thread(const part &a, uint32_t per_block, const thread_place &at) {
    const uint32_t count = count_windows(a);
    for (uint32_t begin = at.block * per_block; begin < count; begin += at.grid * per_block) {
        uint32_t limit = count - begin < per_block ? count : begin + per_block;
        for (uint32_t i = begin + at.thread; i < limit; i += at.threads) {
            move_window<Locator>(a, i);
        }
    }
}

// The two halves of a tile's exchange, with a barrier between them and another behind.
template <int W, bool Loading>
CUDA_NC_KERNEL void tile_thread(const part &a, const tile_shape &s, uint32_t tile, uint32_t thread,
                                word<W> *shared) {
    if (tile < s.count) {
        const bool packing = a.dir == gpu::direction::pack;
        const word_range r = split_words<W>(a);
        const tile_origin o = locate_tile(a, s, tile, tile_side<W>);
        if (packing == Loading) {
            exchange_tile<W, true, Loading>(a, s, r, o, thread, shared);
        } else {
            exchange_tile<W, false, Loading>(a, s, r, o, thread, shared);
        }
    }
}

template <class Locator>
struct locator_tag {
    using type = Locator;
};

// Calls action(locator_tag<L>) for the locator of `kind`.
template <class Action>
auto with_strided_locator(locator_kind kind, Action &&action) {
    switch (kind) {
        case locator_kind::dims0:
            return action(locator_tag<strided_locator<0>>());
        case locator_kind::dims1:
            return action(locator_tag<strided_locator<1>>());
        case locator_kind::dims2:
            return action(locator_tag<strided_locator<2>>());
        case locator_kind::dims3:
            return action(locator_tag<strided_locator<3>>());
        default:
            return action(locator_tag<strided_locator<-1>>());
    }
}
template <class Action>
auto with_list_locator(locator_kind kind, Action &&action) {
    return kind == locator_kind::uniform ? action(locator_tag<uniform_locator>())
                                         : action(locator_tag<varying_locator>());
}
constexpr bool is_strided(locator_kind kind) {
    return kind < locator_kind::uniform;
}

// Calls action(std::integral_constant<int, W>) for words of 2^log2 bytes.
template <class Action>
auto with_word(unsigned log2, Action &&action) {
    switch (log2) {
        case 0:
            return action(std::integral_constant<int, 1>());
        case 1:
            return action(std::integral_constant<int, 2>());
        case 2:
            return action(std::integral_constant<int, 4>());
        case 3:
            return action(std::integral_constant<int, 8>());
        default:
            return action(std::integral_constant<int, 16>());
    }
}

}  // namespace cuda_nc::exec
