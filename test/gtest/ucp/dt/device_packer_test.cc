#include "ucp/dt/device_packer.hpp"

#include <unistd.h>

#include <cstdio>

#include <gtest/gtest.h>

#include "ucp/dt/settings_guard.hpp"
#include "ucs/layout/layout_spec.hpp"
#include "ucs/model/choices.hpp"
#include "ucs/model/profile_file.hpp"

namespace cuda_nc::test {
namespace {

constexpr auto pack = gpu::direction::pack, unpack = gpu::direction::unpack;

bool is_zero_copy(gpu::direction dir, const std::string &text) {
    std::string error;
    dt::device_packer packer;
    EXPECT_EQ(packer.open(dir, parse_layout(text, &error), nullptr, {gpu::memory_kind::device, 0}),
              UCS_OK)
        << error;
    const bool chosen = packer.zero_copy();
    packer.close();
    return chosen;
}

// All GPUs of the process, with pinned memory reached `slower` times as slowly as usual by packs.
class profile_guard {
  public:
    explicit profile_guard(double slower) {
        model::machine_profile profile;
        profile.backend = gpu::platform::instance().name();
        profile.host_moves = model::default_host();
        for (int i = 0; i < gpu::platform::instance().num_devices(); ++i) {
            profile.gpus.push_back(
                model::default_gpu(gpu::platform::instance().get_device(i)->properties()));
            for (model::figure &one : profile.gpus.back().moves.figures) {
                if (one.what == model::family::pinned && one.dir == pack) {
                    one.near *= slower;
                    one.far *= slower;
                }
            }
        }
        std::string why;
        EXPECT_TRUE(model::write_profile(path_, profile, &why)) << why;
        model::reload_machine_for_test();
    }
    ~profile_guard() {
        std::remove(path_.c_str());
        model::reload_machine_for_test();
    }

  private:
    const std::string path_ = testing::TempDir() + "cuda_nc_packer." + std::to_string(getpid());
    const settings_guard settings_{{"PROFILE", path_}};
};

TEST(device_packer, zero_copy_or_staged_follows_the_machines_figures) {
    if (gpu::platform::instance().num_devices() == 0) {
        GTEST_SKIP() << "no GPU, simulated or real";
    }
    const char *words = "vector:128K,8,16", *bytes = "struct:24,64K,0:17";
    {
        profile_guard usual(1);
        EXPECT_TRUE(is_zero_copy(pack, words) && is_zero_copy(unpack, words));
        EXPECT_FALSE(is_zero_copy(pack, bytes) || is_zero_copy(unpack, bytes));
        EXPECT_TRUE(is_zero_copy(pack, "struct:24,16,0:17"));  // a second step costs more
    }
    {
        profile_guard slow(10);
        EXPECT_FALSE(is_zero_copy(pack, words));
        EXPECT_TRUE(is_zero_copy(unpack, words));
        settings_guard always{{"ZERO_COPY", "y"}};
        EXPECT_TRUE(is_zero_copy(pack, words));
    }
    profile_guard fast(0.1);
    EXPECT_TRUE(is_zero_copy(pack, bytes));
    settings_guard never{{"ZERO_COPY", "n"}};
    EXPECT_FALSE(is_zero_copy(pack, words));
}

}  // namespace
}  // namespace cuda_nc::test
