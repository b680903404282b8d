// The kernels of pipes and pulls. Each family of movers is compiled in a file of its own.
#pragma once

#include "ucs/exec/kernels/instances/clock.cuh"
#include "ucs/exec/kernels/instances/end_store.cuh"
#include "ucs/exec/kernels/move/short_list.hpp"
#include "ucs/exec/kernels/plan/pipe_plan.hpp"
#include "ucs/exec/kernels/move/threads.hpp"

namespace cuda_nc::exec {

// The argument of each is a pipe_batch; each channel of each side has a thread block of
// pipe_threads threads. Null: not compiled.
const void *pipe_words_kernel(locator_kind kind, unsigned word_log2) noexcept;
const void *pipe_windows_kernel(locator_kind kind) noexcept;
const void *pipe_units_kernel(unsigned align_log2) noexcept;
const void *pipe_blocks_kernel(unsigned word_log2) noexcept;
// The same for a pull that is alone in its launch; the argument is a lone_pull.
const void *pull_words_kernel(locator_kind kind, unsigned word_log2) noexcept;
const void *pull_units_kernel(unsigned align_log2, bool wide) noexcept;
const void *pull_blocks_kernel(unsigned word_log2) noexcept;
// The argument is a short_pull.
const void *pull_short_list_kernel(unsigned word_log2) noexcept;

constexpr uint32_t pipe_threads = 256;
constexpr uint32_t wide_pull_threads = 512;
constexpr uint32_t wide_pull_chunk = 16 << 10;  // bytes, at least
// So many thread blocks of pipes must fit on a multiprocessor at the same time: the transport's
// scheduler relies on it.
constexpr uint32_t pipe_thread_blocks_per_sm = 4;

#ifdef __CUDACC__
__device__ __forceinline__ uint64_t load_acquire(const uint64_t *word) {
    uint64_t value;
    asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
    return value;
}

__device__ __forceinline__ void store_release(uint64_t *word, uint64_t value) {
    asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
}

// Waits until the channel may move its next chunk; one thread calls it. False: the channel is to
// leave.
__device__ __forceinline__ bool await_chunk(const pipe_arguments &a, uint32_t channel, uint32_t k) {
    constexpr uint32_t now_and_then = 16;  // tries between looks at clock and abort word
    const bool sending = a.dir == gpu::direction::pack;
    if (a.state == nullptr) {  // a pull that nobody watches
        return true;
    }
    const uint64_t *abort = &a.state->abort;
    if (k % now_and_then == now_and_then - 1 && load_acquire(abort) == a.sequence) {
        return false;
    }
    if (a.pulls) {
        return true;
    }
    uint64_t wanted = a.sequence + k + 1;
    if (sending) {
        if (k < a.geometry.depth) {
            return true;
        }
        wanted -= a.geometry.depth;
    }
    const uint64_t *word = gpu::pipe_word(sending ? a.credits : a.flags, channel);
    uint64_t limit = 0;
    for (uint32_t tries = 1; load_acquire(word) < wanted; ++tries) {
        if (tries % now_and_then == 0) {
            uint64_t now = nanoseconds();
            if (limit == 0) {
                limit = now + a.patience_ns;
            } else if (now > limit || load_acquire(abort) == a.sequence) {
                return false;
            }
        }
    }
    return true;
}

// Tells the peer that the channel's k-th chunk is in the ring (sender) or out of it (receiver); one
// thread calls it.
__device__ __forceinline__ void announce(const pipe_arguments &a, uint32_t channel, uint32_t k,
                                         uint32_t chunks) {
    // The barrier before this call ordered the stores of the whole thread block before the release.
    if (a.pulls) {
        return;
    }
    if (a.dir == gpu::direction::pack) {
        store_release(gpu::pipe_word(a.flags, channel), a.sequence + k + 1);
    } else if (k + a.geometry.depth < chunks) {
        store_release(gpu::pipe_word(a.credits, channel), a.sequence + k + 1);
    }
}

// Called by one thread of each channel at its end. The last channel of a group reports to the CPU.
__device__ __forceinline__ void leave(const pipe_arguments &a, uint32_t channel, uint32_t k,
                                      uint32_t chunks) {
    if (a.state == nullptr) {
        return;
    }
    a.state->position[channel] = a.sequence + k;
    const uint32_t size = gpu::pipe_group_size(a.geometry.channels);
    bool through = k == chunks;
    if (size > 1) {
        // For the stores of the thread block, as in announce().
        a.into_own_memory ? __threadfence() : __threadfence_system();
        const unsigned long long mine = through ? (1ull << 32) + 1 : 1;
        auto *arrivals = reinterpret_cast<unsigned long long *>(&a.state->arrivals);
        const unsigned long long all = atomicAdd(arrivals, mine) + mine;
        if (static_cast<uint32_t>(all) != size) {
            return;
        }
        *arrivals = 0;
        through = all >> 32 == size;
    }
    // The fences and the counter order the other channels' stores before this release.
    store_end(&a.report->groups[channel / size].left, gpu::pipe_left(a.launch_number, through),
              a.into_own_memory);
}

// The parts of a side, each narrowed to a chunk by the first thread of a warp. They lie in shared
// memory: movers index arrays of a part at run time, for which each thread would need its own copy
// in local memory.
template <uint32_t Most>
struct shared_parts {
    const pipe_arguments *entries;  // the side's, one for each part
    part *all;
    uint32_t own;
    bool has_own;

