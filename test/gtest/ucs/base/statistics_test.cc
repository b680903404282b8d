#include "ucs/base/statistics.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>

namespace cuda_nc {
namespace {

// In a process of its own, which prints its statistics at exit.
[[noreturn]] void count_many_shapes() {
    for (int i = 0; i < 5000; ++i) {
        count_message_slow("send", std::to_string(i) + " B", "path", "why", 1);
    }
    const std::string text = format_statistics();
    std::exit(std::count(text.begin(), text.end(), '\n') < 1100 ? 0 : 1);
}

TEST(statistics, shapes_without_end_share_a_line) {
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    EXPECT_EXIT(count_many_shapes(), testing::ExitedWithCode(0), "other shapes +397[0-9] ");
}

}  // namespace
}  // namespace cuda_nc
