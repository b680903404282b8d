#include "ucs/base/number_map.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace cuda_nc {
namespace {

TEST(number_map_test, holds_what_a_map_holds) {
    std::mt19937_64 random(7);
    for (const uint64_t spread : {uint64_t{40}, uint64_t{3000}, UINT64_MAX}) {
        number_map<int> made;
        std::map<uint64_t, int *> expected;
        std::vector<int> objects(64);
        const uint64_t first = random();
        for (int step = 0; step < 30000; ++step) {
            const uint64_t number =
                spread == UINT64_MAX ? random() % 97 * 0x100000001u : first + random() % spread;
            int *what = &objects[random() % objects.size()];
            // Grows, and then shrinks, by turns.
            if (random() % 10 < (step / 5000 % 2 == 0 ? 6 : 4)) {
                made.set(number, what);
                expected[number] = what;
            } else {
                made.erase(number);
                expected.erase(number);
            }
            ASSERT_EQ(made.size(), expected.size());
            const uint64_t other = spread == UINT64_MAX ? number : first + random() % spread;
            const auto found = expected.find(other);
            ASSERT_EQ(made.find(other), found != expected.end() ? found->second : nullptr);
        }
        for (const auto &[number, what] : expected) {
            ASSERT_EQ(made.find(number), what);
        }
        std::vector<int *> visited, in_order;
        made.for_each([&](int &one) { visited.push_back(&one); });
        for (const auto &one : expected) {
            in_order.push_back(one.second);
        }
        EXPECT_EQ(visited, in_order);
    }
}

TEST(number_map_test, visits_what_is_still_there) {
    number_map<uint64_t> made;
    std::vector<uint64_t> numbers(100);
    for (uint64_t i = 0; i < numbers.size(); ++i) {
        numbers[i] = i;
        made.set(i, &numbers[i]);
    }
    std::vector<uint64_t> visited;
    made.for_each([&](uint64_t &one) {
        visited.push_back(one);
        made.erase(one);
        made.erase(one + 1);
    });
    ASSERT_EQ(visited.size(), 50u);
    for (uint64_t i = 0; i < 50; ++i) {
        EXPECT_EQ(visited[i], 2 * i);
    }
    EXPECT_TRUE(made.empty());
    EXPECT_EQ(made.find(0), nullptr);
}

TEST(number_map_test, of_many_that_have_gone_no_memory_is_kept) {
    number_map<int> made;
    int one = 0;
    for (uint64_t i = 0; i < 100000; ++i) {
        made.set(i << 32, &one);
    }
    for (uint64_t i = 0; i < 100000; ++i) {
        ASSERT_EQ(made.find(i << 32), &one);
        made.erase(i << 32);
    }
    EXPECT_TRUE(made.empty());
    EXPECT_EQ(made.find(0), nullptr);
    made.set(5, &one);
    EXPECT_EQ(made.find(5), &one);
}

}  // namespace
}  // namespace cuda_nc
