// The kernel of a mover. In the first thread block one more warp reads the ring and deals the
// orders out: a short one goes to one thread block, a long one is cut into pieces for all that are
// idle, or for a share of them where others come with it. The first thread block gets its pieces in
// shared memory, at a barrier, so short orders by themselves go no further; the others wait for
// theirs in GPU memory, where that takes no turn of the bus.
#include "ucs/exec/kernels/instances/mover.cuh"

#include "ucs/exec/kernels/instances/end_store.cuh"
#include "ucs/exec/kernels/launch_mover.hpp"
#include "ucs/exec/kernels/move/order_moves.hpp"
#include "ucs/gpu/mover_stay.hpp"

namespace cuda_nc::exec {
namespace {

using gpu::order_part;

constexpr unsigned all_lanes = 0xffffffffu;
// In place of a launch, in the word of a thread block: it waits no more.
constexpr uint32_t given_up = 0xffffffffu;
static_assert(mover_thread_blocks <= warp_lanes && mover_threads + warp_lanes == 544,
              "a lane for each; the barriers' numbers");

// A part is read and written as a whole. Without 128-bit words of its own PTX promises that for
// halves alone, and GPUs do it for the whole. Who has read it sees what was done before it was
// written.
#if __CUDACC_VER_MAJOR__ > 12 || (__CUDACC_VER_MAJOR__ == 12 && __CUDACC_VER_MINOR__ >= 4)
#define CUDA_NC_LOAD_PART(scope)                                                                   \
    asm volatile("{.reg .b128 q; ld.acquire." scope ".global.b128 q, [%2]; mov.b128 {%0, %1}, q;}" \
                 : "=l"(low), "=l"(high)                                                           \
                 : "l"(from)                                                                       \
                 : "memory")
#define CUDA_NC_STORE_PART                                                                     \
    asm volatile(                                                                              \
        "{.reg .b128 q; mov.b128 q, {%1, %2}; st.relaxed.gpu.global.b128 [%0], q;}" ::"l"(to), \
        "l"(low), "l"(high)                                                                    \
        : "memory")
#else
#define CUDA_NC_LOAD_PART(scope)                                                               \
    asm volatile("ld.relaxed." scope ".global.v2.u64 {%0, %1}, [%2]; fence.acq_rel." scope ";" \
                 : "=l"(low), "=l"(high)                                                       \
                 : "l"(from)                                                                   \
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
__device__ __forceinline__ uint64_t load_local(const uint64_t *word) {
    uint64_t value;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
    return value;
}
__device__ __forceinline__ void store_local(uint64_t *word, uint64_t value) {
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
}
// Of shared memory. Who has loaded a value may write what its storer has read before.
__device__ __forceinline__ uint32_t load_shared(const uint32_t *word) {
    uint32_t value;
    asm volatile("ld.acquire.cta.shared.u32 %0, [%1];"
                 : "=r"(value)
                 : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(word)))
                 : "memory");
    return value;
}
__device__ __forceinline__ void store_shared(uint32_t *word, uint32_t value) {
    asm volatile("st.release.cta.shared.u32 [%0], %1;" ::"r"(
                     static_cast<uint32_t>(__cvta_generic_to_shared(word))),
                 "r"(value)
                 : "memory");
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
// Where the threads that move, of the first thread block, wait for the warp that deals.
__device__ __forceinline__ void wait_for_dealer() {
    asm volatile("bar.sync 2, 544;" ::: "memory");
}
__device__ __forceinline__ void wake_team() {
    __threadfence_block();
    asm volatile("bar.arrive 2, 544;" ::: "memory");
}

struct team_memory {
    __align__(16) uint32_t words[gpu::order_words];
    uint32_t done;  // of the first thread block: pieces that have ended, or have no use for `words`
    uint32_t go;    // 0: leave
};

// The pieces that a thread block has had, by its word. One that it gave up waiting for may have
// come since: that counts as one, so that no later launch takes it for its own.
__device__ __forceinline__ uint32_t had_before(uint64_t word) {
    const bool gave_up = static_cast<uint32_t>(word >> 32) == given_up;
    return static_cast<uint32_t>(word) + (gave_up ? 1 : 0);
}

// ---- the warp that deals

// What the taker sees. One access reads the next lines, as they often come together, and the word
// by which the kernel is asked to leave; another one what the thread blocks say.
class ring_view {
  public:
    static constexpr uint32_t parts = 1, ring_size = gpu::order_ring_size;
    using part = order_part;

    __device__ ring_view(const mover_arguments &a, uint32_t lane) : a_(a), lane_(lane) {}

    __device__ void read_part(uint64_t number, uint32_t, part *value) {
        if (number - first_ >= lines_at_once || (whole_ >> (number - first_) & 1) == 0) {
            look(number);
        }
        const uint32_t from = static_cast<uint32_t>(number - first_) * gpu::order_parts + lane_;
        for (uint32_t i = 0; i < gpu::part_words; ++i) {
            value->words[i] = __shfl_sync(all_lanes, seen_.words[i], static_cast<int>(from));
        }
    }
    __device__ bool is_of(const part &, uint64_t number) const {
        return (whole_ >> (number - first_) & 1) != 0;
    }
    __device__ void store_door(uint64_t word) const {
        if (lane_ == 0) {
            store_word(&a_.shared->door.value, word);
        }
        __syncwarp();
    }
    __device__ void store_position(uint64_t number) const {
        if (lane_ == 0) {
            store_word(&a_.shared->position.value, number);
        }
        __syncwarp();
    }
    // The lane that has stored, and those that load.
    __device__ void fence() {
        asm volatile("fence.sc.sys;" ::: "memory");
        __syncwarp();
        asm volatile("fence.sc.sys;" ::: "memory");
        whole_ = 0;
    }

    // Of the last look; alike in all lanes.
    __device__ uint64_t now() const { return now_; }
    __device__ uint64_t asked() const { return asked_; }
    __device__ uint64_t pulse() const { return pulse_; }
    // What the thread block of this lane says.
    __device__ uint64_t block() const { return block_; }
    // Orders seen behind `number`, which is in the window: others may have come.
    __device__ uint32_t behind(uint64_t number) const {
        return __popc(whole_ >> (number - first_ + 1));
    }

  private:
    static constexpr uint32_t lines_at_once = 3;
    static_assert(lines_at_once * gpu::order_parts < warp_lanes);

    __device__ void look(uint64_t number) {
        const uint32_t line = lane_ / gpu::order_parts;
        seen_ = load_from_host(
            line < lines_at_once
                ? &a_.shared->lines[(number + line) % ring_size].parts[lane_ % gpu::order_parts]
                : reinterpret_cast<const order_part *>(&a_.shared->stay));
        if (lane_ < mover_thread_blocks) {
            block_ = load_local(&a_.state->words[lane_]);
        }
        now_ = nanoseconds();
        first_ = number;
        const uint32_t right = __ballot_sync(all_lanes, seen_.tag == gpu::order_tag(number + line));
        whole_ = 0;
        for (uint32_t i = 0; i < lines_at_once; ++i) {
            constexpr uint32_t all = (1u << gpu::order_parts) - 1;
            whole_ |= (right >> (i * gpu::order_parts) & all) == all ? 1u << i : 0;
        }
        static_assert(offsetof(gpu::mover_memory::stay_words, pulse) == 8);
        constexpr int stay_lane = lines_at_once * gpu::order_parts;
        asked_ = __shfl_sync(all_lanes, uint64_t{seen_.words[1]} << 32 | seen_.words[0], stay_lane);
        pulse_ = __shfl_sync(all_lanes, uint64_t{seen_.tag} << 32 | seen_.words[2], stay_lane);
        now_ = __shfl_sync(all_lanes, now_, 0);
    }

    const mover_arguments &a_;
    const uint32_t lane_;
    order_part seen_ = {};  // each lane one part, from line first_ on
    uint64_t first_ = 0;
    uint32_t whole_ = 0;  // bits: lines that hold the order that belongs there
    uint64_t now_ = 0, asked_ = 0, pulse_ = 0, block_ = 0;
};

class dealer {
  public:
    __device__ dealer(const mover_arguments &a, uint32_t lane, team_memory *team)
        : a_(a), lane_(lane), team_(team), view_(a, lane) {
        // This launch's thread blocks count on from those before.
        if (lane < mover_thread_blocks) {
            given_ = had_before(load_local(&a.state->words[lane]));
        }
    }

    __device__ void run() {
        gpu::order_taker<ring_view> taker;
        const uint64_t position = load_word(&a_.shared->position.value);
        taker.begin(a_.how.instance, position > a_.how.first ? position : a_.how.first);
        const uint64_t begun = __shfl_sync(all_lanes, nanoseconds(), 0);
        gpu::mover_stay stay;
        stay.begin(begun, a_.how.idle_ns, a_.how.away_ns);
        using result = gpu::order_taker<ring_view>::result;
        for (;;) {
            gpu::order_taker<ring_view>::wishes wish;
            const uint64_t now = view_.now();
            wish.leave =
                view_.asked() >= a_.how.instance || (now > begun && now - begun > a_.stay_ns);
            stay.note_pulse(now, view_.pulse());
            wish.idle = stay.is_over(now) && quiet_blocks() == every_block;
            const result what = taker.step(view_, wish);
            if (what == result::gone) {
                break;
            }
            if (what == result::took) {
                if (!deal(taker.part(0), taker.number())) {
                    // All that was given may have been taken: the CPU gives the mover up.
                    view_.store_position(~uint64_t{0});
                    break;
                }
                stay.note_order(view_.now());
            }
        }
        dismiss();
    }

  private:
    static constexpr uint32_t every_block =
        static_cast<uint32_t>((uint64_t{1} << mover_thread_blocks) - 1);

    // The first one says it in shared memory.
    __device__ bool is_quiet(uint64_t block) const {
        const uint32_t done = lane_ == 0 ? load_shared(&team_->done) : static_cast<uint32_t>(block);
        return lane_ < mover_thread_blocks && done == given_ &&
               static_cast<uint32_t>(block >> 32) != given_up;
    }
    // By the last look: thread blocks that have ended all that they were given, ...
    __device__ uint32_t quiet_blocks() const {
        return __ballot_sync(all_lanes, is_quiet(view_.block()));
    }
    // ... and those of them that run: others wait for a multiprocessor.
    __device__ bool is_idle(uint64_t block) const {
        return is_quiet(block) &&
               (lane_ == 0 || static_cast<uint32_t>(block >> 32) == a_.how.instance);
    }
    // Those that are idle, at least one; 0: none was for a long time.
    __device__ uint32_t await() const {
        const uint64_t begun = nanoseconds();
        for (;;) {
            const uint64_t block =
                lane_ < mover_thread_blocks ? load_local(&a_.state->words[lane_]) : 0;
            const uint32_t idle = __ballot_sync(all_lanes, is_idle(block));
            if (idle != 0) {
                return idle;
            }
            if (__any_sync(all_lanes, nanoseconds() - begun > a_.patience_ns) != 0) {
                return 0;
            }
        }
    }
    // Each lane for which `gives` holds gives its thread block, an idle one, a line: the lanes of
    // lower numbers have its parts, and patch(part, &words) makes it the lane's own.
    template <class Patch>
    __device__ void put(bool gives, const order_part &line, Patch &&patch) {
        CUDA_NC_UNROLL
        for (uint32_t part = 0; part < gpu::order_parts; ++part) {
            order_part own = {{}, given_ + 1};
            for (uint32_t i = 0; i < gpu::part_words; ++i) {
                own.words[i] = __shfl_sync(all_lanes, line.words[i], static_cast<int>(part));
            }
            patch(part, own.words);
            if (gives && lane_ == 0) {
                for (uint32_t i = 0; i < gpu::part_words; ++i) {
                    team_->words[part * gpu::part_words + i] = own.words[i];
                }
            } else if (gives) {
                store_in_box(&a_.state->boxes[lane_].parts[part], own);
            }
        }
        given_ += gives ? 1 : 0;
        __syncwarp();
        if (__shfl_sync(all_lanes, gives ? 1 : 0, 0) != 0) {
            wake_team();
        }
    }

    // False: the thread blocks do not answer.
    __device__ bool deal(const order_part &line, uint64_t number) {
        static_assert(order_word::header == 0 && order_word::length == 1 &&
                      order_word::place == 2 && order_word::begin == 3 && order_word::end == 4 &&
                      order_word::pieces == 5 && order_word::number == 21);
        const uint32_t length = __shfl_sync(all_lanes, line.words[1], 0);
        uint32_t idle = __ballot_sync(all_lanes, is_idle(view_.block()));
        idle = idle != 0 ? idle : await();
        // Orders that come together share the thread blocks: none waits until one has had all.
        const uint32_t share = __popc(idle) / (1 + view_.behind(number));
        const uint32_t header = __shfl_sync(all_lanes, line.words[order_word::header], 0);
        const order_cut cut = cut_order(length, word_log2_of_order(header), share == 0 ? 1 : share);
        for (uint32_t piece = 0; piece < cut.pieces;) {
            idle = idle != 0 ? idle : await();
            if (idle == 0) {
                return false;
            }
            const uint32_t mine = piece + __popc(idle & ((1u << lane_) - 1));
            const bool gives = (idle >> lane_ & 1) != 0 && mine < cut.pieces;
            if (__any_sync(all_lanes, gives && lane_ != 0) != 0) {
                // What was seen with the line is passed on. The first thread block is told at a
                // barrier.
                __syncwarp();
                asm volatile("fence.acq_rel.gpu;" ::: "memory");
            }
            put(gives, line, [&](uint32_t part, uint32_t(&words)[gpu::part_words]) {
                if (part == 0) {
                    words[2] = static_cast<uint32_t>(number % gpu::order_ring_size);
                } else if (part == 1) {
                    words[0] = mine * cut.length;
                    words[1] = min_u32(length, (mine + 1) * cut.length);
                    words[2] = cut.pieces;
                } else if (part == 7) {
                    words[0] = static_cast<uint32_t>(number);
                    words[1] = mine;
                }
            });
            piece += __popc(idle);
            idle = 0;
        }
        return true;
    }

    // Tells all thread blocks to leave, behind what they were given. One that waits for a
    // multiprocessor finds it when it begins.
    __device__ void dismiss() {
        const order_part leave = {
            {lane_ == 0 ? order_header(order_kind::leave, 0, 0, packed_side::none) : 0, 0, 0}, 0};
        const uint64_t begun = nanoseconds();
        for (uint32_t left = every_block; left != 0;) {
            const uint64_t block =
                lane_ < mover_thread_blocks ? load_local(&a_.state->words[lane_]) : 0;
            const uint32_t quiet = __ballot_sync(all_lanes, is_quiet(block)) & left;
            if (quiet != 0) {
                put((quiet >> lane_ & 1) != 0, leave, [](uint32_t, uint32_t *) {});
                left &= ~quiet;
            } else if ((left & 1) == 0 &&
                       __any_sync(all_lanes, nanoseconds() - begun > a_.patience_ns) != 0) {
                break;  // they have given up, or will. The first one waits for nothing but this
            }
        }
    }

    const mover_arguments &a_;
    const uint32_t lane_;
    team_memory *const team_;
    ring_view view_;
    uint32_t given_ = 0;  // pieces that the thread block of this lane was given, of all launches
};

// ---- the threads that move

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
            if (lane == 0) {
                store_local(&a.state->words[blockIdx.x], block_word(tag - 1, given_up));
            }
            return false;
        }
    }
    if (lane < gpu::order_parts) {
        for (uint32_t i = 0; i < gpu::part_words; ++i) {
            team->words[lane * gpu::part_words + i] = mine.words[i];
        }
    }
    return true;
}

