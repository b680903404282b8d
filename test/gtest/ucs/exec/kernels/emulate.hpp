// Runs the kernels' own code on the CPU, one thread after the other, and watches every access:
// reads must stay in the aligned 16-byte words of the source, writes must hit bytes that are owned,
// each of them once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cuda_nc::exec::test {

struct access_watch {
    uintptr_t read_begin = 0, read_end = 0;  // the source, rounded out to 16 bytes
    uintptr_t write_begin = 0;
    std::vector<uint8_t> writes;  // of each byte of the target
    unsigned widest_write = 0;    // bytes
    std::string fault;            // the first one

    void on_read(const void *address, unsigned size) {
        auto at = reinterpret_cast<uintptr_t>(address);
        if (at % size != 0 || at < read_begin || at + size > read_end) {
            note("read", at - read_begin, size);
        }
    }
    void on_write(const void *address, unsigned size) {
        auto at = reinterpret_cast<uintptr_t>(address);
        if (at % size != 0 || at < write_begin || at + size > write_begin + writes.size()) {
            note("write", at - write_begin, size);
            return;
        }
        widest_write = size > widest_write ? size : widest_write;
        for (unsigned i = 0; i < size; ++i) {
            if (++writes[at - write_begin + i] > 1) {
                note("second write", at - write_begin + i, 1);
            }
        }
    }
    void note(const char *what, uintptr_t at, unsigned size) {
        if (fault.empty()) {
            fault = std::string(what) + " of " + std::to_string(size) + " at " +
                    std::to_string(static_cast<int64_t>(at));
        }
    }
};
inline access_watch watch;

}  // namespace cuda_nc::exec::test

#define CUDA_NC_ON_READ(address, size) ::cuda_nc::exec::test::watch.on_read(address, size)
#define CUDA_NC_ON_WRITE(address, size) ::cuda_nc::exec::test::watch.on_write(address, size)
#include "ucs/exec/kernels/move/threads.hpp"

namespace cuda_nc::exec::test {

template <int W>
void emulate_tiles(const part &a, const kernel_choice &c) {
    std::vector<word<W>> shared(c.per_thread_block * tile_shared_bytes<W> / W);
    for (uint32_t thread = 0; thread < c.threads; ++thread) {
        move_edges<strided_locator<-1>>(a, split_words<W>(a), thread, c.threads);
    }
    const uint32_t step = c.grid * c.per_thread_block;
    for (uint32_t block = 0; block < c.grid; ++block) {
        for (uint32_t tile = block * c.per_thread_block; tile < c.items; tile += step) {
            for (bool loading : {true, false}) {
                for (uint32_t t = 0; t < c.threads; ++t) {
                    uint32_t group = t / tile_threads;
                    word<W> *own = shared.data() + group * tile_shared_bytes<W> / W;
                    const word_range r = split_words<W>(a);
                    const tile_work<W> work(a, c.tiles, r, tile + group);
                    if (loading) {
                        tile_thread<W, true>(a, c.tiles, r, work, t % tile_threads, own);
                    } else {
                        tile_thread<W, false>(a, c.tiles, r, work, t % tile_threads, own);
                    }
                }
            }
        }
    }
}

inline void emulate_units(const part &a, const kernel_choice &c) {
    std::vector<unit_table> tables(c.threads / warp_lanes);
    for (uint32_t block = 0; block < c.grid; ++block) {
        for (uint32_t warp = 0; warp < tables.size(); ++warp) {
            const thread_place at{warp * warp_lanes, c.threads, block, c.grid};
            with_unit_kind(
                a.dir == gpu::direction::pack, c.word_log2, [&](auto pack, auto align, auto width) {
                    constexpr int w = decltype(width)::value;
                    if constexpr (w != 0) {
                        word_units_warp<w>(a, c.unit_log2, at, &tables[warp], lanes_in_step());
                    } else {
                        units_warp<decltype(pack)::value, decltype(align)::value>(
                            a, c.unit_log2, at, &tables[warp], lanes_in_step());
                    }
                });
        }
    }
}

template <class Locator>
void emulate_flat(const part &a, const kernel_choice &c) {
    for (uint32_t block = 0; block < c.grid; ++block) {
        for (uint32_t thread = 0; thread < c.threads; ++thread) {
            thread_place at{thread, c.threads, block, c.grid};
            if (c.how == method::windows) {
                windows_thread<Locator>(a, c.per_thread_block, at);
            } else if (c.how == method::pieces) {
                pieces_thread<Locator>(a, c.per_thread_block, c.pieces, at);
            } else if (c.how == method::blocks) {
                with_word(c.word_log2, [&](auto width) {
                    blocks_thread<decltype(width)::value>(a, c.blocks, at);
                });
            } else {
                with_word(c.word_log2, [&](auto width) {
                    constexpr int w = decltype(width)::value;
                    if (c.deep) {
                        words_thread<Locator, w, unroll_words<Locator, w, true>>(
                            a, c.per_thread_block, at);
                    } else {
                        words_thread<Locator, w, unroll_words<Locator, w, false>>(
                            a, c.per_thread_block, at);
                    }
                });
            }
        }
    }
}

// Returns which methods and locators served it.
inline std::vector<kernel_choice> emulate(const gpu::transfer &work, const kernel_limits &limits) {
    std::vector<kernel_choice> used;
    for (uint64_t done = 0; done < work.length;) {
        part a;
        done += cut_part(work, done, &a);
        kernel_choice c = choose_kernel(a, work.layout.align_log2, limits, work.max_sms);
        if (work.ends != nullptr) {
            join_thread_blocks(&c, gpu::end_words::most);
        }
        used.push_back(c);
        if (c.how == method::tiles) {
            with_word(c.word_log2,
                      [&](auto width) { emulate_tiles<decltype(width)::value>(a, c); });
        } else if (c.how == method::units) {
            emulate_units(a, c);
        } else {
            with_uniform_locator(c.locator, [&](auto locator) {
                emulate_flat<typename decltype(locator)::type>(a, c);
            });
        }
    }
    return used;
}

}  // namespace cuda_nc::exec::test