    __device__ __forceinline__ explicit shared_parts(const pipe_arguments *of)
        : entries(of),
          own(threadIdx.x / warpSize),
          has_own(threadIdx.x % warpSize == 0 && own < of->num_parts) {
        __shared__ __align__(alignof(part)) unsigned char bytes[Most * sizeof(part)];
        all = reinterpret_cast<part *>(bytes);  // no constructor runs there
        if (has_own) {
            all[own] = entries[own].what;
        }
    }
    // False: the chunk holds nothing of the part.
    __device__ __forceinline__ bool narrow_own(uint32_t channel, uint32_t k, char *slot) const {
        return pipe_piece(entries[0], entries[own], channel, k, slot, &all[own]);
    }
};

// Mover::run(part, thread, threads) moves a part by one thread block.
template <class Mover>
__global__ void __launch_bounds__(pipe_threads, pipe_thread_blocks_per_sm)
    pipe_kernel(const __grid_constant__ pipe_batch batch) {
    constexpr uint32_t most_parts = 2 * max_pipe_parts;
    __shared__ uint32_t first, go, any[most_parts];
    extern __shared__ __align__(16) char pulled[];  // a pull's chunk
    const uint32_t entry = pipe_entry(batch, blockIdx.x);
    const pipe_arguments &a = batch.entries[entry];
    const uint32_t channel = blockIdx.x - batch.first_thread_block[entry];
    const bool leading = threadIdx.x == 0;
    const uint32_t chunks = pipe_chunks(a, channel);
    if (leading) {
        uint64_t done = a.resumes ? a.state->position[channel] - a.sequence : 0;
        first = done <= chunks ? static_cast<uint32_t>(done) : 0;
    }
    const shared_parts<most_parts> pieces(&a);
    __syncthreads();
    uint32_t k = first;
    for (; k < chunks; ++k) {
        if (pieces.has_own) {  // while the peer still works
            any[pieces.own] =
                pieces.narrow_own(channel, k, a.pulls ? pulled : pipe_slot(a, channel, k));
        }
        if (leading) {
            go = await_chunk(a, channel, k);
        }
        __syncthreads();
        if (go == 0) {
            break;
        }
        for (uint32_t which = 0; which < a.num_parts; ++which) {
            if (any[which] != 0) {
                Mover::run(pieces.all[which], threadIdx.x, blockDim.x);
            }
            __syncthreads();
        }
        if (leading) {
            announce(a, channel, k, chunks);
        }
    }
    if (leading) {
        leave(a, channel, k, chunks);
    }
}

// The parts of a lone pull, narrowed to a chunk, in shared memory ...
class pull_parts_shared {
  public:
    static constexpr uint32_t most = 2;
    __device__ __forceinline__ explicit pull_parts_shared(const lone_pull &pull)
        : parts_(pull.entries) {}
    __device__ __forceinline__ void narrow(uint32_t channel, uint32_t k, char *slot) const {
        if (parts_.has_own) {
            parts_.narrow_own(channel, k, slot);
        }
        __syncthreads();
    }
    __device__ __forceinline__ const part &at(uint32_t which, uint32_t, uint32_t, char *) const {
        return parts_.all[which];
    }

