// Moves words that lie alike on both sides: W divides every address, block and stride.
#pragma once

#include "ucs/exec/kernels/locate.hpp"
#include "ucs/exec/kernels/words.hpp"

namespace cuda_nc::exec {

// Offsets [begin, begin + count * W) of a part; the bytes before and behind are edges.
struct word_range {
    uint32_t begin = 0;
    uint32_t count = 0;       // words
    uint32_t head_end = 0;    // edges: offsets [first, head_end) and [tail_begin, first + length),
    uint32_t tail_begin = 0;  // each shorter than a word
};

template <int W>
CUDA_NC_KERNEL word_range split_words(const part &a) {
    word_range r;
    uint32_t end = a.first + a.length;
    r.begin = (a.first + W - 1) & ~uint32_t{W - 1};
    uint32_t stop = end & ~uint32_t{W - 1};
    r.count = stop > r.begin ? (stop - r.begin) / W : 0;
    r.head_end = r.begin < end ? r.begin : end;
    r.tail_begin = stop > r.head_end ? stop : r.head_end;
    return r;
}

// Both addresses of offset p.
template <class Locator>
CUDA_NC_KERNEL void addresses(const part &a, uint32_t p, const char **source_p, char **target_p) {
    cursor c;
    Locator::seek(a, p, &c);
    char *laid_out = a.base + c.displacement;
    char *other = a.packed + (a.dir == gpu::direction::copy
                                  ? c.displacement
                                  : static_cast<int64_t>(p) - static_cast<int64_t>(a.first));
    *source_p = a.dir == gpu::direction::unpack ? other : laid_out;
    *target_p = a.dir == gpu::direction::unpack ? laid_out : other;
}

template <class Locator>
CUDA_NC_KERNEL void move_byte(const part &a, uint32_t p) {
    const char *source;
    char *target;
    addresses<Locator>(a, p, &source, &target);
    store_word<1>(target, load_word<1>(source));
}

// The edges, by the first 2 * W threads.
template <class Locator, int W>
CUDA_NC_KERNEL void move_edges(const part &a, const word_range &r, uint32_t thread) {
    if (thread < W) {
        if (a.first + thread < r.head_end) {
            move_byte<Locator>(a, a.first + thread);
        }
    } else if (thread < 2 * W && r.tail_begin + (thread - W) < a.first + a.length) {
        move_byte<Locator>(a, r.tail_begin + (thread - W));
    }
}

// Words i, i + step, ..., Unroll of them: all loads, then all stores. Where Guarded, those below
// `limit` only.
template <class Locator, int W, int Unroll, bool Guarded>
CUDA_NC_KERNEL void move_batch(const part &a, const word_range &r, uint32_t i, uint32_t step,
                               uint32_t limit) {
    word<W> value[Unroll];
    char *target[Unroll];
    CUDA_NC_UNROLL
    for (int u = 0; u < Unroll; ++u) {
        if (!Guarded || i + u * step < limit) {
            const char *source;
            addresses<Locator>(a, r.begin + (i + u * step) * W, &source, &target[u]);
            value[u] = load_word<W>(source);
        }
    }
    CUDA_NC_UNROLL
    for (int u = 0; u < Unroll; ++u) {
        if (!Guarded || i + u * step < limit) {
            store_word<W>(target[u], value[u]);
        }
    }
}

// Words i, i + step, ... below `limit`, up to Unroll of them.
template <class Locator, int W, int Unroll>
CUDA_NC_KERNEL void move_words(const part &a, const word_range &r, uint32_t i, uint32_t step,
                               uint32_t limit) {
    if (i + (Unroll - 1) * step < limit) {
        move_batch<Locator, W, Unroll, false>(a, r, i, step, limit);
    } else if (i < limit) {
        move_batch<Locator, W, Unroll, true>(a, r, i, step, limit);
    }
}

}  // namespace cuda_nc::exec
