// The warp of a mover's first thread block that reads the ring and deals the orders out.
#pragma once

#include "ucs/exec/kernels/instances/mover_words.cuh"
#include "ucs/gpu/mover_stay.hpp"

namespace cuda_nc::exec {

// Lines that the dealing warp looks at at once.
constexpr uint32_t lines_of_a_look = 4;

struct team_memory {
    __align__(16) uint32_t words[gpu::order_words];
    // Of the dealing warp alone: lines that it cuts into pieces.
    order_part lines[lines_of_a_look][gpu::order_parts];
    uint32_t done;  // of the first thread block: pieces that have ended, or have no use for `words`
    uint32_t go;    // 0: leave
};

// The pieces that a thread block has had, by its word. One that it gave up waiting for may have
// come since: that counts as one, so that no later launch takes it for its own.
__device__ __forceinline__ uint32_t had_before(uint64_t word) {
    const bool gave_up = static_cast<uint32_t>(word >> 32) == block_gave_up;
    return static_cast<uint32_t>(word) + (gave_up ? 1 : 0);
}

// What the taker sees. One access of each lane reads the next lines, as they often come together,
// and the word by which the kernel is asked to leave; another one, which is under way meanwhile,
// the lines behind those; a third what the thread blocks say.
class ring_view {
  public:
    static constexpr uint32_t parts = 1, ring_size = gpu::order_ring_size;
    using part = order_part;

    __device__ ring_view(const mover_arguments &a, uint32_t lane)
        : a_(a), lane_(lane), pulse_(a.how.pulse) {}

    // The value stays in the view: own_part().
    __device__ void read_part(uint64_t number, uint32_t, part *) {
        if (!holds(number)) {
            look(number);
        }
    }
    __device__ bool is_of(const part &, uint64_t number) const { return holds(number); }
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
    // Whether the last look has seen order `number`, ...
    __device__ bool holds(uint64_t number) const {
        return number - first_ < lines && (whole_ >> (number - first_) & 1) != 0;
    }
    // ... and it can be dealt out together with `first`, which it has.
    __device__ bool holds_beside(uint64_t first, uint64_t number) const {
        return holds(number) && is_ahead(first) == is_ahead(number);
    }
    // Orders seen behind `number`, which is in the window: others may have come.
    __device__ uint32_t behind(uint64_t number) const {
        return __popc(whole_ >> (number - first_ + 1));
    }
    // Whether what `number` says wants a fence before it is used.
    __device__ bool is_ahead(uint64_t number) const { return number - first_ >= lines_at_once; }
    // Of `number`, which is in the window, and of those that are held beside it: the lane that has
    // the first part of the order which comes `which` after it, ...
    __device__ uint32_t lane_of(uint64_t number, uint32_t which) const {
        const uint32_t begin = is_ahead(number) ? lines_at_once : 0;
        return (static_cast<uint32_t>(number - first_) - begin + which) * gpu::order_parts;
    }
    // ... which part this lane has, and of which order: from 0, for `number`, on.
    __device__ order_part own_part(uint64_t number) const {
        const bool ahead = is_ahead(number);
        order_part own;
        CUDA_NC_UNROLL
        for (uint32_t i = 0; i < gpu::part_words; ++i) {
            own.words[i] = ahead ? ahead_.words[i] : seen_.words[i];
        }
        own.tag = ahead ? ahead_.tag : seen_.tag;
        return own;
    }
    __device__ uint32_t own_line(uint64_t number) const {
        return (lane_ - lane_of(number, 0)) / gpu::order_parts;
    }

  private:
    static constexpr uint32_t lines_at_once = 3, lines_ahead = lines_of_a_look;
    static constexpr uint32_t lines = lines_at_once + lines_ahead;
    static_assert(lines_at_once * gpu::order_parts < warp_lanes &&
                  lines_ahead * gpu::order_parts <= warp_lanes);

