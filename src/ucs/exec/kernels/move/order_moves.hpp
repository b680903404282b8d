// What one thread of a mover's kernel does. Runs on a CPU in tests.
#pragma once

#include "ucs/exec/kernels/plan/order_plan.hpp"

namespace cuda_nc::exec {

// Of bytes [begin, end) of the order that a line describes. Short code: spilled registers would
// cost more than the bytes.
template <class Place, int W>
CUDA_NC_KERNEL void move_order_line(const Place &line, uint32_t begin, uint32_t end,
                                    uint32_t thread, uint32_t threads) {
    constexpr int at_once = words_in_flight;
    const uint32_t first = line.first + begin, stop = line.first + end;
    // Bytes before the first whole word and behind the last one.
    const uint32_t head = min_u32((first + W - 1) & ~uint32_t{W - 1}, stop);
    const uint32_t whole = stop & ~uint32_t{W - 1}, tail = whole > head ? whole : head;
    const uint32_t edges = head - first + (stop - tail);
    CUDA_NC_NO_UNROLL
    for (uint32_t i = thread; i < edges; i += threads) {
        const uint32_t p = i < head - first ? first + i : tail + (i - (head - first));
        const int64_t at = line.displacement(p);
        store_word<1>(line.target + line.target_at(p, at),
                      load_word<1>(line.source + line.source_at(p, at)));
    }
    CUDA_NC_NO_UNROLL
    for (uint32_t p = head + thread * W; p < tail; p += threads * W * at_once) {
        word<W> value[at_once];
        int64_t at[at_once];
        line.find_places(p, threads * W, tail - W, at);
        CUDA_NC_UNROLL
        for (int u = 0; u < at_once; ++u) {
            const uint32_t own = p + static_cast<uint32_t>(u) * threads * W;
            if (own < tail) {
                value[u] = load_word<W>(line.source + line.source_at(own, at[u]));
                at[u] = line.target_at(own, at[u]);
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

template <class Place>
CUDA_NC_KERNEL void move_order_line(const uint32_t *words, uint32_t begin, uint32_t end,
                                    uint32_t thread, uint32_t threads) {
    const Place line(words);
    switch (word_log2_of_order(words[order_word::header])) {
        case 2:
            return move_order_line<Place, 4>(line, begin, end, thread, threads);
        case 3:
            return move_order_line<Place, 8>(line, begin, end, thread, threads);
        default:
            return move_order_line<Place, 16>(line, begin, end, thread, threads);
    }
}

// The same for any line.
CUDA_NC_KERNEL void move_order(const uint32_t *words, uint32_t begin, uint32_t end, uint32_t thread,
                               uint32_t threads) {
    switch (layout_of_order(words[order_word::header])) {
        case line_layout::dims1:
            return move_order_line<order_rows<1>>(words, begin, end, thread, threads);
        case line_layout::dims2:
            return move_order_line<order_rows<2>>(words, begin, end, thread, threads);
        case line_layout::uniform_list:
            return move_order_line<order_list<line_layout::uniform_list>>(words, begin, end, thread,
                                                                          threads);
        case line_layout::varying_list:
            return move_order_line<order_list<line_layout::varying_list>>(words, begin, end, thread,
                                                                          threads);
        default:
            return move_order_line<order_list<line_layout::progression>>(words, begin, end, thread,
                                                                         threads);
    }
}

}  // namespace cuda_nc::exec
