// All interleavings of a CPU that gives orders and of kernels that take them and leave, in a small
// model: stores of both become visible late and out of order, kernels start late, lines are read
// part by part, numbers wrap. And that each fault planted in the model is found.
#include "ucs/gpu/order_ring.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

namespace cuda_nc::gpu {
namespace {

constexpr uint32_t slots = 2, parts = 2, most_orders = 6, most_stores = 6, most_launches = 8;
constexpr uint32_t tag_period = 4;  // tags repeat every so many orders

// What the model leaves out, so that it goes wrong.
struct faults {
    bool cpu_fence = false, kernel_fence = false, second_look = false, tags = false,
         stream_order = false, ends = false, position = false, gone = false, first = false;
};

struct line_part {
    uint8_t payload = 0, tag = 0;
};

// A store that its maker alone sees yet.
struct store {
    enum kind : uint8_t { part, door, end, position } what = part;
    uint8_t slot = 0, index = 0;
    uint8_t unused[5] = {};
    uint64_t value = 0;
    store(kind what_, uint64_t slot_, uint64_t index_, uint64_t value_)
        : what(what_),
          slot(static_cast<uint8_t>(slot_)),
          index(static_cast<uint8_t>(index_)),
          value(value_) {}
    store() = default;
    bool same_place(const store &other) const {
        return what == other.what && slot == other.slot && index == other.index;
    }
};
struct store_buffer {
    store all[most_stores];
    uint8_t count = 0;
    void add(const store &one) { all[count++] = one; }
    void remove(uint32_t which) {
        std::memmove(all + which, all + which + 1, (count - which - 1) * sizeof(store));
        all[--count] = store();
    }
    bool may_leave(uint32_t which) const {  // only stores to one place stay in order
        for (uint32_t i = 0; i < which; ++i) {
            if (all[i].same_place(all[which])) {
                return false;
            }
        }
        return true;
    }
};

struct shared_memory {
    line_part lines[slots][parts];
    uint64_t door = mover_door().word();
    uint64_t position = 1;
    uint64_t ends[slots] = {};
    void apply(const store &one) {
        switch (one.what) {
            case store::part:
                lines[one.slot][one.index] = {static_cast<uint8_t>(one.value >> 8),
                                              static_cast<uint8_t>(one.value)};
                break;
            case store::door:
                door = one.value;
                break;
            case store::end:
                ends[one.slot] = one.value;
                break;
            case store::position:
                position = one.value;
                break;
        }
    }
};

// What the machines see.
struct cpu_view {
    static constexpr uint32_t parts = gpu::parts;
    shared_memory *memory;
    store_buffer *buffer;
    void write_part(uint64_t number, uint32_t part) {
        buffer->add({store::part, number % slots, part, number << 8 | number % tag_period});
    }
    void fence() {}  // taken only when the buffer is empty
    uint64_t load_door() const { return memory->door; }
};
struct kernel_view {
    static constexpr uint32_t parts = gpu::parts, ring_size = slots;
    using part = line_part;
    shared_memory *memory;
    store_buffer *buffer;
    bool checks_tags;
    uint32_t read = 0;
    void read_part(uint64_t number, uint32_t which, part *value) {
        read = which;
        *value = memory->lines[number % slots][which];
    }
    bool is_of(const part &value, uint64_t number) const {
        return (!checks_tags && read != 0) || value.tag == number % tag_period;
    }
    void store_door(uint64_t word) { buffer->add({store::door, 0, 0, word}); }
    void store_position(uint64_t number) { buffer->add({store::position, 0, 0, number}); }
    void fence() {}
};

struct kernel {
    order_taker<kernel_view> machine;
    store_buffer buffer;
    bool runs = false, is_gone = false;
};

// Everything.
struct state {
    shared_memory memory;
    order_giver<cpu_view> giver;
    store_buffer cpu_buffer;
    kernel kernels[2];  // the second only where the stream does not order them
    uint8_t given = 0;  // orders begun
    bool giving = false, owes_launch = false, asked_once = false;
    bool to_present = false;   // what is given is taken back rather than another kernel launched
    bool taking_back = false;  // the kernel has said that it leaves
    bool taken_back = false;   // once
    uint8_t first = 0;         // orders before it are taken, or taken back
    bool cancelled[most_orders + 1] = {};  // taken back
    uint8_t launched = 0, begun = 0, refused = 0;
    uint8_t asked = 0;  // the kernel up to which all shall leave
    uint8_t executed[most_orders + 1] = {};
};

template <class T>
void clear(T *what) {
    std::memset(static_cast<void *>(what), 0, sizeof(T));
}

class explorer {
  public:
    // `takes_back`: each set may be meant for the present kernel alone.
    explorer(uint32_t orders, uint32_t set, const faults &planted, bool takes_back = false)
        : orders_(orders), set_(set), planted_(planted), takes_back_(takes_back) {}

