#include "ucs/exec/host/split.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "ucs/exec/host/hand_made_layout.hpp"
#include "ucs/exec/host/range_checks.hpp"
#include "ucs/exec/host/thread_settings.hpp"
#include "ucs/exec/host/host_executor.hpp"
#include "ucs/exec/host/thread_pool.hpp"
#include "ucs/exec/host/walk_order.hpp"

namespace cuda_nc::exec {
namespace {

using test::byte_map;
using test::check_range;
using test::hand_made_layout;
using test::piece;
using test::result_of_child;
using test::span_buffer;
using test::thread_settings;

unsigned num_processors() {
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    sched_getaffinity(0, sizeof(allowed), &allowed);
    return static_cast<unsigned>(CPU_COUNT(&allowed));
}

// Whether threads take a share of the whole layout.
template <direction Dir>
bool is_split(const hand_made_layout &layout) {
    span_buffer one(layout, 0), other(layout, 0);
    std::mt19937_64 random(1);
    test::fill(random, one.begin(), one.size());
    const uint64_t size = layout.view().packed_size;
    std::vector<uint8_t> packed(size);
    return move_split<Dir>(
        layout.view(), reinterpret_cast<address>(one.base()),
        reinterpret_cast<address>(Dir == direction::unpack ? one.base() : other.base()), 0,
        reinterpret_cast<address>(packed.data()), size);
}

std::vector<piece> shuffled_blocks(unsigned count, uint64_t length) {
    std::vector<piece> list;
    for (unsigned b = 0; b < count; ++b) {
        list.push_back({static_cast<int64_t>(b * (length + 8)), length});
    }
    std::mt19937_64 random(3);
    std::shuffle(list.begin(), list.end(), random);
    return list;
}

TEST(split, layouts_without_overlap_are_shared) {
    thread_settings three("3", 64);
    hand_made_layout vector({{0, 8}}, {{100, 16}});
    hand_made_layout transposed({{0, 8}}, {{200, 8000}, {64, 8}});
    hand_made_layout structs({{0, 4}, {8, 8}}, {{100, 24}});
    hand_made_layout list(shuffled_blocks(100, 24), {});
    hand_made_layout contiguous({{0, 5000}}, {});
    for (const hand_made_layout *one : {&vector, &transposed, &structs, &list, &contiguous}) {
        EXPECT_TRUE(is_split<direction::pack>(*one));
        EXPECT_TRUE(is_split<direction::unpack>(*one));
        EXPECT_TRUE(is_split<direction::copy>(*one));
    }
}

TEST(split, of_overlapping_layouts_packing_alone_is_shared) {
    thread_settings three("3", 64);
    hand_made_layout vector({{0, 24}}, {{100, 16}});
    hand_made_layout still({{0, 8}}, {{100, 0}});
    std::vector<piece> blocks = shuffled_blocks(100, 24);
    blocks[7].displacement = blocks[90].displacement + 23;
    hand_made_layout list(blocks, {});
    for (const hand_made_layout *one : {&vector, &still, &list}) {
        EXPECT_TRUE(is_split<direction::pack>(*one));
        EXPECT_FALSE(is_split<direction::unpack>(*one));
        EXPECT_FALSE(is_split<direction::copy>(*one));
    }
}

TEST(split, short_calls_stay_on_their_thread) {
    thread_settings three("3", 1000);
    hand_made_layout less({{0, 8}}, {{249, 16}}), enough({{0, 8}}, {{250, 16}});
    EXPECT_FALSE(is_split<direction::pack>(less));
    EXPECT_TRUE(is_split<direction::pack>(enough));
}

TEST(split, parts_are_as_long_as_the_order_of_a_transpose_wants) {
    hand_made_layout transposed({{0, 8}}, {{600, 8000}, {64, 8}});
    EXPECT_EQ(find_unit(transposed.view(), 100), 600u * 8 * 8);  // a line of eight columns
    hand_made_layout vector({{0, 8}}, {{30, 64}, {50, 4096}, {7, 1 << 20}});
    EXPECT_EQ(find_unit(vector.view(), 7), 64u);
    EXPECT_EQ(find_unit(vector.view(), 239), 8u);
    EXPECT_EQ(find_unit(vector.view(), 240), 240u);
    EXPECT_EQ(find_unit(vector.view(), 12000), 12000u);
}

TEST(split, settings_out_of_range_are_handled_as_others) {
    {
        thread_settings none("0", 0);
        EXPECT_EQ(max_host_threads(), 1u);
    }
    {
        thread_settings many("100000", 0);
        EXPECT_EQ(max_host_threads(), num_processors());
    }
    for (const char *wrong : {"-1", "abc", "", "2 threads", "99999999999999999999"}) {
        testing::internal::CaptureStderr();
        thread_settings one(wrong, 0);
        EXPECT_EQ(max_host_threads(), 1u) << wrong;
        EXPECT_NE(testing::internal::GetCapturedStderr().find("UCX_CUDA_NC_HOST_THREADS"),
                  std::string::npos)
            << wrong;
    }
}

TEST(split, a_caller_bound_to_one_processor_works_alone) {
    thread_settings many("8", 0);
    unsigned found = 0;
    std::thread([&found] {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(static_cast<unsigned>(sched_getcpu()), &one);
        if (sched_setaffinity(0, sizeof(one), &one) == 0) {
            found = max_host_threads();
        }
    }).join();
    EXPECT_EQ(found, 1u);
}

TEST(split, several_callers_at_once_get_their_bytes) {
    thread_settings three("3", 200);
    hand_made_layout vector({{3, 8}}, {{400, 24}});
    hand_made_layout transposed({{0, 8}}, {{30, 400}, {40, 8}});
    hand_made_layout list(shuffled_blocks(200, 24), {});
    hand_made_layout overlapping({{0, 24}}, {{100, 16}});
    const hand_made_layout *layouts[] = {&vector, &transposed, &list, &overlapping};
    std::vector<std::thread> callers;
    for (unsigned c = 0; c < 4; ++c) {
        callers.emplace_back([&layouts, c] {
            std::mt19937_64 random(20261122 + c);
            for (unsigned i = 0; i < 200 && !testing::Test::HasFailure(); ++i) {
                const hand_made_layout &layout = *layouts[(c + i) % 4];
                const std::vector<int64_t> bytes = byte_map(layout);
                const uint64_t offset = random() % 3 == 0 ? random() % (bytes.size() / 2) : 0;
                check_range(layout, bytes, offset, bytes.size() - offset, random);
            }
        });
    }
    for (std::thread &one : callers) {
        one.join();
    }
}

// Enough for several threads at what usually pays.
TEST(split, long_calls_of_usual_parts_are_right) {
    if (num_processors() < 2) {
        GTEST_SKIP() << "one processor";
    }
    thread_settings two("2", 0);
    hand_made_layout vector({{0, 64}}, {{70000, 128}});
    hand_made_layout transposed({{0, 8}}, {{600, 8192}, {1024, 8}});
    EXPECT_TRUE(is_split<direction::unpack>(vector));
    EXPECT_TRUE(is_split<direction::copy>(transposed));
    std::mt19937_64 random(20261125);
    for (const hand_made_layout *layout : {&vector, &transposed}) {
        const std::vector<int64_t> bytes = byte_map(*layout);
        check_range(*layout, bytes, 0, bytes.size(), random);
        check_range(*layout, bytes, 77, bytes.size() - 177, random);
    }
}

#if !CUDA_NC_TSAN
size_t num_tasks() {
    const std::filesystem::directory_iterator tasks("/proc/self/task");
    return static_cast<size_t>(std::distance(begin(tasks), end(tasks)));
}

TEST(split, no_thread_is_made_unless_asked_for) {
    hand_made_layout vector({{0, 64}}, {{80000, 128}});
    for (const char *threads : {"1", "3"}) {
        const int tasks = result_of_child([&] {
            setenv("UCX_CUDA_NC_HOST_THREADS", threads, 1);
            reload_config_for_test();
            reload_split_for_test(threads[0] == '1' ? 0 : 1000);
            span_buffer buffer(vector, 0);
            std::vector<uint8_t> packed(vector.view().packed_size);
            host_unpack(vector.view(), buffer.base(), 0, packed.data(), packed.size());
            return static_cast<int>(num_tasks());
        });
        EXPECT_EQ(tasks, threads[0] - '0');
    }
}

TEST(split, a_child_of_a_process_with_threads_packs) {
    thread_settings three("3", 200);
    hand_made_layout vector({{0, 8}}, {{4000, 24}});
    const std::vector<int64_t> bytes = byte_map(vector);
    std::mt19937_64 random(20261126);
    check_range(vector, bytes, 0, bytes.size(), random);
    for (unsigned i = 0; i < 10; ++i) {
        EXPECT_EQ(result_of_child([&] {
                      check_range(vector, bytes, 0, bytes.size(), random);
                      return testing::Test::HasFailure() ? 1 : 0;
                  }),
                  0);
    }
}
#endif

}  // namespace
}  // namespace cuda_nc::exec