    __device__ const order_part *part_of_line(uint64_t number) const {
        return &a_.shared->lines[number % ring_size].parts[lane_ % gpu::order_parts];
    }
    // By the lanes whose part is the one that belongs to it: the bits of lines that are whole.
    template <uint32_t Lines>
    __device__ static uint32_t whole_lines(uint32_t right) {
        constexpr uint32_t all = (1u << gpu::order_parts) - 1;
        uint32_t whole = 0;
        CUDA_NC_UNROLL
        for (uint32_t i = 0; i < Lines; ++i) {
            whole |= (right >> (i * gpu::order_parts) & all) == all ? 1u << i : 0;
        }
        return whole;
    }

    __device__ void look(uint64_t number) {
        const uint32_t line = lane_ / gpu::order_parts;
        ahead_ = load_ahead_from_host(part_of_line(number + lines_at_once + line));
        seen_ = load_from_host(line < lines_at_once
                                   ? part_of_line(number + line)
                                   : reinterpret_cast<const order_part *>(&a_.shared->stay));
        if (lane_ < mover_thread_blocks) {
            block_ = load_local(&a_.state->words[lane_]);
        }
        now_ = nanoseconds();
        first_ = number;
        const uint32_t right = __ballot_sync(all_lanes, seen_.tag == gpu::order_tag(number + line));
        const uint32_t right_ahead =
            __ballot_sync(all_lanes, ahead_.tag == gpu::order_tag(number + lines_at_once + line));
        whole_ = whole_lines<lines_at_once>(right) | whole_lines<lines_ahead>(right_ahead)
                                                         << lines_at_once;
        static_assert(offsetof(gpu::mover_memory::stay_words, pulse) == 8);
        constexpr int stay_lane = lines_at_once * gpu::order_parts;
        asked_ = __shfl_sync(all_lanes, uint64_t{seen_.words[1]} << 32 | seen_.words[0], stay_lane);
        pulse_ = __shfl_sync(all_lanes, uint64_t{seen_.tag} << 32 | seen_.words[2], stay_lane);
        now_ = __shfl_sync(all_lanes, now_, 0);
    }