    // The first fault; empty: none.
    std::string run() {
        // States are compared byte by byte: no constructor and no temporary touches the padding.
        alignas(state) static unsigned char zeros[sizeof(state)];
        std::memset(zeros, 0, sizeof(zeros));
        auto *first = reinterpret_cast<state *>(zeros);
        first->memory.door = mover_door().word();
        first->memory.position = 1;
        visit(*first);
        while (!open_.empty() && fault_.empty()) {
            const state now = open_.back();
            open_.pop_back();
            if (!expand(now)) {
                check_end(now);
            }
        }
        return fault_;
    }
    size_t states() const { return seen_.size(); }
    size_t ends() const { return ends_; }
    // That can be reached, with an order that was taken back.
    size_t ends_taken_back() const { return ends_taken_back_; }

  private:
    void visit(const state &one) {
        std::string key(reinterpret_cast<const char *>(&one), sizeof(one));
        if (seen_.insert(std::move(key)).second) {
            open_.push_back(one);
        }
    }
    void fail(const std::string &what) {
        if (fault_.empty()) {
            fault_ = what;
        }
    }

    // Nothing can happen any more, but that kernels look in vain.
    void check_end(const state &now) {
        ++ends_;
        ends_taken_back_ += now.taken_back ? 1 : 0;
        for (uint32_t n = 1; n <= orders_; ++n) {
            if (now.executed[n] != (now.cancelled[n] ? 0 : 1)) {
                fail("order " + std::to_string(n) + " was executed " +
                     std::to_string(now.executed[n]) + " times" +
                     (now.cancelled[n] ? ", and taken back" : ""));
            }
        }
    }

    // All that may happen next; false: nothing.
    bool expand(const state &now) {
        moved_ = false;
        flush(now, &state::cpu_buffer);
        step_cpu(now);
        for (uint32_t k = 0; k < 2; ++k) {
            if (now.kernels[k].runs) {
                step_kernel(now, k);
            }
        }
        start_kernel(now);
        return moved_;
    }
    void reach(const state &next) {
        moved_ = true;
        visit(next);
    }

    void flush(const state &now, store_buffer state::*which) {
        for (uint32_t i = 0; i < (now.*which).count; ++i) {
            if ((now.*which).may_leave(i)) {
                state next = now;
                next.memory.apply((now.*which).all[i]);
                (next.*which).remove(i);
                reach(next);
            }
        }
    }

    void step_cpu(const state &now) {
        state next = now;
        if (now.owes_launch) {
            next.owes_launch = false;
            ++next.launched;
            if (now.launched == most_launches) {
                return fail("too many launches");
            }
            reach(next);
            if (now.refused == 0) {  // a launch fails: it is owed still
                next = now;
                ++next.refused;
                reach(next);
            }
            return;
        }
        if (now.taking_back) {
            return take_back(now);
        }
        if (now.giving) {
            cpu_view view = {&next.memory, &next.cpu_buffer};
            if ((now.giver.fences() && now.cpu_buffer.count != 0 && !planted_.cpu_fence) ||
                now.cpu_buffer.count == most_stores) {
                return;
            }
            if (next.giver.step(view)) {
                next.giving = false;
                next.owes_launch = next.giver.is_late() && !now.to_present;
                next.taking_back = next.giver.is_late() && now.to_present;
                next.to_present = false;
                clear(&next.giver);
            }
            return reach(next);
        }
        if (!now.asked_once && now.launched != 0) {
            next.asked_once = true;
            next.asked = now.launched;
            reach(next);
            next = now;
        }
        if (now.given < orders_) {
            const uint32_t count = set_ < orders_ - now.given ? set_ : orders_ - now.given;
            for (uint32_t n = now.given + 1; n <= now.given + count; ++n) {
                if (n > slots && now.memory.ends[n % slots] != n - slots &&
                    !now.cancelled[n - slots] && !planted_.ends) {
                    return;  // the line is in use
                }
            }
            next.giving = true;
            next.giver.begin(now.given + 1u, count, now.launched);
            next.given = static_cast<uint8_t>(now.given + count);
            reach(next);
            if (takes_back_ && mover_door::of(now.memory.door).is_open(now.launched)) {
                next.to_present = true;
                reach(next);
            }
        }
    }

