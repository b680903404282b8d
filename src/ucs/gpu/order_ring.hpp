// How a CPU gives orders to a kernel that stays, and how the kernel leaves without losing one.
//
// Orders are numbered from 1 and lie in a ring of lines in pinned memory: order n in line n %
// order_ring_size. (Orders of a set have numbers and ends, but no lines.) A line has parts of 16
// bytes, each of which is written and read whole; each carries the low bits of the order's number,
// its tag. The kernel believes a line whose tags are all those of the order it waits for, and else
// reads it again: so it may see the parts late, and in any order. A line is written again only when
// the order before it has ended.
//
// Leaving: the kernel writes to the door (a word in pinned memory) that it leaves before order n,
// fences, and looks at line n once more. The CPU writes its order, fences, and looks at the door.
// One of the two sees the other (Dekker): either the kernel takes the order, or the CPU launches
// another kernel. Where both see each other the new kernel, which runs behind the old one on the
// same stream, begins where that stopped (`position`): so no order is taken twice. A kernel that
// has looked again and goes says so, at the door too: then whoever does not want to launch another
// one knows which of its orders were not taken, and takes them back.
//
// Ends: the kernel may cut an order into pieces, and each piece tells of its own end by a word of
// the order's end line; each word says how many pieces there are. So no piece waits for another,
// and the CPU finds all words in one cache line.
//
// Two state machines, each step of which makes one access to shared memory. `Memory` makes the
// accesses: on a GPU, on the simulated GPU, and in a test that goes through all interleavings.
#pragma once

#include <cstdint>

#include "ucs/base/compiler.hpp"

namespace cuda_nc::gpu {

constexpr uint32_t order_ring_size = 256;  // orders that have not ended, at most
constexpr uint32_t order_parts = 8;        // of a line
constexpr uint32_t part_words = 3;         // of a part, beside its tag
constexpr uint32_t order_words = order_parts * part_words;

struct alignas(16) order_part {
    uint32_t words[part_words];
    uint32_t tag;
};
struct alignas(order_parts * sizeof(order_part)) order_line {
    order_part parts[order_parts];
};

CUDA_NC_HD uint32_t order_tag(uint64_t number) {
    return static_cast<uint32_t>(number);
}

constexpr uint32_t most_order_pieces = 16;

struct alignas(64) order_ends {
    uint32_t words[most_order_pieces];  // zero before the first order
};
// What each of the `pieces` pieces of order `number` writes into its word. Never 0.
constexpr uint32_t end_pieces_bits = 5, end_tag_bits = 32 - end_pieces_bits;
static_assert(most_order_pieces < 1u << end_pieces_bits);
CUDA_NC_HD uint32_t end_word(uint64_t number, uint32_t pieces) {
    return static_cast<uint32_t>(number) << end_pieces_bits | pieces;
}
// Whether all pieces of order `number` have ended. What they have moved is there for the caller.
inline bool has_ended(const order_ends &line, uint64_t number) noexcept {
    const uint32_t first = __atomic_load_n(&line.words[0], __ATOMIC_ACQUIRE);
    const uint32_t pieces = first & ((1u << end_pieces_bits) - 1);
    bool ended = pieces != 0 && pieces <= most_order_pieces && first == end_word(number, pieces);
    for (uint32_t i = 1; ended && i < pieces; ++i) {
        ended = __atomic_load_n(&line.words[i], __ATOMIC_ACQUIRE) == first;
    }
    return ended;
}
// Whether the words of an earlier order could be taken for those of `number`, the first one in its
// place since numbers have come round: the CPU zeroes them before, and where it writes no line of
// the ring makes sure that none is left there which could be taken for a later order's.
constexpr bool must_zero_ends(uint64_t number) {
    return (number & ((uint64_t{1} << end_tag_bits) - 1)) < order_ring_size;
}

// What a mover's kernel says of itself, in one word. Before the first launch: instance 0 leaves
// before order 1.
struct mover_door {
    uint32_t next = 1;      // low bits of the first order that the kernel has not taken, ...
    uint32_t instance = 0;  // launches up to this kernel's
    bool leaving = true;    // ... if it leaves ...
    bool gone = false;      // ... and takes none any more

    static constexpr uint32_t instance_bits = 30, instance_mask = (1u << instance_bits) - 1;

