#include "ucp/dt/staging.hpp"

#include "ucp/dt/message.hpp"
#include "ucp/dt/settings_guard.hpp"
#include "ucs/base/statistics.hpp"

namespace cuda_nc::test {
namespace {

using place = buffer::place;

// No setting makes a copy for each block of them; that it is raised is said once.
TEST(request_state_without_staging, a_buffer_is_there_all_the_same) {
    if (!is_there(place::device0)) {
        GTEST_SKIP() << "no GPU, simulated or real";
    }
    random_engine random(11);
    const datatype type = strided_words(24, 777);
    std::string log;
    for (const char *little : {"0", "1", "4095"}) {
        settings_guard settings{{"STAGING_SIZE", little}, {"STATS", "y"}};
        testing::internal::CaptureStderr();
        message one(random, type, place::device0, place::device0, 500);
        ASSERT_TRUE(one.start());
        while (!one.done()) {
            ASSERT_EQ(one.step(), UCS_OK);
        }
        one.end(true);
        log += testing::internal::GetCapturedStderr();
    }
    const std::string name = "UCX_CUDA_NC_STAGING_SIZE=";
    const size_t at = log.find(name);
    EXPECT_NE(at, std::string::npos) << log;
    EXPECT_EQ(log.find(name, at + 1), std::string::npos) << log;
    const std::string text = format_statistics();
    EXPECT_NE(text.find("staging short"), std::string::npos) << text;
    EXPECT_EQ(text.find("block copies"), std::string::npos) << text;
}

}  // namespace
}  // namespace cuda_nc::test
