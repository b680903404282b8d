#include <gtest/gtest.h>

#include "hooks/process.hpp"
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
    seen = nc_info("--settings", "UCX_CUDA_NC_PIPE=perhaps");
    EXPECT_TRUE(says(seen, "UCX_CUDA_NC_PIPE=y\n")) << seen;
    EXPECT_TRUE(says(seen, "UCX_CUDA_NC_PIPE=perhaps cannot be read")) << seen;
}

TEST(nc_info, prints_settings_as_tables_of_defaults) {
    const outcome seen = nc_info("--settings --markdown", "UCX_CUDA_NC_STATS=y");
    EXPECT_EQ(seen.status, 0);
    EXPECT_TRUE(says(seen, "| `STATS` | n | y, n | ")) << seen;
    EXPECT_TRUE(says(seen, "| `TRACE` | | file | ")) << seen;
    for (const setting_description &one : describe_settings()) {
        EXPECT_TRUE(says(seen, "| `" + std::string(one.name) + "` | ")) << one.name;
        EXPECT_TRUE(says(seen, one.type + " | " + one.help + " |\n")) << one.name;
    }
    EXPECT_NE(nc_info("--markdown").status, 0);
}

TEST(nc_info, describes_a_layout) {
    outcome seen = nc_info("--layout vector:1K,8,24");
    EXPECT_EQ(seen.status, 0);
    for (const char *line : {"strided 1024 x 8 B", "blocks       1024\n", "packed size  8192 B\n",
                             "bounds       [0, 24560) B\n", "tables       0 B\n", "hash  "}) {
        EXPECT_TRUE(says(seen, line)) << line << seen;
    }
}

TEST(nc_info, describes_layouts_by_name) {
    EXPECT_TRUE(says(nc_info("--layout small-transpose"), "packed size  32768 B\n"));
    EXPECT_TRUE(says(nc_info("--layout vector-8"), "of any size"));
}

TEST(nc_info, refuses_what_it_would_ignore) {
    EXPECT_EQ(nc_info("--layout ''").status, 1);
    for (const char *both : {"--layout vector:1,8,8 --explain vector:1,8,8",
                             "--layout vector:1,8,8 --settings", "--explain a --settings"}) {
        const outcome seen = nc_info(both);
        EXPECT_NE(seen.status, 0) << both;
        EXPECT_TRUE(says(seen, "excludes")) << seen;
    }
    EXPECT_TRUE(says(nc_info("--explain vector:100,8,16 64", "UCX_CUDA_NC_GPU=none"),
                     "800 B, not 64: the layout has a size of its own"));
}

TEST(nc_info, explains_what_would_be_chosen) {
    outcome seen = nc_info("--explain 'vector:*,8,16' 1M",
                           "UCX_CUDA_NC_GPU=sim UCX_CUDA_NC_SIM_DEVICES=2 UCX_CUDA_NC_PROFILE=none "
                           "UCX_CUDA_NC_HOST_SIMD=sse2");
    EXPECT_EQ(seen.status, 0);
    for (const char *text :
         {"strided 131072 x 8 B", "usual figures", "GPU 1 ", "pack       words of 8 B; grid ",
          "us to completion", "zero-copy", "staged", "fragments  2.0 MiB",
          "rendezvous; by pull or pipe", "GPU to GPU ", "host         sse2"}) {
        EXPECT_TRUE(says(seen, text)) << text << seen;
    }
    seen = nc_info("--explain vector:100,8,16 800",
                   "UCX_CUDA_NC_GPU=sim UCX_CUDA_NC_ZERO_COPY=n UCX_CUDA_NC_FRAGMENT_SIZE=64K");
    for (const char *text : {"staged (UCX_CUDA_NC_ZERO_COPY)", "64.0 KiB (UCX_CUDA_NC_FRAGMENT",
                             "eager, through host memory"}) {
        EXPECT_TRUE(says(seen, text)) << text << seen;
    }
    EXPECT_FALSE(says(seen, "MAX_SMS")) << seen;
    seen = nc_info("--explain vector:1M,8,16", "UCX_CUDA_NC_GPU=sim UCX_CUDA_NC_MAX_SMS=3");
    EXPECT_TRUE(says(seen, "UCX_CUDA_NC_MAX_SMS=3, all times those of a whole GPU\n")) << seen;
    EXPECT_TRUE(says(seen, "grid 3 x")) << seen;
    // A GPU is not needed; a layout of one size is repeated.
    seen = nc_info("--explain triangle:100,8 1M", "UCX_CUDA_NC_GPU=none");
    EXPECT_EQ(seen.status, 0);
    EXPECT_TRUE(says(seen, "1010000 B packed")) << seen;
    EXPECT_FALSE(says(seen, "GPU 0")) << seen;
    EXPECT_EQ(nc_info("--explain circle").status, 1);
    EXPECT_EQ(nc_info("--explain 'vector:*,8,16'").status, 1);
    EXPECT_EQ(nc_info("--explain vector-8 much").status, 1);
}

TEST(nc_info, wrong_input_ends_with_an_error) {
    outcome seen = nc_info("--layout circle:3");
    EXPECT_EQ(seen.status, 1);
    EXPECT_TRUE(says(seen, "nc_info: 'circle' is not a layout")) << seen;
    EXPECT_GT(nc_info("--no-such-option").status, 0);
}

}  // namespace
}  // namespace cuda_nc::hooks::test
