// The kernel of a mover. In the first thread block one more warp reads the ring and deals the
// orders out: a short one goes to one thread block, a long one is cut into pieces for all that are
// idle. The thread blocks wait for their pieces in GPU memory, where that takes no turn of the bus.
#include "ucs/exec/kernels/instances/mover.cuh"

#include "ucs/exec/kernels/launch_mover.hpp"
#include "ucs/exec/kernels/move/order_moves.hpp"

namespace cuda_nc::exec {
namespace {

using gpu::order_part;

constexpr unsigned all_lanes = 0xffffffffu;
static_assert(mover_thread_blocks <= warp_lanes - gpu::order_parts, "a lane for each");

// A part is read and written as a whole. Without 128-bit words of its own PTX promises that for
// halves alone, and GPUs do it for the whole.
#if __CUDACC_VER_MAJOR__ > 12 || (__CUDACC_VER_MAJOR__ == 12 && __CUDACC_VER_MINOR__ >= 4)
#define CUDA_NC_LOAD_PART(scope)                                                                   \
    asm volatile("{.reg .b128 q; ld.relaxed." scope ".global.b128 q, [%2]; mov.b128 {%0, %1}, q;}" \
                 : "=l"(low), "=l"(high)                                                           \
                 : "l"(from)                                                                       \
                 : "memory")
#define CUDA_NC_STORE_PART                                                                     \
    asm volatile(                                                                              \
        "{.reg .b128 q; mov.b128 q, {%1, %2}; st.relaxed.gpu.global.b128 [%0], q;}" ::"l"(to), \
        "l"(low), "l"(high)                                                                    \
        : "memory")
#else
#define CUDA_NC_LOAD_PART(scope)                                      \
    asm volatile("ld.relaxed." scope ".global.v2.u64 {%0, %1}, [%2];" \
                 : "=l"(low), "=l"(high)                              \
                 : "l"(from)                                          \
                 : "memory")
#define CUDA_NC_STORE_PART                                                                     \
    asm volatile("st.relaxed.gpu.global.v2.u64 [%0], {%1, %2};" ::"l"(to), "l"(low), "l"(high) \
                 : "memory")
#endif

__device__ __forceinline__ order_part part_of(uint64_t low, uint64_t high) {
    return {
        {static_cast<uint32_t>(low), static_cast<uint32_t>(low >> 32), static_cast<uint32_t>(high)},
        static_cast<uint32_t>(high >> 32)};
}
__device__ __forceinline__ order_part load_from_host(const order_part *from) {
    uint64_t low, high;
    CUDA_NC_LOAD_PART("sys");
    return part_of(low, high);
}
__device__ __forceinline__ order_part load_from_box(const order_part *from) {
    uint64_t low, high;
    CUDA_NC_LOAD_PART("gpu");
    return part_of(low, high);
}
__device__ __forceinline__ void store_in_box(order_part *to, const order_part &value) {
    const uint64_t low = uint64_t{value.words[1]} << 32 | value.words[0];
    const uint64_t high = uint64_t{value.tag} << 32 | value.words[2];
    CUDA_NC_STORE_PART;
}

__device__ __forceinline__ uint64_t load_word(const uint64_t *word) {
    uint64_t value;
    asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
    return value;
}
__device__ __forceinline__ void store_word(uint64_t *word, uint64_t value) {
    asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
}
__device__ __forceinline__ void release_word(uint64_t *word, uint64_t value) {
    asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
}
__device__ __forceinline__ uint32_t load_count(const uint32_t *count) {
    uint32_t value;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(count) : "memory");
    return value;
}
__device__ __forceinline__ void release_count(uint32_t *count, uint32_t value) {
    asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(count), "r"(value) : "memory");
}
__device__ __forceinline__ uint64_t nanoseconds() {
    uint64_t value;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(value));
    return value;
}
// Of the threads that move: not of the warp that deals.
__device__ __forceinline__ void team_barrier() {
    static_assert(mover_threads == 512);
    asm volatile("bar.sync 1, 512;" ::: "memory");
}

// ---- the warp that deals

// What the taker sees: each of the first lanes has one part of the line.
struct ring_view {
    static constexpr uint32_t parts = 1, ring_size = gpu::order_ring_size;
    using part = order_part;

    gpu::mover_memory *shared;
    uint32_t lane;

    __device__ void read_part(uint64_t number, uint32_t, part *value) const {
        if (lane < gpu::order_parts) {
            *value = load_from_host(&shared->lines[number % ring_size].parts[lane]);
        }
    }
    __device__ bool is_of(const part &value, uint64_t number) const {
        return __all_sync(all_lanes,
                          lane >= gpu::order_parts || value.tag == gpu::order_tag(number)) != 0;
    }
    __device__ void store_door(uint64_t word) const {
        if (lane == 0) {
            store_word(&shared->door.value, word);
        }
        __syncwarp();
    }
    __device__ void store_position(uint64_t number) const {
        if (lane == 0) {
            store_word(&shared->position.value, number);
        }
        __syncwarp();
    }
    // The lane that has stored, and those that load.
    __device__ void fence() const {
        asm volatile("fence.sc.sys;" ::: "memory");
        __syncwarp();
        asm volatile("fence.sc.sys;" ::: "memory");
    }
};

