// When the transport is offered, and what people are told.
#include "ucs/base/transport_choice.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "ucs/base/settings.hpp"

namespace cuda_nc {
namespace {

class transport_choice_test : public testing::Test {
  protected:
    // The environment as it was, afterwards.
    void SetUp() override {
        for (const char *name : {"UCX_TLS", "UCX_CUDA_NC_TRANSPORT", "UCX_CUDA_NC_ENABLE",
                                 "UCX_CUDA_NC_GPU", "CUDA_VISIBLE_DEVICES"}) {
            const char *value = std::getenv(name);
            saved_.emplace_back(name, value != nullptr ? value : "");
            unsetenv(name);
        }
    }
    void TearDown() override {
        for (auto &[name, value] : saved_) {
            value.empty() ? unsetenv(name) : setenv(name, value.c_str(), 1);
        }
        reload_config_for_test();
    }
    transport_choice with(const char *name, const char *value) {
        setenv(name, value, 1);
        reload_config_for_test();
        return choose_transport();
    }
    bool is_on(const char *name, const char *value) { return with(name, value).is_on; }

  private:
    std::vector<std::pair<const char *, std::string>> saved_;
};

TEST_F(transport_choice_test, is_on_where_the_process_has_a_gpu) {
    const transport_choice simulated = with("UCX_CUDA_NC_GPU", "sim");
    EXPECT_TRUE(simulated.is_on);
    EXPECT_NE(simulated.why.find("simulated"), std::string::npos);
    EXPECT_FALSE(is_on("UCX_CUDA_NC_GPU", "none"));
    const bool has_driver = access("/dev/nvidiactl", F_OK) == 0 || access("/dev/dxg", F_OK) == 0;
    EXPECT_EQ(is_on("UCX_CUDA_NC_GPU", "auto"), has_driver);
    EXPECT_EQ(is_on("CUDA_VISIBLE_DEVICES", "0,1"), has_driver);
    for (const char *hidden : {"", "-1", "NoDevFiles", "-1,0"}) {
        const transport_choice seen = with("CUDA_VISIBLE_DEVICES", hidden);
        EXPECT_FALSE(seen.is_on) << hidden;
        EXPECT_EQ(seen.why, "CUDA_VISIBLE_DEVICES hides all GPUs");
    }
}

TEST_F(transport_choice_test, is_ucxs_where_the_user_says_which_transports_it_may_use) {
    setenv("UCX_CUDA_NC_GPU", "sim", 1);
    for (const char *list : {"self,cuda_nc", "cuda_nc", "all", "", "^tcp"}) {
        EXPECT_TRUE(is_on("UCX_TLS", list)) << list;
    }
    for (const char *list : {"^cuda_nc", "^tcp,cuda_nc", "cuda,cuda_ncx,sm", "posix"}) {
        EXPECT_FALSE(is_on("UCX_TLS", list)) << list;
    }
    EXPECT_EQ(with("UCX_TLS", "posix").why, "UCX_TLS=posix leaves it out");
    setenv("UCX_CUDA_NC_GPU", "auto", 1);
    setenv("CUDA_VISIBLE_DEVICES", "", 1);
    EXPECT_TRUE(is_on("UCX_TLS", "self,cuda_nc")) << "what is named is there without a GPU too";
}

TEST_F(transport_choice_test, can_be_set_either_way) {
    setenv("UCX_CUDA_NC_GPU", "none", 1);
    EXPECT_TRUE(is_on("UCX_CUDA_NC_TRANSPORT", "y"));
    EXPECT_TRUE(is_on("UCX_TLS", "sm"));
    setenv("UCX_CUDA_NC_GPU", "sim", 1);
    EXPECT_FALSE(is_on("UCX_CUDA_NC_TRANSPORT", "n"));
    EXPECT_TRUE(is_on("UCX_CUDA_NC_TRANSPORT", "y"));
    EXPECT_FALSE(is_on("UCX_CUDA_NC_ENABLE", "n"));
    EXPECT_EQ(choose_transport().why, "UCX_CUDA_NC_ENABLE=n");
}

}  // namespace
}  // namespace cuda_nc