    CUDA_NC_HD uint64_t word() const {
        return uint64_t{next} << 32 | uint64_t{instance} << 2 | (gone ? 2 : 0) | (leaving ? 1 : 0);
    }
    CUDA_NC_HD static mover_door of(uint64_t word) {
        mover_door made;
        made.next = static_cast<uint32_t>(word >> 32);
        made.instance = static_cast<uint32_t>(word) >> 2;
        made.gone = (word & 2) != 0;
        made.leaving = (word & 1) != 0;
        return made;
    }
    // Whether it is the last of `launched` kernels that has said this.
    CUDA_NC_HD bool is_of_last(uint32_t launched) const {
        return instance == (launched & instance_mask);
    }
    // Whether that one is there, and has not said that it leaves.
    CUDA_NC_HD bool is_open(uint32_t launched) const { return !leaving && is_of_last(launched); }
    // Whether that one has said that it leaves: it may still take an order, and stay.
    CUDA_NC_HD bool leaves(uint32_t launched) const { return leaving && is_of_last(launched); }
    // Whether it takes none any more.
    CUDA_NC_HD bool is_gone(uint32_t launched) const { return gone && is_of_last(launched); }
    // Whether nobody is sure to take order `number`, after `launched` launches. Fewer than 2^31
    // were given since that kernel's first.
    CUDA_NC_HD bool misses(uint64_t number, uint32_t launched) const {
        return leaves(launched) && static_cast<int32_t>(static_cast<uint32_t>(number) - next) >= 0;
    }
    // Whether the last of `launched` kernels has gone. Then *first_p is the first order that it has
    // not taken; fewer than 2^32 have been given since, before `given`.
    CUDA_NC_HD bool has_gone(uint32_t launched, uint64_t given, uint64_t *first_p) const {
        *first_p = given - (static_cast<uint32_t>(given) - next);
        return is_gone(launched);
    }
};

// The CPU's side: writes a set of orders, fences once, and looks at the door.
// Memory: write_part(number, part), fence(), load_door().
template <class Memory>
class order_giver {
  public:
    // Orders [first, first + count), count >= 1, after `launched` launches.
    CUDA_NC_HD void begin(uint64_t first, uint32_t count, uint32_t launched) {
        number_ = first;
        last_ = first + count - 1;
        launched_ = launched;
        part_ = 0;
        late_ = false;
        at_ = place::writes;
    }
    // True: done.
    CUDA_NC_HD bool step(Memory &memory) {
        switch (at_) {
            case place::writes:
                memory.write_part(number_, part_);
                if (++part_ == Memory::parts) {
                    part_ = 0;
                    at_ = number_ == last_ ? place::fences : at_;
                    ++number_;
                }
                return false;
            case place::fences:
                memory.fence();
                at_ = place::looks;
                return false;
            case place::looks:
                late_ = mover_door::of(memory.load_door()).misses(last_, launched_);
                at_ = place::done;
                break;
            case place::done:
                break;
        }
        return true;
    }
    // When done: another kernel has to be launched for these orders.
    CUDA_NC_HD bool is_late() const { return late_; }
    CUDA_NC_HD bool fences() const { return at_ == place::fences; }

  private:
    enum class place : uint8_t { writes, fences, looks, done };
    uint64_t number_ = 0, last_ = 0;
    uint32_t launched_ = 0, part_ = 0;
    place at_ = place::done;
    bool late_ = false;
};

// The kernel's side: takes orders one after the other, and leaves.
// Memory: part, parts, ring_size; read_part(number, part, &value), is_of(value, number),
// store_door(word), store_position(number), fence().
template <class Memory>
class order_taker {
  public:
    enum class result : uint8_t {
        nothing,
        took,  // order number(), whose parts are read
        gone   // no step follows
    };
    struct wishes {
        bool idle = false;   // nothing has come for so long that it does not pay to stay
        bool leave = false;  // it must leave: it was asked to, or has stayed long enough
    };

    // `next`: the first order that no kernel has taken.
    CUDA_NC_HD void begin(uint32_t instance, uint64_t next) {
        instance_ = instance & mover_door::instance_mask;
        next_ = next;
        at_ = place::enters;
        part_ = after_ = 0;
        whole_ = true;
        must_ = false;
    }

    CUDA_NC_HD result step(Memory &memory, wishes wish) {
        switch (at_) {
            case place::enters:
                say(memory, false, false);
                at_ = place::watches;
                break;
            case place::watches:
                if (part_ == 0 && (wish.leave || wish.idle)) {
                    must_ = wish.leave;
                    after_ = 0;
                    say(memory, true, false);
                    at_ = place::fences;
                    break;
                }
                return look(memory) && whole_ ? take() : result::nothing;
            case place::fences:
                memory.fence();
                at_ = place::looks_again;
                break;
            case place::looks_again:
                if (!look(memory)) {
                    break;
                }
                if (!whole_) {
                    at_ = place::leaves;
                    break;
                }
                // Orders that were given while the door did not say that it leaves fit into the
                // ring: all of them are taken now.
                if (!must_) {
                    at_ = place::enters;
                } else if (++after_ == Memory::ring_size) {
                    at_ = place::leaves;
                }
                return take();
            case place::leaves:
                memory.store_position(next_);
                at_ = place::says;
                break;
            case place::says:
                say(memory, true, true);
                at_ = place::gone;
                return result::gone;
            case place::gone:
                return result::gone;
        }
        return result::nothing;
    }

    CUDA_NC_HD uint64_t number() const { return next_ - 1; }  // of the order taken last
    CUDA_NC_HD const typename Memory::part &part(uint32_t which) const { return parts_[which]; }
    CUDA_NC_HD bool fences() const { return at_ == place::fences; }
    CUDA_NC_HD bool watches() const { return at_ == place::watches && part_ == 0; }

  private:
    enum class place : uint8_t { enters, watches, fences, looks_again, leaves, says, gone };

    CUDA_NC_HD void say(Memory &memory, bool leaving, bool gone) const {
        mover_door door;
        door.next = static_cast<uint32_t>(next_);
        door.instance = instance_;
        door.leaving = leaving;
        door.gone = gone;
        memory.store_door(door.word());
    }
    // Reads one part. True: that was the last, and whole_ says what the look has found.
    CUDA_NC_HD bool look(Memory &memory) {
        const uint32_t which = Memory::parts == 1 ? 0 : part_;
        memory.read_part(next_, which, &parts_[which]);
        whole_ = (which == 0 || whole_) && memory.is_of(parts_[which], next_);
        part_ = which + 1 == Memory::parts ? 0 : which + 1;
        return part_ == 0;
    }
    CUDA_NC_HD result take() {
        ++next_;
        return result::took;
    }

    uint64_t next_ = 1;
    uint32_t instance_ = 0, part_ = 0;
    uint32_t after_ = 0;  // orders taken since it said that it must leave
    place at_ = place::gone;
    bool whole_ = false, must_ = false;
    typename Memory::part parts_[Memory::parts];
};

}  // namespace cuda_nc::gpu