class dealer {
  public:
    __device__ dealer(const mover_arguments &a, uint32_t lane)
        : a_(a), lane_(lane), given_(lane < mover_thread_blocks ? a.state->done[lane] : 0) {}

    __device__ void run() {
        ring_view view = {a_.shared, lane_};
        gpu::order_taker<ring_view> taker;
        const uint64_t position = load_word(&a_.shared->position.value);
        taker.begin(a_.how.instance, position > a_.how.first ? position : a_.how.first);
        const uint64_t begun = nanoseconds();
        uint64_t last = begun;
        using result = gpu::order_taker<ring_view>::result;
        for (;;) {
            const uint64_t now = nanoseconds();
            const uint64_t asked = load_word(&a_.shared->asked.value);
            gpu::order_taker<ring_view>::wishes wish;
            // Lanes agree, or else they would take different ways.
            wish.leave =
                __any_sync(all_lanes, asked >= a_.how.instance || now - begun > a_.stay_ns) != 0;
            wish.idle = __any_sync(all_lanes, now - last > a_.how.idle_ns) != 0 &&
                        idle_blocks() == every_block;
            const result what = taker.step(view, wish);
            if (what == result::gone) {
                break;
            }
            if (what == result::took) {
                if (!deal(taker.part(0), taker.number())) {
                    // All that was given may have been taken: the CPU gives the mover up.
                    view.store_position(~uint64_t{0});
                    break;
                }
                last = nanoseconds();
            }
        }
        const order_part leave = {{order_header(order_kind::leave, {}, 0), 0, 0}, 0};
        for (uint32_t block = 0; block < mover_thread_blocks; ++block) {
            if (!await(1u << block)) {
                break;  // it has given up, and so will the others
            }
            put(block, leave);
        }
    }

  private:
    static constexpr uint32_t every_block =
        static_cast<uint32_t>((uint64_t{1} << mover_thread_blocks) - 1);

    // The thread blocks that have ended all that they were given.
    __device__ uint32_t idle_blocks() const {
        const bool idle =
            lane_ < mover_thread_blocks && load_count(&a_.state->done[lane_]) == given_;
        return __ballot_sync(all_lanes, idle);
    }
    // Those of `wanted` that are idle, at least one; 0: none was for a long time.
    __device__ uint32_t await(uint32_t wanted) const {
        const uint64_t begun = nanoseconds();
        for (;;) {
            const uint32_t idle = idle_blocks() & wanted;
            if (idle != 0) {
                return idle;
            }
            if (__any_sync(all_lanes, nanoseconds() - begun > a_.patience_ns) != 0) {
                return 0;
            }
        }
    }
    // Writes a line into the box of an idle thread block.
    __device__ void put(uint32_t block, order_part value) {
        value.tag = __shfl_sync(all_lanes, given_, block) + 1;
        if (lane_ < gpu::order_parts) {
            store_in_box(&a_.state->boxes[block].parts[lane_], value);
        }
        given_ += lane_ == block ? 1 : 0;
        __syncwarp();
    }

    // False: the thread blocks do not answer.
    __device__ bool deal(order_part line, uint64_t number) {
        // What the CPU wrote before the line is seen, and passed on with it.
        asm volatile("fence.acq_rel.sys;" ::: "memory");
        __syncwarp();
        static_assert(order_word::length == 1 && order_word::place == 2 && order_word::begin == 3 &&
                      order_word::end == 4 && order_word::pieces == 5 && order_word::number == 21);
        const uint32_t length = __shfl_sync(all_lanes, line.words[1], 0);
        uint32_t idle = await(every_block);
        const order_cut cut = cut_order(length, __popc(idle));
        for (uint32_t piece = 0; piece < cut.pieces; ++piece) {
            if (idle == 0) {
                idle = await(every_block);
            }
            if (idle == 0) {
                return false;
            }
            if (lane_ == 0) {
                line.words[2] = static_cast<uint32_t>(number % gpu::order_ring_size);
            } else if (lane_ == 1) {
                line.words[0] = piece * cut.length;
                line.words[1] = min_u32(length, (piece + 1) * cut.length);
                line.words[2] = cut.pieces;
            } else if (lane_ == 7) {
                line.words[0] = static_cast<uint32_t>(number);
                line.words[1] = static_cast<uint32_t>(number >> 32);
            }
            const uint32_t block = static_cast<uint32_t>(__ffs(static_cast<int>(idle))) - 1;
            put(block, line);
            idle &= idle - 1;
        }
        return true;
    }

    const mover_arguments &a_;
    const uint32_t lane_;
    uint32_t given_;  // pieces that the thread block of this lane was given, of all launches
};

// ---- the threads that move

struct team_memory {
    uint32_t words[gpu::order_words];
    uint32_t go;  // 0: leave
    __align__(16) unsigned char body[sizeof(order_body)];
    __align__(16) unsigned char tables[mover_threads / warp_lanes * sizeof(unit_table)];
    __align__(16) char slot[order_slot];
};

