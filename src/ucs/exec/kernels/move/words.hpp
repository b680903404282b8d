// Moves words that are aligned alike on both sides: W divides every address, block and stride.
#pragma once

#include <type_traits>

#include "ucs/exec/kernels/move/locate.hpp"
#include "ucs/exec/kernels/move/word.hpp"

namespace cuda_nc::exec {

// The whole words of a part, offsets [begin, begin + count * W); the bytes before and behind are
// its edges.
struct word_range {
    uint32_t begin = 0;
    uint32_t count = 0;     // words
    uint32_t head_end = 0;  // edges: offsets [first, head_end) and [tail_begin, first + length)
    uint32_t tail_begin = 0;
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

// Source and target of a word: `laid_out` on the laid-out side; on the other `linear`, or for a
// copy the same place in the other buffer.
struct two_sides {
    const char *source;
    char *target;
};
CUDA_NC_KERNEL two_sides sides(const part &a, gpu::direction dir, char *laid_out, char *linear) {
    char *other = dir == gpu::direction::copy ? a.packed + (laid_out - a.base) : linear;
    return dir == gpu::direction::unpack ? two_sides{other, laid_out} : two_sides{laid_out, other};
}

// The packed side's address of offset p.
CUDA_NC_KERNEL char *packed_at(const part &a, uint32_t p) {
    return a.packed + (static_cast<int64_t>(p) - static_cast<int64_t>(a.first));
}

template <class Locator>
CUDA_NC_KERNEL void move_byte(const part &a, uint32_t p) {
    cursor c;
    Locator::seek(a, p, &c);
    two_sides at = sides(a, a.dir, a.base + c.displacement, packed_at(a, p));
    store_word<1>(at.target, load_word<1>(at.source));
}

// Iterates over the laid-out addresses of offsets p, p + step, p + 2 * step, ...
template <class Locator>
class stepping {
  public:
    CUDA_NC_KERNEL stepping(const part &a, uint32_t p, uint32_t step) : a_(a), p_(p), step_(step) {}
    CUDA_NC_KERNEL void next() { p_ += step_; }
    CUDA_NC_KERNEL char *address() const {
        cursor c;
        Locator::seek(a_, p_, &c);
        return a_.base + c.displacement;
    }

  private:
    const part &a_;
    uint32_t p_, step_;
};

// For vectors: two divisions for all steps together.
template <>
class stepping<strided_locator<1>> {
  public:
    CUDA_NC_KERNEL stepping(const part &a, uint32_t p, uint32_t step)
        : length_(static_cast<int32_t>(a.block_length)) {
        cursor c;
        strided_locator<1>::seek(a, p, &c);
        address_ = reinterpret_cast<uintptr_t>(a.base) + static_cast<uint64_t>(c.displacement);
        left_ = static_cast<int32_t>(c.remaining);
        const uint32_t blocks = a.by_block.quotient(step);
        in_block_ = static_cast<int32_t>(a.by_block.remainder(step, blocks));
        stride_ = static_cast<uint64_t>(blocks * a.dims[0].stride + in_block_);
        gap_ = static_cast<uint64_t>(a.dims[0].stride - length_);
    }
    CUDA_NC_KERNEL void next() {
        address_ += stride_;
        left_ -= in_block_;
        if (left_ <= 0) {  // into the block behind
            left_ += length_;
            address_ += gap_;
        }
    }
    CUDA_NC_KERNEL char *address() const { return reinterpret_cast<char *>(address_); }

  private:
    uintptr_t address_;  // a number: behind the last word it may lie outside of every object
    uint64_t stride_, gap_;
    int32_t length_, in_block_;
    int32_t left_;  // of the block
};

// Moves the edges, by some dozens of threads.
template <class Locator>
CUDA_NC_KERNEL void move_edges(const part &a, const word_range &r, uint32_t thread,
                               uint32_t threads) {
    for (uint32_t p = a.first + thread; p < r.head_end; p += threads) {
        move_byte<Locator>(a, p);
    }
    for (uint32_t p = r.tail_begin + thread; p < a.first + a.length; p += threads) {
        move_byte<Locator>(a, p);
    }
}

// Moves words i, i + 32, i + 64, ..., Unroll of them: all loads, then all stores. Guarded: only
// those below `limit`. `at` and `linear` (the packed side) are at word i before and behind the last
// word after. `dir` is the part's direction; a constant saves instructions.
template <class Locator, int W, int Unroll, bool Guarded>
CUDA_NC_KERNEL void move_batch(const part &a, gpu::direction dir, stepping<Locator> *at,
                               char **linear, uint32_t i, uint32_t limit) {
    word<W> value[Unroll];
    char *target[Unroll];
    CUDA_NC_UNROLL
    for (int u = 0; u < Unroll; ++u) {
        if (!Guarded || i + u * warp_lanes < limit) {
            constexpr int64_t step = warp_lanes * W;
            two_sides one = sides(a, dir, at->address(), *linear + u * step);
            target[u] = one.target;
            value[u] = load_word<W>(one.source);
        }
        at->next();
    }
    CUDA_NC_UNROLL
    for (int u = 0; u < Unroll; ++u) {
        if (!Guarded || i + u * warp_lanes < limit) {
            store_word<W>(target[u], value[u]);
        }
    }
    *linear += int64_t{Unroll} * warp_lanes * W;
}

constexpr int most_at_once = 8;  // words in flight; more cost registers

template <class Locator, int W, int Unroll, bool Guarded>
CUDA_NC_KERNEL void move_batches(const part &a, gpu::direction dir, const word_range &r, uint32_t i,
                                 uint32_t limit) {
    constexpr int at_once = Unroll < most_at_once ? Unroll : most_at_once;
    static_assert(Unroll % at_once == 0, "whole batches");
    char *linear = packed_at(a, r.begin + i * W);
    stepping<Locator> at(a, r.begin + i * W, warp_lanes * W);
    CUDA_NC_NO_UNROLL
    for (int done = 0; done < Unroll; done += at_once) {
        move_batch<Locator, W, at_once, Guarded>(a, dir, &at, &linear, i, limit);
        i += at_once * warp_lanes;
    }
}

// Moves words i, i + 32, ... below `limit`, up to Unroll of them.
template <class Locator, int W, int Unroll>
CUDA_NC_KERNEL void move_words(const part &a, const word_range &r, uint32_t i, uint32_t limit) {
    if (i + (Unroll - 1) * warp_lanes >= limit) {
        if (i < limit) {
            move_batches<Locator, W, Unroll, true>(a, a.dir, r, i, limit);
        }
        return;
    }
    // Short words of vectors are bound by instructions rather than memory.
    if (std::is_same_v<Locator, strided_locator<1>> && W <= 4) {
        if (a.dir == gpu::direction::unpack) {
            move_batches<Locator, W, Unroll, false>(a, gpu::direction::unpack, r, i, limit);
            return;
        }
        if (a.dir == gpu::direction::pack) {
            move_batches<Locator, W, Unroll, false>(a, gpu::direction::pack, r, i, limit);
            return;
        }
    }
    move_batches<Locator, W, Unroll, false>(a, a.dir, r, i, limit);
}

}  // namespace cuda_nc::exec
