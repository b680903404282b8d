#include <gtest/gtest.h>

#include "process.hpp"
#include "ucs/base/settings.hpp"

namespace cuda_nc::hooks::test {
namespace {

outcome nc_info(const std::string &arguments, const std::string &environment = "") {
    return run(environment, BUILD_DIRECTORY "/nc_info " + arguments);
}

bool says(const outcome &seen, const std::string &text) {
    return seen.output.find(text) != std::string::npos;
}

TEST(nc_info, tells_what_was_found_and_chosen) {
    outcome seen = nc_info("", "UCX_CUDA_NC_GPU=sim UCX_CUDA_NC_SIM_DEVICES=3");
    EXPECT_EQ(seen.status, 0);
    for (const char *line :
         {"ucx-cuda-nc ", "UCX ", "MPI ", "backend sim", "2: ", "host engine "}) {
        EXPECT_TRUE(says(seen, line)) << line << seen;
    }
    EXPECT_TRUE(says(nc_info("", "UCX_CUDA_NC_GPU=none"), "backend none: UCX_CUDA_NC_GPU=none"));
}

TEST(nc_info, lists_every_setting_with_its_value_and_help) {
    outcome seen = nc_info("--settings", "UCX_CUDA_NC_STATS=y");
    EXPECT_EQ(seen.status, 0);
    for (const setting_description &one : describe_settings()) {
        EXPECT_TRUE(says(seen, std::string("UCX_CUDA_NC_") + one.name + "=")) << one.name;
        EXPECT_TRUE(says(seen, one.help)) << one.name;
    }
    EXPECT_TRUE(says(seen, "UCX_CUDA_NC_STATS=y  (default n)")) << seen;
}

TEST(nc_info, describes_a_layout) {
    outcome seen = nc_info("--layout vector:1K,8,24");
    EXPECT_EQ(seen.status, 0);
    for (const char *line : {"strided 1024 x 8 B", "blocks       1024\n", "packed size  8192 B\n",
                             "bounds       [0, 24560) B\n", "tables       0 B\n", "hash  "}) {
        EXPECT_TRUE(says(seen, line)) << line << seen;
    }
}

TEST(nc_info, wrong_input_ends_with_an_error) {
    outcome seen = nc_info("--layout circle:3");
    EXPECT_EQ(seen.status, 1);
    EXPECT_TRUE(says(seen, "nc_info: 'circle' is not a layout")) << seen;
    EXPECT_GT(nc_info("--no-such-option").status, 0);
}

}  // namespace
}  // namespace cuda_nc::hooks::test