    void take_back(const state &now) {
        const mover_door door = mover_door::of(now.memory.door);
        state next = now;
        uint64_t first;
        const bool gone = door.has_gone(now.launched, now.given + 1u, &first);
        if (gone || planted_.gone) {
            for (uint64_t n = first; n <= now.given; ++n) {
                next.cancelled[n] = next.taken_back = true;
            }
            next.first = static_cast<uint8_t>(planted_.first ? 0 : now.given + 1);
        } else if (!door.is_open(now.launched)) {
            return;  // nothing yet
        }
        next.taking_back = false;
        reach(next);
    }

    void start_kernel(const state &now) {
        if (now.begun == now.launched) {
            return;
        }
        const bool busy[2] = {now.kernels[0].runs, now.kernels[1].runs};
        const uint32_t k = busy[0] ? 1 : 0;
        if (busy[k] || (k == 1 && !planted_.stream_order)) {
            return;
        }
        state next = now;
        ++next.begun;
        next.kernels[k].runs = true;
        const uint64_t position = planted_.position ? next.given : next.memory.position;
        next.kernels[k].machine.begin(next.begun, position > now.first ? position : now.first);
        reach(next);
    }

    void step_kernel(const state &now, uint32_t k) {
        const kernel &its = now.kernels[k];
        for (uint32_t i = 0; i < its.buffer.count; ++i) {
            if (its.buffer.may_leave(i)) {
                state next = now;
                next.memory.apply(its.buffer.all[i]);
                next.kernels[k].buffer.remove(i);
                reach(next);
            }
        }
        if (its.is_gone) {  // its end makes everything visible
            if (its.buffer.count == 0) {
                state next = now;
                clear(&next.kernels[k]);
                reach(next);
            }
            return;
        }
        if ((its.machine.fences() && its.buffer.count != 0 && !planted_.kernel_fence) ||
            its.buffer.count + 3u > most_stores) {
            return;
        }
        const bool asked = now.asked >= now.begun;
        for (bool idle : {false, true}) {
            for (bool leave : {false, true}) {
                if ((leave && !asked) || ((idle || leave) && !its.machine.watches())) {
                    continue;
                }
                state next = now;
                kernel &mine = next.kernels[k];
                kernel_view view = {&next.memory, &mine.buffer, !planted_.tags};
                const bool fencing = mine.machine.fences();
                auto what = mine.machine.step(view, {idle, leave});
                if (fencing && planted_.second_look) {  // it goes at once
                    while (what != order_taker<kernel_view>::result::gone) {
                        blind_view blind = {view};
                        what = skip_look(mine.machine, blind);
                    }
                }
                if (what == order_taker<kernel_view>::result::took) {
                    take(next, mine);
                }
                mine.is_gone = what == order_taker<kernel_view>::result::gone;
                reach(next);
            }
        }
    }

    // A look that finds nothing.
    struct blind_view {
        kernel_view &real;
    };
    static order_taker<kernel_view>::result skip_look(order_taker<kernel_view> &machine,
                                                      blind_view &blind) {
        shared_memory empty = *blind.real.memory;
        std::memset(empty.lines, 0xee, sizeof(empty.lines));
        kernel_view view = {&empty, blind.real.buffer, true};
        return machine.step(view, {});
    }

    void take(state &next, kernel &mine) {
        const uint64_t number = mine.machine.number();
        if (number == 0 || number > orders_) {
            return fail("order " + std::to_string(number) + " was never given");
        }
        for (uint32_t i = 0; i < parts; ++i) {
            if (mine.machine.part(i).payload != number) {
                return fail("order " + std::to_string(number) + " is torn");
            }
        }
        if (next.cancelled[number]) {
            return fail("order " + std::to_string(number) + " was taken back before");
        }
        if (++next.executed[number] > 1) {
            return fail("order " + std::to_string(number) + " was executed twice");
        }
        mine.buffer.add({store::end, number % slots, 0, number});
    }

