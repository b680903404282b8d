// What one thread of a mover's kernel does of a narrowed part: one kernel holds the code for all
// layouts that orders may have. Runs on a CPU in tests.
#pragma once

#include "ucs/exec/kernels/move/threads.hpp"
#include "ucs/exec/kernels/plan/order_plan.hpp"

namespace cuda_nc::exec {

template <class Locator, int W>
CUDA_NC_KERNEL void move_order_words(const part &p, uint32_t thread, uint32_t threads) {
    // In a short piece every thread has a word before any has several.
    const uint32_t each = (p.length / W + threads - 1) >> log2_floor(threads);
    constexpr uint32_t most = unroll_deep<Locator, W>;
    words_thread<Locator, W>(p, threads * (each < 1 ? 1 : min_u32(each, most)),
                             thread_place{thread, threads, 0, 1});
}

template <class Locator>
CUDA_NC_KERNEL void move_order_words(const part &p, uint32_t word_log2, uint32_t thread,
                                     uint32_t threads) {
    switch (word_log2) {
        case 2:
            return move_order_words<Locator, 4>(p, thread, threads);
        case 3:
            return move_order_words<Locator, 8>(p, thread, threads);
        default:
            return move_order_words<Locator, 16>(p, thread, threads);
    }
}

template <int Align>
CUDA_NC_KERNEL void move_order_units(const part &p, uint32_t thread, uint32_t threads,
                                     unit_table *own, lanes_in_step lanes) {
    const thread_place at{thread, threads, 0, 1};
    const uint32_t unit_log2 = unit_log2_of_piece(p.length, threads / warp_lanes);
    if (p.dir == gpu::direction::pack) {
        units_warp<true, Align >= 8 ? 8 : 1>(p, unit_log2, at, own, lanes);
    } else if constexpr (Align >= 4) {
        word_units_warp<Align>(p, unit_log2, at, own, lanes);
    } else {
        units_warp<false, 1>(p, unit_log2, at, own, lanes);
    }
}

// `own` is the warp's table. Where the mover's method is units, a CPU calls it for the first thread
// of each warp alone.
CUDA_NC_KERNEL void move_order_part(const order_mover &mover, const part &p, uint32_t thread,
                                    uint32_t threads, unit_table *own, lanes_in_step lanes) {
    using any_locator = strided_locator<-1>;
    if (mover.how == method::units) {
        switch (mover.word_log2) {
            case 0:
            case 1:
                return move_order_units<1>(p, thread, threads, own, lanes);
            case 2:
                return move_order_units<4>(p, thread, threads, own, lanes);
            case 3:
                return move_order_units<8>(p, thread, threads, own, lanes);
            default:
                return move_order_units<16>(p, thread, threads, own, lanes);
        }
    }
    const thread_place at{thread, threads, 0, 1};
    if (mover.how == method::windows) {
        return mover.locator == locator_kind::uniform
                   ? windows_thread<uniform_locator>(p, threads * unroll_windows, at)
                   : windows_thread<any_locator>(p, threads * unroll_windows, at);
    }
    switch (mover.locator) {
        case locator_kind::dims1:
            return move_order_words<strided_locator<1>>(p, mover.word_log2, thread, threads);
        case locator_kind::dims2:
            return move_order_words<strided_locator<2>>(p, mover.word_log2, thread, threads);
        case locator_kind::uniform:
            return move_order_words<uniform_locator>(p, mover.word_log2, thread, threads);
        default:
            return move_order_words<any_locator>(p, mover.word_log2, thread, threads);
    }
}

}  // namespace cuda_nc::exec
