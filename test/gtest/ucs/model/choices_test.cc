#include "ucs/model/choices.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "ucs/base/settings.hpp"
#include "ucs/model/profile_file.hpp"

namespace cuda_nc::model {
namespace {

constexpr auto pack = gpu::direction::pack, unpack = gpu::direction::unpack;

gpu_profile h200() {
    gpu::device_properties p;
    p.name = "NVIDIA H200";
    p.compute_major = 9;
    p.l2_size = size_t(60) << 20;
    return default_gpu(p);
}

bool stages(const choices &by, gpu::direction dir, unsigned align_log2, uint64_t block,
            uint64_t size) {
    return prefers_staging(by, dir, align_log2, size, size / block);
}

// A setting and the profile for the length of a test.
class with_setting {
  public:
    with_setting(const char *name, const std::string &value) : name_(name) {
        setenv(name, value.c_str(), 1);
        reload();
    }
    ~with_setting() {
        unsetenv(name_);
        reload();
    }

  private:
    static void reload() {
        reload_config_for_test();
        reload_machine_for_test();
    }
    const char *name_;
};

TEST(model_choices, usual_figures_choose_what_was_measured_on_an_h200) {
    const choices by = make_choices(h200(), 2.7);
    EXPECT_EQ(by.fragment_size, size_t(2) << 20);
    EXPECT_EQ(by.most_buffered, size_t(4) << 10);
    for (auto dir : {pack, unpack}) {
        EXPECT_FALSE(stages(by, dir, 3, 8, 64 << 20));  // whole words cross at the bus's rate
        EXPECT_FALSE(stages(by, dir, 2, 4, 64 << 20));
        EXPECT_TRUE(stages(by, dir, 0, 12, 64 << 20));
        EXPECT_FALSE(stages(by, dir, 0, 12, 16 << 10));  // a second step costs more than it saves
        EXPECT_FALSE(stages(by, dir, 0, 64, 64 << 20));
    }
}

TEST(model_choices, a_slower_way_is_left) {
    gpu_profile of = h200();
    for (figure &one : of.moves.figures) {
        if (one.what == family::pinned && one.align_log2 == 3 && one.dir == pack) {
            one.near = one.far = one.near * 10;
        }
    }
    const choices by = make_choices(of, 2.7);
    EXPECT_TRUE(stages(by, pack, 3, 8, 64 << 20));
    EXPECT_FALSE(stages(by, unpack, 3, 8, 64 << 20));
}

// Kernels for those layouts are slower, but the bus is slower still. So choices may look at the
// figures of strided ones alone.
TEST(model_choices, usual_figures_of_lists_and_sparse_blocks_choose_as_strided_ones_do) {
    const choices by = make_choices(h200(), 2.7);
    for (family what : {family::sparse, family::listed, family::uneven}) {
        gpu_profile own = h200();
        for (figure &one : own.moves.figures) {
            if (one.what == family::strided) {
                one.what = family::transposed;  // out of the way
            } else if (one.what == what) {
                one.what = family::strided;
            }
        }
        const choices like = make_choices(own, 2.7);
        for (auto dir : {pack, unpack}) {
            for (unsigned align = 0; align < num_aligns; ++align) {
                for (unsigned length = 0; length < num_lengths; ++length) {
                    for (uint64_t size : {uint64_t{1} << 20, uint64_t{64} << 20}) {
                        EXPECT_EQ(stages(by, dir, align, uint64_t{1} << length, size),
                                  stages(like, dir, align, uint64_t{1} << length, size))
                            << name_of(what) << " align " << align << " length " << length << " "
                            << size;
                    }
                }
            }
        }
    }
}

TEST(model_choices, a_second_step_that_takes_for_ever_is_never_made) {
    gpu_profile of = h200();
    of.copy_completion = 1e12;
    for (figure &one : of.moves.figures) {
        if (one.what == family::pinned) {
            one.near = one.far = one.near * 10;
        }
    }
    EXPECT_FALSE(stages(make_choices(of, 2.7), pack, 3, 8, uint64_t{1} << 40));
    of.copy_completion = 1e24;
    EXPECT_FALSE(stages(make_choices(of, 2.7), pack, 3, 8, uint64_t{1} << 62));
}

TEST(model_choices, fragments_follow_launch_cost_and_bus) {
    gpu_profile of = h200();
    of.completion *= 4;
    EXPECT_EQ(make_choices(of, 2.7).fragment_size, size_t(8) << 20);
    of.down = of.up = of.down * 16;
    EXPECT_EQ(make_choices(of, 2.7).fragment_size, size_t(512) << 10);
    of.completion = 1e9;
    EXPECT_EQ(make_choices(of, 2.7).fragment_size, size_t(16) << 20);
    of.completion = 1e-4;
    EXPECT_EQ(make_choices(of, 2.7).fragment_size, size_t(256) << 10);
}

TEST(model_choices, gpu_to_gpu_begins_where_it_pays) {
    gpu_profile of = h200();
    of.completion = 7;  // one costs more than the handshake
    EXPECT_EQ(make_choices(of, 2.7).most_buffered, size_t(4) << 10);
    of.completion = 1;  // two cost less
    const size_t thresh = make_choices(of, 2.7).most_buffered;
    EXPECT_GT(thresh, size_t(64) << 10);
    EXPECT_LT(thresh, size_t(1) << 20);
    EXPECT_EQ(make_choices(of, 1000).most_buffered, size_t(1) << 20);  // a link that is none
}

// The process's own choices: on the simulated GPU as in most tests, or on what is here.
TEST(model_choices, of_the_process_come_from_the_file_unless_set) {
    const std::string path = testing::TempDir() + "cuda_nc_choices." + std::to_string(getpid());
    gpu::platform &platform = gpu::platform::instance();
    machine_profile profile;
    profile.backend = platform.name();
    profile.date = "today";
    profile.host_moves = default_host();
    for (int i = 0; i < platform.num_devices(); ++i) {
        gpu_profile one = default_gpu(platform.get_device(i)->properties());
        one.completion *= 4;
        one.rules.unit_threads = 32u * (static_cast<uint32_t>(i) + 1);
        profile.gpus.push_back(one);
    }
    std::string why;
    ASSERT_TRUE(write_profile(path, profile, &why)) << why;
    const size_t usual = [] {
        with_setting none("UCX_CUDA_NC_PROFILE", "none");
        EXPECT_FALSE(machine().measured);
        return fragment_size(0);
    }();
    auto unit_threads = [&](int ordinal) {  // in force
        return platform.get_device(ordinal)->rules()->unit_threads;
    };
    {
        with_setting file("UCX_CUDA_NC_PROFILE", path);
        EXPECT_TRUE(machine().measured);
        EXPECT_NE(why_machine().find("today"), std::string::npos);
        ASSERT_EQ(machine().gpus.size(), static_cast<size_t>(platform.num_devices()));
        EXPECT_EQ(fragment_size(0), usual * (machine().gpus.empty() ? 1 : 4));
        for (int i = 0; i < platform.num_devices(); ++i) {
            EXPECT_EQ(unit_threads(i), 32u * (static_cast<uint32_t>(i) + 1));
        }
        EXPECT_EQ(direct_thresh(false), 1u);
        EXPECT_GT(direct_thresh(true), 4u << 10);
        with_setting size("UCX_CUDA_NC_FRAGMENT_SIZE", "1M");
        with_setting thresh("UCX_CUDA_NC_DIRECT_THRESH", "77K");
        EXPECT_EQ(fragment_size(0), size_t(1) << 20);
        EXPECT_EQ(direct_thresh(true), size_t(77) << 10);
        EXPECT_EQ(direct_thresh(false), size_t(77) << 10);
    }
    // A broken file changes nothing; nor does one of other GPUs.
    std::ofstream(path) << "{\"product\":";
    {
        with_setting file("UCX_CUDA_NC_PROFILE", path);
        EXPECT_FALSE(machine().measured);
        EXPECT_NE(why_machine().find("is ignored: it is no JSON"), std::string::npos);
        EXPECT_EQ(fragment_size(0), usual);
    }
    for (gpu_profile &one : profile.gpus) {
        one.name = "another GPU";
    }
    ASSERT_TRUE(write_profile(path, profile, &why)) << why;
    if (platform.num_devices() != 0) {
        with_setting file("UCX_CUDA_NC_PROFILE", path);
        EXPECT_EQ(fragment_size(0), usual);
        EXPECT_FALSE(machine().gpus.at(0).measured);
        EXPECT_EQ(unit_threads(0), gpu::usual_rules.unit_threads);
    }
    unlink(path.c_str());
}

TEST(model_choices, the_file_lies_in_the_users_cache) {
    with_setting cache("XDG_CACHE_HOME", "/somewhere");
    const std::string path = profile_path("cuda");
    EXPECT_EQ(path.rfind("/somewhere/ucx-cuda-nc/", 0), 0u) << path;
    EXPECT_NE(path.find("-cuda.json"), std::string::npos) << path;
    with_setting none("UCX_CUDA_NC_PROFILE", "none");
    EXPECT_EQ(profile_path("cuda"), "");
}

}  // namespace
}  // namespace cuda_nc::model