    const uint32_t orders_, set_;
    const faults planted_;
    const bool takes_back_;
    std::unordered_set<std::string> seen_;
    std::vector<state> open_;
    std::string fault_;
    size_t ends_ = 0, ends_taken_back_ = 0;
    bool moved_ = false;
};

TEST(order_ring, no_interleaving_loses_or_repeats_an_order) {
    explorer one_by_one(4, 1, {});
    EXPECT_EQ(one_by_one.run(), "");
    EXPECT_GT(one_by_one.states(), 10000u);
    EXPECT_GT(one_by_one.ends(), 0u);
    RecordProperty("states", static_cast<int>(one_by_one.states()));
    explorer sets(4, 2, {});
    EXPECT_EQ(sets.run(), "");
    EXPECT_GT(sets.ends(), 0u);
    // Tags repeat: order 5 has the tag of order 1, order 6 that of order 2.
    explorer wraps(6, 2, {});
    EXPECT_EQ(wraps.run(), "");
    EXPECT_GT(wraps.ends(), 0u);
}

TEST(order_ring, what_is_taken_back_was_not_taken) {
    explorer one_by_one(3, 1, {}, true);
    EXPECT_EQ(one_by_one.run(), "");
    EXPECT_GT(one_by_one.ends_taken_back(), 0u);
    RecordProperty("states", static_cast<int>(one_by_one.states()));
    explorer sets(4, 2, {}, true);
    EXPECT_EQ(sets.run(), "");
    EXPECT_GT(sets.ends_taken_back(), 0u);
}

TEST(order_ring, planted_faults_are_found) {
    auto found = [](const faults &planted, uint32_t orders = 4, uint32_t set = 1,
                    bool takes_back = false) {
        return explorer(orders, set, planted, takes_back).run();
    };
    faults planted;
    planted.cpu_fence = true;
    EXPECT_NE(found(planted), "") << "the CPU looks before its order is visible";
    planted = {};
    planted.kernel_fence = true;
    EXPECT_NE(found(planted), "") << "the kernel looks before its word is visible";
    planted = {};
    planted.second_look = true;
    EXPECT_NE(found(planted), "") << "the kernel does not look again";
    planted = {};
    planted.tags = true;
    EXPECT_NE(found(planted), "") << "the kernel believes torn lines";
    planted = {};
    planted.stream_order = true;
    EXPECT_NE(found(planted), "") << "two kernels at a time";
    planted = {};
    planted.ends = true;
    EXPECT_NE(found(planted, 4, 2), "") << "lines are written before their orders have ended";
    planted = {};
    planted.position = true;
    EXPECT_NE(found(planted), "") << "a kernel begins where it thinks";
    planted = {};
    planted.gone = true;
    EXPECT_NE(found(planted, 3, 1, true), "") << "orders are taken back while the kernel looks";
    planted = {};
    planted.first = true;
    EXPECT_NE(found(planted, 3, 1, true), "") << "a kernel takes what was taken back";
}

// A ring in which each line holds the order that is looked for.
struct endless {
    static constexpr uint32_t parts = 1, ring_size = order_ring_size;
    using part = uint64_t;
    void read_part(uint64_t number, uint32_t, part *value) const { *value = number; }
    bool is_of(const part &value, uint64_t number) const { return value == number; }
    void store_door(uint64_t word) { door = word; }
    void store_position(uint64_t number) { position = number; }
    void fence() {}
    uint64_t door = 0, position = 0;
};

// The kernel's steps from the wish to leave until it is gone, with an order in each line it looks
// at.
TEST(order_ring, a_kernel_that_must_leave_does_so_although_orders_keep_coming) {
    endless memory;
    order_taker<endless> taker;
    taker.begin(7, 1000);
    using result = order_taker<endless>::result;
    EXPECT_EQ(taker.step(memory, {}), result::nothing);
    EXPECT_EQ(taker.step(memory, {}), result::took);
    EXPECT_EQ(taker.number(), 1000u);
    uint32_t steps = 0, took = 0;
    for (auto what = result::nothing; what != result::gone; ++steps) {
        what = taker.step(memory, {false, true});
        took += what == result::took ? 1 : 0;
        ASSERT_LT(steps, order_ring_size + 8);
    }
    EXPECT_EQ(took, order_ring_size);
    EXPECT_EQ(memory.position, 1001u + order_ring_size);
    const mover_door door = mover_door::of(memory.door);
    EXPECT_TRUE(door.leaving);
    uint64_t first = 0;
    EXPECT_TRUE(door.has_gone(7, memory.position + 5, &first));
    EXPECT_EQ(first, memory.position);
    EXPECT_FALSE(door.has_gone(8, memory.position + 5, &first)) << "another one is on its way";
}

TEST(order_ring, the_door_tells_who_is_missed_also_where_numbers_wrap) {
    mover_door door;
    EXPECT_TRUE(door.misses(1, 0));
    EXPECT_FALSE(door.misses(1, 1)) << "another kernel is on its way";
    door.next = 0xfffffffeu;
    door.instance = mover_door::instance_mask;
    EXPECT_TRUE(door.misses((uint64_t{5} << 32) + 1, mover_door::instance_mask));
    EXPECT_TRUE(door.misses((uint64_t{4} << 32) + 0xfffffffeu, 0xffffffffu));
    EXPECT_FALSE(door.misses((uint64_t{4} << 32) + 0xfffffffdu, mover_door::instance_mask));
    const mover_door again = mover_door::of(door.word());
    EXPECT_EQ(again.next, door.next);
    EXPECT_EQ(again.instance, door.instance);
    EXPECT_EQ(again.leaving, door.leaving);
    EXPECT_FALSE(again.gone);
    uint64_t first = 0;
    door.gone = true;
    EXPECT_TRUE(mover_door::of(door.word())
                    .has_gone(mover_door::instance_mask, (uint64_t{5} << 32) + 1, &first));
    EXPECT_EQ(first, (uint64_t{4} << 32) + 0xfffffffeu);
    door.leaving = false;
    EXPECT_FALSE(mover_door::of(door.word()).leaving);
    EXPECT_FALSE(door.misses(uint64_t{1} << 40, mover_door::instance_mask));
}

TEST(order_ends, are_those_of_one_order_when_all_its_pieces_have_told) {
    const uint64_t period = uint64_t{1} << end_tag_bits;
    for (uint64_t number : {uint64_t{1}, uint64_t{77}, period, period + 3, 9 * period - 1}) {
        for (uint32_t pieces : {1u, 2u, most_order_pieces}) {
            order_ends line = {};
            EXPECT_FALSE(has_ended(line, number)) << "before the first order";
            for (uint32_t i = 0; i < pieces; ++i) {
                EXPECT_FALSE(has_ended(line, number)) << i << " of " << pieces;
                line.words[pieces - 1 - i] = end_word(number, pieces);
            }
            EXPECT_TRUE(has_ended(line, number));
            EXPECT_FALSE(has_ended(line, number + order_ring_size)) << "the next in this place";
            // The next one has more pieces; an old word is not taken for one of its.
            const uint64_t next = number + order_ring_size;
            line.words[0] = end_word(next, most_order_pieces);
            EXPECT_FALSE(has_ended(line, next));
        }
    }
}

TEST(order_ends, are_zeroed_once_in_each_place_where_numbers_come_round) {
    const uint64_t period = uint64_t{1} << end_tag_bits;
    std::set<uint64_t> places;
    for (uint64_t number = 5 * period - 1000; number < 5 * period + 1000; ++number) {
        if (must_zero_ends(number)) {
            EXPECT_GE(number, 5 * period);
            EXPECT_TRUE(places.insert(number % order_ring_size).second);
        }
    }
    EXPECT_EQ(places.size(), order_ring_size);
}

TEST(mover_door, is_open_while_the_last_kernel_is_there) {
    mover_door door;
    EXPECT_FALSE(door.is_open(0)) << "before the first launch";
    EXPECT_TRUE(door.misses(1, 0));
    door.instance = 1;
    door.leaving = false;
    EXPECT_TRUE(door.is_open(1));
    EXPECT_FALSE(door.is_open(2)) << "another one is on its way";
    EXPECT_FALSE(door.misses(1, 2)) << "it will take what comes";
    door.leaving = true;
    EXPECT_FALSE(door.is_open(1));
    EXPECT_TRUE(door.misses(1, 1));
    EXPECT_TRUE(mover_door::of(door.word()).leaving);
}

}  // namespace
}  // namespace cuda_nc::gpu