// Waits for the piece whose tag is `tag`, by one warp. False: none came for too long.
__device__ bool await_piece(const mover_arguments &a, uint32_t tag, team_memory *team) {
    const uint32_t lane = threadIdx.x;
    const order_part *box = a.state->boxes[blockIdx.x].parts;
    const uint64_t begun = nanoseconds();
    order_part mine = {};
    for (uint32_t tries = 1;; ++tries) {
        if (lane < gpu::order_parts) {
            mine = load_from_box(box + lane);
        }
        if (__all_sync(all_lanes, lane >= gpu::order_parts || mine.tag == tag) != 0) {
            break;
        }
        if (tries % 64 == 0 && __any_sync(all_lanes, nanoseconds() - begun > a.patience_ns) != 0) {
            return false;
        }
    }
    // After it this multiprocessor sees what was there before the piece was dealt.
    asm volatile("fence.acq_rel.gpu;" ::: "memory");
    if (lane < gpu::order_parts) {
        for (uint32_t i = 0; i < gpu::part_words; ++i) {
            team->words[lane * gpu::part_words + i] = mine.words[i];
        }
    }
    return true;
}

// Bytes that the CPU has written before the order: not by way of a cache.
__device__ void fetch_body(const unsigned char *from, unsigned char *to) {
    const auto *source = reinterpret_cast<const uint32_t *>(from);
    auto *target = reinterpret_cast<uint32_t *>(to);
    for (uint32_t i = threadIdx.x; i < sizeof(order_body) / sizeof(uint32_t); i += mover_threads) {
        uint32_t value;
        asm volatile("ld.relaxed.sys.global.u32 %0, [%1];"
                     : "=r"(value)
                     : "l"(source + i)
                     : "memory");
        target[i] = value;
    }
}

// The piece that the line describes.
__device__ void move_piece(const mover_arguments &a, team_memory *team) {
    auto *body = reinterpret_cast<order_body *>(team->body);
    const uint32_t *words = team->words;
    if (kind_of_order(words[order_word::header]) == order_kind::in_body) {
        fetch_body(a.shared->bodies[words[order_word::place]], team->body);
    } else if (threadIdx.x == 0) {
        read_order_line(words, body);
    }
    team_barrier();
    const uint32_t number = body->num_parts, end = words[order_word::end];
    const uint32_t step = number == 1 ? end : order_slot;
    unit_table *own = reinterpret_cast<unit_table *>(team->tables) + threadIdx.x / warp_lanes;
    const lanes_in_step lanes{threadIdx.x % warp_lanes};
    for (uint32_t at = words[order_word::begin]; at < end; at += step) {
        if (threadIdx.x < number) {
            narrow_order(body, threadIdx.x, at, min_u32(end - at, step) + at, team->slot);
        }
        team_barrier();
        for (uint32_t which = 0; which < number; ++which) {
            move_order_part(body->mover, body->parts[which], threadIdx.x, mover_threads, own,
                            lanes);
            team_barrier();
        }
    }
}

// One thread of the thread block, behind a barrier of all that have moved. The last thread block of
// an order tells the CPU.
__device__ void tell_end(const mover_arguments &a, const uint32_t *words) {
    const uint32_t place = words[order_word::place], pieces = words[order_word::pieces];
    const uint64_t number =
        uint64_t{words[order_word::number + 1]} << 32 | words[order_word::number];
    if (pieces > 1) {
        __threadfence_system();
        if (atomicAdd(&a.state->arrived[place], 1u) != pieces - 1) {
            return;
        }
        a.state->arrived[place] = 0;
        __threadfence_system();
    }
    release_word(&a.shared->ends[place].value, number);
}

__device__ void move_pieces(const mover_arguments &a) {
    __shared__ team_memory team;
    for (uint32_t tag = a.state->done[blockIdx.x] + 1;; ++tag) {
        if (threadIdx.x < warp_lanes) {
            const bool came = await_piece(a, tag, &team);
            __syncwarp();
            if (threadIdx.x == 0) {
                const bool leaves =
                    came && kind_of_order(team.words[order_word::header]) == order_kind::leave;
                team.go = came && !leaves;
                if (leaves) {  // the next launch does not take this line for one of its own
                    release_count(&a.state->done[blockIdx.x], tag);
                }
            }
        }
        team_barrier();
        if (team.go == 0) {
            break;
        }
        move_piece(a, &team);
        if (threadIdx.x == 0) {
            tell_end(a, team.words);
            release_count(&a.state->done[blockIdx.x], tag);
        }
        team_barrier();  // the line may be overwritten
    }
}

__global__ void __launch_bounds__(mover_threads + warp_lanes, 1)
    mover_loop(const __grid_constant__ mover_arguments a) {
    if (threadIdx.x < mover_threads) {
        move_pieces(a);
    } else if (blockIdx.x == 0) {
        dealer(a, threadIdx.x - mover_threads).run();
    }
}

}  // namespace

const void *mover_kernel() noexcept {
    return reinterpret_cast<const void *>(mover_loop);
}

}  // namespace cuda_nc::exec
