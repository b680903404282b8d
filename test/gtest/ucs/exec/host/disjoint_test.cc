#include "ucs/exec/host/disjoint.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <set>
#include <vector>

#include "ucs/exec/host/hand_made_layout.hpp"

namespace cuda_nc::exec {
namespace {

using test::hand_made_layout;
using test::piece;

// Blocks of 1 to `longest` units with gaps between them, in random order.
std::vector<piece> scattered(std::mt19937_64 &random, unsigned count, uint64_t longest,
                             int64_t unit) {
    std::vector<piece> list;
    int64_t at = -1000 * unit;
    for (unsigned b = 0; b < count; ++b) {
        const uint64_t length = 1 + random() % (longest * static_cast<uint64_t>(unit));
        list.push_back({at, length});
        const int64_t units = (static_cast<int64_t>(length) + unit - 1) / unit;
        at += (units + static_cast<int64_t>(random() % 3)) * unit;
    }
    std::shuffle(list.begin(), list.end(), random);
    return list;
}

bool overlap_somewhere(const hand_made_layout &layout) {
    std::set<int64_t> seen;
    for (const piece &one : layout.map()) {
        for (uint64_t i = 0; i < one.length; ++i) {
            if (!seen.insert(one.displacement + static_cast<int64_t>(i)).second) {
                return true;
            }
        }
    }
    return false;
}

TEST(disjoint, the_span_of_a_long_list_is_found_in_any_order) {
    std::mt19937_64 random(20261122);
    for (unsigned i = 0; i < 300; ++i) {
        const int64_t unit = int64_t(1) << random() % 7;
        hand_made_layout layout(
            scattered(random, 33 + static_cast<unsigned>(random() % 1200), 1 + random() % 9, unit),
            {}, i % 2 == 0);
        const uint64_t span = static_cast<uint64_t>(layout.upper() - layout.lower());
        ASSERT_EQ(find_disjoint_span(layout.view()), span) << "unit " << unit;
        ASSERT_TRUE(blocks_are_disjoint(layout.view(), 0));
    }
}

TEST(disjoint, one_shared_byte_is_seen) {
    std::mt19937_64 random(20261123);
    for (unsigned i = 0; i < 300; ++i) {
        const int64_t unit = int64_t(1) << random() % 7;
        std::vector<piece> list =
            scattered(random, 33 + static_cast<unsigned>(random() % 100), 9, unit);
        piece &one = list[random() % list.size()];
        const piece &other = list[(&one - list.data() + 1) % list.size()];
        one.displacement = other.displacement + static_cast<int64_t>(other.length) - 1;
        hand_made_layout layout(list, {}, i % 2 == 0);
        ASSERT_EQ(find_disjoint_span(layout.view()), 0u);
        ASSERT_FALSE(blocks_are_disjoint(layout.view(), 0));
    }
}

TEST(disjoint, ascending_lists_need_no_memory_however_far_apart) {
    std::vector<piece> list;
    for (int64_t b = 0; b < 40; ++b) {
        list.push_back({b * (int64_t(1) << 50), 8});
    }
    hand_made_layout layout(list, {}, true);
    EXPECT_EQ(find_disjoint_span(layout.view()), 39 * (uint64_t(1) << 50) + 8);
    std::reverse(list.begin(), list.end());
    list[0].displacement += 1;  // granules of one byte
    hand_made_layout backwards(list, {}, true);
    EXPECT_EQ(find_disjoint_span(backwards.view()), 0u) << "more memory than the list is worth";
}

TEST(disjoint, blocks_in_order_may_touch_but_not_overlap) {
    std::vector<piece> list;
    for (int64_t b = 0; b < 40; ++b) {
        list.push_back({b * 8, 8});
    }
    hand_made_layout touching(list, {});
    EXPECT_EQ(find_disjoint_span(touching.view()), 320u);
    list[20].displacement -= 1;
    hand_made_layout overlapping(list, {});
    EXPECT_EQ(find_disjoint_span(overlapping.view()), 0u);
}

TEST(disjoint, repeated_lists_are_never_wrongly_proved) {
    std::mt19937_64 random(20261124);
    unsigned proved = 0, overlapping = 0;
    for (unsigned i = 0; i < 1000; ++i) {
        std::vector<piece> list =
            scattered(random, 2 + static_cast<unsigned>(random() % 60), 3, 1 + i % 5);
        const int64_t extent = static_cast<int64_t>(random() % 800) - 200;
        hand_made_layout layout(list, {{1 + random() % 4, extent}}, i % 2 == 0);
        const bool yes = blocks_are_disjoint(layout.view(), 1);
        const bool overlap = overlap_somewhere(layout);
        ASSERT_FALSE(yes && overlap) << "extent " << extent;
        proved += yes;
        overlapping += overlap;
    }
    EXPECT_GT(proved, 100u);
    EXPECT_GT(overlapping, 100u);
}

// The bytes of both copies, one by one, are the oracle.
TEST(disjoint, copies_that_may_overlap_are_told_from_those_that_cannot) {
    std::mt19937_64 random(31);
    auto below = [&](uint64_t n) { return static_cast<int64_t>(random() % n); };
    unsigned overlapping = 0, interleaved = 0;
    for (int i = 0; i < 4000; ++i) {
        layout_builder builder;
        const uint64_t length = static_cast<uint64_t>(1 + below(6));
        builder.append(0, length);
        if (below(3) == 0) {
            builder.append(8 + below(8), static_cast<uint64_t>(1 + below(6)));
        }
        const int64_t inner = 24 + below(40), outer = 300 + below(400);
        const layout_ref what = builder.finish()
                                    ->repeat(static_cast<uint64_t>(1 + below(6)), inner)
                                    ->repeat(static_cast<uint64_t>(1 + below(4)), outer);
        const int64_t shift = below(2500) - 1250;
        std::set<int64_t> bytes;
        layout_cursor cursor(*what, 0);
        for (block one = cursor.next(100); one.length != 0; one = cursor.next(100)) {
            for (uint64_t at = 0; at < one.length; ++at) {
                bytes.insert(one.displacement + static_cast<int64_t>(at));
            }
        }
        const bool overlap = std::any_of(bytes.begin(), bytes.end(),
                                         [&](int64_t at) { return bytes.count(at + shift) != 0; });
        const char *base = reinterpret_cast<const char *>(uintptr_t(1) << 20);
        const bool may = may_overlap(*what, base, base + shift);
        ASSERT_TRUE(may || !overlap) << "shift " << shift;
        overlapping += overlap;
        const int64_t span = what->upper_bound() - what->lower_bound();
        interleaved += !may && std::abs(shift) < span;
    }
    EXPECT_GT(overlapping, 100u);
    EXPECT_GT(interleaved, 100u);
}

}  // namespace
}  // namespace cuda_nc::exec