  private:
    shared_parts<most> parts_;
};

// ... or in each thread's registers.
class pull_parts_copied {
  public:
    static constexpr uint32_t most = 2;
    __device__ __forceinline__ explicit pull_parts_copied(const lone_pull &pull) : pull_(pull) {}
    __device__ __forceinline__ void narrow(uint32_t, uint32_t, char *) const {}
    __device__ __forceinline__ part at(uint32_t which, uint32_t channel, uint32_t k,
                                       char *slot) const {
        part piece = pull_.entries[which].what;
        pipe_piece(pull_.entries[0], pull_.entries[which], channel, k, slot, &piece);
        return piece;
    }

  private:
    const lone_pull &pull_;
};

// For a short list: copies its tables into shared memory.
class short_pull_parts {
  public:
    static constexpr uint32_t most = 1;
    struct piece {
        const short_pull &pull;
        const short_list &list;
        short_piece of_list;
    };

    __device__ __forceinline__ explicit short_pull_parts(const short_pull &pull) : pull_(pull) {
        __shared__ short_list list;
        static_assert(sizeof(list) == pipe_threads * sizeof(uint32_t));  // a word for each thread
        reinterpret_cast<uint32_t *>(&list)[threadIdx.x] =
            reinterpret_cast<const uint32_t *>(&pull.list)[threadIdx.x];
        __syncthreads();
        list_ = &list;
    }
    __device__ __forceinline__ void narrow(uint32_t, uint32_t, char *) const {}
    __device__ __forceinline__ piece at(uint32_t, uint32_t channel, uint32_t k, char *) const {
        return {pull_, *list_, piece_of_short_pull(pull_, channel, k)};
    }

  private:
    const short_pull &pull_;
    const short_list *list_;
};

// A pull that is alone in its launch. It waits for no peer and looks up no side, so that each
// thread block begins to move at once.
template <class Mover>
__global__ void __launch_bounds__(Mover::pull_threads, Mover::pull_thread_blocks_per_sm)
    pull_kernel(const __grid_constant__ typename Mover::pull pull) {
    extern __shared__ __align__(16) char pulled[];
    __shared__ uint32_t aborted;
    const pipe_arguments &a = pull.entries[0];
    const uint32_t channel = blockIdx.x, chunks = pipe_chunks(a, channel);
    const bool leading = threadIdx.x == 0;
    const typename Mover::pull_parts pieces(pull);
    uint32_t k = 0;
    for (; k < chunks; ++k) {
        constexpr uint32_t now_and_then = 16;
        if (k % now_and_then == now_and_then - 1 && a.state != nullptr) {
            if (leading) {
                aborted = load_acquire(&a.state->abort) == a.sequence ? 1 : 0;
            }
            __syncthreads();
            if (aborted != 0) {
                break;
            }
        }
        pieces.narrow(channel, k, pulled);
        Mover::run(pieces.at(0, channel, k, pulled), threadIdx.x, blockDim.x);
        __syncthreads();
        if constexpr (Mover::pull_parts::most == 2) {
            if (a.num_parts == 2) {
                Mover::run(pieces.at(1, channel, k, pulled), threadIdx.x, blockDim.x);
                __syncthreads();
            }
        }
    }
    if (leading) {
        leave(a, channel, k, chunks);
    }
}

template <class Locator, int W>
struct words_mover {
    static constexpr bool indexes_dims =
        std::is_same_v<Locator, strided_locator<-1>> || std::is_same_v<Locator, uniform_locator>;
    static constexpr uint32_t pull_threads = pipe_threads;
    static constexpr uint32_t pull_thread_blocks_per_sm = pipe_thread_blocks_per_sm;
    using pull = lone_pull;
    using pull_parts = std::conditional_t<indexes_dims, pull_parts_shared, pull_parts_copied>;

