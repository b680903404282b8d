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
        case 0:
            return move_order_words<Locator, 1>(p, thread, threads);
        case 1:
            return move_order_words<Locator, 2>(p, thread, threads);
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

// What one thread does of bytes [begin, end) of the order that a line describes. It is what most
// orders need, and has its own short code: long code and spilled registers would cost more than
// the bytes.
template <uint32_t Dims, int W>
CUDA_NC_KERNEL void move_order_line(const order_line_place &line, uint32_t begin, uint32_t end,
                                    uint32_t thread, uint32_t threads) {
    constexpr int at_once = 4;  // words in flight
    const uint32_t first = line.first + begin, stop = line.first + end;
    // Bytes before the first whole word and behind the last one.
    const uint32_t head = min_u32((first + W - 1) & ~uint32_t{W - 1}, stop);
    const uint32_t whole = stop & ~uint32_t{W - 1}, tail = whole > head ? whole : head;
    const uint32_t edges = head - first + (stop - tail);
    CUDA_NC_NO_UNROLL
    for (uint32_t i = thread; i < edges; i += threads) {
        const uint32_t p = i < head - first ? first + i : tail + (i - (head - first));
        const int64_t at = line.displacement<Dims>(p);
        store_word<1>(line.target + at, load_word<1>(line.source + at));
    }
    CUDA_NC_NO_UNROLL
    for (uint32_t p = head + thread * W; p < tail; p += threads * W * at_once) {
        word<W> value[at_once];
        int64_t at[at_once];
        CUDA_NC_UNROLL
        for (int u = 0; u < at_once; ++u) {
            const uint32_t own = p + static_cast<uint32_t>(u) * threads * W;
            if (own < tail) {
                at[u] = line.displacement<Dims>(own);
                value[u] = load_word<W>(line.source + at[u]);
            }
        }
        CUDA_NC_UNROLL
        for (int u = 0; u < at_once; ++u) {
            if (p + static_cast<uint32_t>(u) * threads * W < tail) {
                store_word<W>(line.target + at[u], value[u]);
            }
        }
    }
}

template <uint32_t Dims>
CUDA_NC_KERNEL void move_order_line(const uint32_t *words, uint32_t begin, uint32_t end,
                                    uint32_t thread, uint32_t threads) {
    const order_line_place line = read_order_line(words);
    switch (word_log2_of_order(words[order_word::header])) {
        case 2:
            return move_order_line<Dims, 4>(line, begin, end, thread, threads);
        case 3:
            return move_order_line<Dims, 8>(line, begin, end, thread, threads);
        default:
            return move_order_line<Dims, 16>(line, begin, end, thread, threads);
    }
}

CUDA_NC_KERNEL void move_order_line(const uint32_t *words, uint32_t begin, uint32_t end,
                                    uint32_t thread, uint32_t threads) {
    return dims_of_order(words[order_word::header]) == 1
               ? move_order_line<1>(words, begin, end, thread, threads)
               : move_order_line<2>(words, begin, end, thread, threads);
}

}  // namespace cuda_nc::exec