// True: there is a piece, and all threads see it.
__device__ bool next_piece(const mover_arguments &a, uint32_t tag, team_memory *team) {
    if (blockIdx.x == 0) {
        wait_for_dealer();
        return kind_of_order(team->words[order_word::header]) != order_kind::leave;
    }
    if (threadIdx.x < warp_lanes) {
        const bool came = await_piece(a, tag, team);
        __syncwarp();
        if (threadIdx.x == 0) {
            const bool leaves =
                came && kind_of_order(team->words[order_word::header]) == order_kind::leave;
            team->go = came && !leaves;
            if (leaves) {  // the next launch does not take this line for one of its own
                store_local(&a.state->words[blockIdx.x], block_word(tag, a.how.instance));
            }
        }
    }
    team_barrier();
    return team->go != 0;
}

// Ends with a barrier.
__device__ __forceinline__ void move_piece(team_memory *team) {
    const uint32_t *words = team->words;
    move_order_line(words, words[order_word::begin], words[order_word::end], threadIdx.x,
                    mover_threads);
    team_barrier();
}

__device__ void move_pieces(const mover_arguments &a, uint32_t before, team_memory *team) {
    uint32_t tag = before + 1;
    for (; next_piece(a, tag, team); ++tag) {
        move_piece(team);
        if (threadIdx.x == 0) {
            const uint32_t *words = team->words;
            uint32_t *end =
                &a.shared->ends[words[order_word::place]].words[words[order_word::piece]];
            const uint32_t header = words[order_word::header];
            const uint32_t value =
                gpu::end_word(words[order_word::number], words[order_word::pieces]);
            // The dealer may give the next line: this thread comes for it when the end is told.
            if (blockIdx.x == 0) {
                store_shared(&team->done, tag);
            } else {
                store_local(&a.state->words[blockIdx.x], block_word(tag, a.how.instance));
            }
            store_end(end, value, is_into_own_memory(header));
        }
    }
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        store_local(&a.state->words[0], block_word(tag, a.how.instance));
    }
}

__global__ void __launch_bounds__(mover_threads + warp_lanes, 1)
    mover_loop(const __grid_constant__ mover_arguments a) {
    __shared__ team_memory team;
    const uint32_t before = had_before(load_local(&a.state->words[blockIdx.x]));
    if (blockIdx.x == 0) {
        if (threadIdx.x == 0) {
            team.done = before;
        }
        __syncthreads();
        if (threadIdx.x >= mover_threads) {
            return dealer(a, threadIdx.x - mover_threads, &team).run();
        }
    } else if (threadIdx.x >= mover_threads) {
        return;
    } else if (threadIdx.x == 0) {
        store_local(&a.state->words[blockIdx.x], block_word(before, a.how.instance));
    }
    move_pieces(a, before, &team);
}

}  // namespace

const void *mover_kernel() noexcept {
    return reinterpret_cast<const void *>(mover_loop);
}

}  // namespace cuda_nc::exec
