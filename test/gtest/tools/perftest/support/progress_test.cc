#include "tools/perftest/support/progress.hpp"

#include <gtest/gtest.h>

namespace cuda_nc::tools {
namespace {

TEST(progress, a_terminal_is_told_which_of_how_many_is_measured) {
    testing::internal::CaptureStderr();
    progress_counter at(48, progress_line(true));
    at.begin("v");
    at.begin(std::string(100, 'x'));
    at.clear();
    at.clear();
    const std::string first = "\r1/48 v" + std::string(72, ' ') + "\r",
                      second = "\r2/48 " + std::string(73, 'x') + "\r",
                      blank = "\r" + std::string(78, ' ') + "\r";
    EXPECT_EQ(testing::internal::GetCapturedStderr(), first + second + blank);
}

TEST(progress, what_is_no_terminal_is_told_nothing) {
    testing::internal::CaptureStderr();
    progress_counter at(48);
    at.begin("v");
    at.clear();
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace cuda_nc::tools