    __device__ __forceinline__ static void run(const part &a, uint32_t thread, uint32_t threads) {
        // In a short chunk every thread has a word before any has several.
        const uint32_t each = (a.length / W + threads - 1) >> log2_floor(threads);
        constexpr uint32_t most = unroll_deep<Locator, W>;
        words_thread<Locator, W>(a, threads * (each < 1 ? 1 : min_u32(each, most)),
                                 thread_place{thread, threads, 0, 1});
    }
};

// Blocks of different lengths by units; Align divides all addresses.
template <int Align, uint32_t PullThreads = pipe_threads>
struct units_mover {
    // This mover needs more than 64 registers. Pulls wait for no peer, so not all thread blocks
    // need to run at the same time.
    static constexpr uint32_t pull_threads = PullThreads;
    static constexpr uint32_t pull_thread_blocks_per_sm = 3 * pipe_threads / PullThreads;
    using pull = lone_pull;
    using pull_parts = pull_parts_shared;

    __device__ __forceinline__ static void run(const part &a, uint32_t thread, uint32_t threads) {
        __shared__ unit_table tables[PullThreads / warp_lanes];
        unit_table *const own = tables + thread / warp_lanes;
        const thread_place at{thread, threads, 0, 1};
        const lanes_in_step lanes{thread % warp_lanes};
        const uint32_t unit_log2 = unit_log2_of_piece(a.length, threads / warp_lanes);
        if (a.dir == gpu::direction::pack) {
            units_warp<true, Align >= 8 ? 8 : 1>(a, unit_log2, at, own, lanes);
        } else if constexpr (Align >= 4) {
            word_units_warp<Align>(a, unit_log2, at, own, lanes);
        } else {
            units_warp<false, 1>(a, unit_log2, at, own, lanes);
        }
    }
};

// Short blocks of different lengths.
template <int W>
struct blocks_mover {
    static constexpr uint32_t pull_threads = pipe_threads;
    static constexpr uint32_t pull_thread_blocks_per_sm = pipe_thread_blocks_per_sm;
    using pull = lone_pull;
    using pull_parts = pull_parts_shared;

    __device__ __forceinline__ static void run(const part &a, uint32_t thread, uint32_t threads) {
        move_blocks<W>(a, thread, threads);
    }
};

template <int W>
struct short_list_mover {
    static constexpr uint32_t pull_threads = pipe_threads;
    static constexpr uint32_t pull_thread_blocks_per_sm = pipe_thread_blocks_per_sm;
    using pull = short_pull;
    using pull_parts = short_pull_parts;

    __device__ __forceinline__ static void run(const short_pull_parts::piece &a, uint32_t thread,
                                               uint32_t threads) {
        constexpr int in_flight = W == 16 ? 2 : 4;
        move_short_piece<W, in_flight>(a.pull, a.list, a.of_list, thread, threads);
    }
};

template <class Locator>
struct windows_mover {
    __device__ __forceinline__ static void run(const part &a, uint32_t thread, uint32_t threads) {
        windows_thread<Locator>(a, threads * unroll_windows, thread_place{thread, threads, 0, 1});
    }
};
#endif

}  // namespace cuda_nc::exec