    const mover_arguments &a_;
    const uint32_t lane_;
    order_part seen_ = {};   // each lane one part, from line first_ on, ...
    order_part ahead_ = {};  // ... and from lines_at_once behind it on
    uint64_t first_ = 0;
    uint32_t whole_ = 0;  // bits: lines that hold the order that belongs there
    uint64_t now_ = 0, asked_ = 0, block_ = 0;
    uint64_t pulse_;  // until the first look, as the launch says
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
        stay.begin(begun, a_.how.idle_ns, a_.how.away_ns, a_.how.pulse);
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
                // Others that have come with it are dealt out with it.
                const uint64_t first = taker.number();
                uint32_t number = 1;
                for (; taker.watches() && view_.holds_beside(first, first + number); ++number) {
                    taker.step(view_, {});
                }
                if (!deal(first, number)) {
                    // All that was given may have been taken: the CPU gives the mover up.
                    view_.store_position(gpu::dealer_gave_up);
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
               static_cast<uint32_t>(block >> 32) != block_gave_up;
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
    // Each lane for which `gives` holds gives its thread block, an idle one, a line: part_of(part),
    // but for the tag, of this lane.
    template <class Parts>
    __device__ void put(bool gives, Parts &&part_of) {
        if (gives && lane_ != 0) {
            CUDA_NC_UNROLL
            for (uint32_t part = 0; part < gpu::order_parts; ++part) {
                order_part own = part_of(part);
                own.tag = given_ + 1;
                store_in_box(&a_.state->boxes[lane_].parts[part], own);
            }
        } else if (gives) {
            CUDA_NC_UNROLL
            for (uint32_t part = 0; part < gpu::order_parts; ++part) {
                store_for_team(part, part_of(part));
            }
        }
        given_ += gives ? 1 : 0;
        __syncwarp();
        if (__shfl_sync(all_lanes, gives ? 1 : 0, 0) != 0) {
            wake_team();
        }
    }
    __device__ void store_for_team(uint32_t part, const order_part &own) {
        CUDA_NC_UNROLL
        for (uint32_t i = 0; i < gpu::part_words; ++i) {
            team_->words[part * gpu::part_words + i] = own.words[i];
        }
    }

    // Orders [first, first + count), which the view has seen together. False: the thread blocks do
    // not answer.
    __device__ bool deal(uint64_t first, uint32_t count) {
        static_assert(order_word::header == 0 && order_word::length == 1);
        uint32_t idle = __ballot_sync(all_lanes, is_idle(view_.block()));
        idle = idle != 0 ? idle : await();
        if (idle == 0) {
            return false;
        }
        // Orders that come together share the thread blocks: none waits until one has had all.
        const auto number_idle = static_cast<uint32_t>(__popc(idle));
        const uint32_t others = count - 1 + view_.behind(first + count - 1);
        const uint32_t share = others == 0 ? number_idle : number_idle / (1 + others);
        // Each lane that has the first part of a line cuts that order.
        const order_part own = view_.own_part(first);
        const uint32_t which = view_.own_line(first);
        const bool is_first = which < count && lane_ % gpu::order_parts == 0;
        order_cut cut = {0, 0};
        if (is_first) {
            cut = cut_order(own.words[order_word::length], share == 0 ? 1 : share);
        }
        if (__all_sync(all_lanes, cut.pieces <= 1) == 0) {
            return give_pieces(first, count, idle, cut);
        }
        while (idle != 0) {
            const uint32_t now = min_u32(count, static_cast<uint32_t>(__popc(idle)));
            give_whole(first, now, idle);
            first += now;
            count -= now;
            if (count == 0) {
                return true;
            }
            idle = await();
        }
        return false;
    }

    // What a thread block is told of its piece, in the part of a line where it stands.
    struct piece_place {
        uint32_t begin, end, pieces, number;
    };
    __device__ static void stamp(uint32_t part, uint64_t order, const piece_place &piece,
                                 order_part *own_p) {
        static_assert(order_word::place == 2 && order_word::begin == 3 && order_word::end == 4 &&
                      order_word::pieces == 5 && order_word::number == 21 &&
                      order_word::piece == 22 && gpu::part_words == 3);
        if (part == 0) {
            own_p->words[2] = static_cast<uint32_t>(order % gpu::order_ring_size);
        } else if (part == 1) {
            own_p->words[0] = piece.begin;
            own_p->words[1] = piece.end;
            own_p->words[2] = piece.pieces;
        } else if (part == 7) {
            own_p->words[0] = static_cast<uint32_t>(order);
            own_p->words[1] = piece.number;
        }
    }

    // One thread block for each order. Each lane passes on the part of a line that it has.
    __device__ void give_whole(uint64_t first, uint32_t count, uint32_t idle) {
        order_part own = view_.own_part(first);
        const uint32_t which = view_.own_line(first), part = lane_ % gpu::order_parts;
        uint32_t left = idle, to = 0;  // the thread block of this lane's order
        for (uint32_t i = 0; i < count; ++i) {
            to = i == which ? static_cast<uint32_t>(__ffs(static_cast<int>(left)) - 1) : to;
            left &= left - 1;
        }
        const uint32_t length =
            __shfl_sync(all_lanes, own.words[order_word::length], static_cast<int>(lane_ - part));
        own.tag = __shfl_sync(all_lanes, given_, static_cast<int>(to)) + 1;
        stamp(part, first + which, {0, length, 1, 0}, &own);
        const uint32_t given = idle & ~left;
        pass_on(first, given);
        if (which < count && to == 0) {
            store_for_team(part, own);
        } else if (which < count) {
            store_in_box(&a_.state->boxes[to].parts[part], own);
        }
        given_ += given >> lane_ & 1;
        __syncwarp();
        if ((given & 1) != 0) {
            wake_team();
        }
    }

    // What was seen with the lines is passed on to thread blocks `to`. The first one is told at a
    // barrier.
    __device__ void pass_on(uint64_t first, uint32_t to) const {
        if (view_.is_ahead(first)) {
            asm volatile("fence.acq_rel.sys;" ::: "memory");
        } else if ((to & ~1u) != 0) {
            asm volatile("fence.acq_rel.gpu;" ::: "memory");
        }
    }

    // `cut`: of the order whose first part this lane has.
    __device__ bool give_pieces(uint64_t first, uint32_t count, uint32_t idle,
                                const order_cut &its_cut) {
        // Pieces are numbered through all orders. From here on lane i knows about order i.
        const auto source = static_cast<int>(view_.lane_of(first, min_u32(lane_, count - 1)));
        const order_cut cut = {__shfl_sync(all_lanes, its_cut.pieces, source),
                               __shfl_sync(all_lanes, its_cut.length, source)};
        const uint32_t length =
            __shfl_sync(all_lanes, view_.own_part(first).words[order_word::length], source);
        uint32_t begin = 0, total = 0;  // of this lane's order, of all
        for (uint32_t i = 0; i < count; ++i) {
            const uint32_t pieces = __shfl_sync(all_lanes, cut.pieces, static_cast<int>(i));
            begin += i < lane_ ? pieces : 0;
            total += pieces;
        }
        if (view_.is_ahead(first)) {
            asm volatile("fence.acq_rel.sys;" ::: "memory");
        }
        if (view_.own_line(first) < count) {
            team_->lines[view_.own_line(first)][lane_ % gpu::order_parts] = view_.own_part(first);
        }
        __syncwarp();
        for (uint32_t piece = 0; piece < total;) {
            idle = idle != 0 ? idle : await();
            if (idle == 0) {
                return false;
            }
            const uint32_t mine = piece + __popc(idle & ((1u << lane_) - 1));
            const bool gives = (idle >> lane_ & 1) != 0 && mine < total;
            if (__any_sync(all_lanes, gives && lane_ != 0) != 0) {
                // Lanes pass on what others have seen.
                __syncwarp();
                asm volatile("fence.acq_rel.gpu;" ::: "memory");
            }
            give(first, count, mine, gives, cut, begin, length);
            piece += __popc(idle);
            idle = 0;
        }
        return true;
    }

    // Piece `mine` of orders [first, first + count), whose lines are there. `cut`, `begin`,
    // `length`: of the order with this lane's number.
    __device__ void give(uint64_t first, uint32_t count, uint32_t mine, bool gives,
                         const order_cut &cut, uint32_t begin, uint32_t length) {
        uint32_t which = 0;
        for (uint32_t i = 0; i + 1 < count; ++i) {
            const uint32_t end = __shfl_sync(all_lanes, begin + cut.pieces, static_cast<int>(i));
            which += mine >= end ? 1 : 0;
        }
        auto of_order = [&](uint32_t value) {
            return __shfl_sync(all_lanes, value, static_cast<int>(which));
        };
        const uint32_t pieces = of_order(cut.pieces), piece_length = of_order(cut.length);
        const uint32_t in_order = mine - of_order(begin), end = of_order(length);
        const uint64_t number = first + which;
        put(gives, [&](uint32_t part) {
            order_part own = team_->lines[which][part];
            stamp(part, number,
                  {in_order * piece_length, min_u32(end, (in_order + 1) * piece_length), pieces,
                   in_order},
                  &own);
            return own;
        });
    }

    // Tells all thread blocks to leave, behind what they were given. One that waits for a
    // multiprocessor finds it when it begins.
    __device__ void dismiss() {
        auto leave = [](uint32_t part) {
            order_part own = {};
            if (part == 0) {
                own.words[0] =
                    order_header(order_kind::leave, line_layout::dims1, 0, packed_side::none);
            }
            return own;
        };
        const uint64_t begun = nanoseconds();
        for (uint32_t left = every_block; left != 0;) {
            const uint64_t block =
                lane_ < mover_thread_blocks ? load_local(&a_.state->words[lane_]) : 0;
            const uint32_t quiet = __ballot_sync(all_lanes, is_quiet(block)) & left;
            if (quiet != 0) {
                put((quiet >> lane_ & 1) != 0, leave);
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

}  // namespace cuda_nc::exec
