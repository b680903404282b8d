#include "uct/cuda_nc/choice.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "ucs/base/settings.hpp"
#include "ucs/gpu/presence.hpp"

namespace cuda_nc::uct {
namespace {

using variables = std::vector<std::pair<const char *, const char *>>;
using names = std::vector<std::string>;

// The environment as it was, afterwards.
class transport_choice_by : public testing::Test {
  protected:
    void SetUp() override {
        for (const char *name :
             {"UCX_TLS", "UCX_MPI_TLS", "UCX_CUDA_NC_TRANSPORT", "UCX_CUDA_NC_ENABLE",
              "UCX_CUDA_NC_GPU", "UCX_CUDA_NC_CARRIERS", "CUDA_VISIBLE_DEVICES"}) {
            const char *value = std::getenv(name);
            saved_.emplace_back(name, value != nullptr ? value : "");
        }
        set({});
    }
    void TearDown() override {
        for (auto &[name, value] : saved_) {
            value.empty() ? unsetenv(name) : setenv(name, value.c_str(), 1);
        }
        reload_config_for_test();
    }
    void set(const variables &values) {
        for (auto &[name, value] : saved_) {
            unsetenv(name);
        }
        for (auto &[name, value] : values) {
            setenv(name, value, 1);
        }
        reload_config_for_test();
    }
    transport_choice with(const variables &values) {
        set(values);
        return choose_transport();
    }
    transport_choice with_gpu(variables values) {
        values.emplace_back("UCX_CUDA_NC_GPU", "sim");
        return with(values);
    }
    transport_choice with_gpu_and(const char *tls) { return with_gpu({{"UCX_TLS", tls}}); }
    transport_choice without_gpu_and(const char *tls) {
        return with({{"UCX_CUDA_NC_GPU", "none"}, {"UCX_TLS", tls}});
    }

  private:
    std::vector<std::pair<const char *, std::string>> saved_;
};

TEST_F(transport_choice_by, default_is_on_where_there_is_a_gpu) {
    const transport_choice on = with_gpu({});
    EXPECT_TRUE(on.on);
    EXPECT_EQ(on.why, "UCX_CUDA_NC_GPU=sim simulates GPUs, and UCX_TLS is not set");
    EXPECT_EQ(on.carriers, (names{"posix", "tcp", "self"}));
    const transport_choice off = with({{"UCX_CUDA_NC_GPU", "none"}});
    EXPECT_FALSE(off.on);
    EXPECT_EQ(off.why, "UCX_CUDA_NC_GPU=none");
}

TEST_F(transport_choice_by, settings_of_its_own_come_first) {
    EXPECT_FALSE(with_gpu({{"UCX_CUDA_NC_ENABLE", "n"}, {"UCX_CUDA_NC_TRANSPORT", "y"}}).on);
    EXPECT_FALSE(with_gpu({{"UCX_CUDA_NC_TRANSPORT", "n"}, {"UCX_TLS", "cuda_nc"}}).on);
    const transport_choice forced = with(
        {{"UCX_CUDA_NC_GPU", "none"}, {"UCX_CUDA_NC_TRANSPORT", "y"}, {"UCX_TLS", "^cuda_nc"}});
    EXPECT_TRUE(forced.on);
    EXPECT_EQ(forced.why, "UCX_CUDA_NC_TRANSPORT=y");
}

TEST_F(transport_choice_by, a_list_decides_as_for_any_transport) {
    for (const char *list :
         {"all", "cuda_nc", "self,cuda_nc", "^ib", "^cuda", "^\\sm", "^cuda_ncx"}) {
        EXPECT_TRUE(with_gpu_and(list).on) << list;
    }
    for (const char *list : {"", "sm,cuda", "cuda,cuda_ncx", "posix,all", "^cuda_nc", "^sm,cuda_nc",
                             "^posix,tcp,self"}) {
        const transport_choice off = with_gpu_and(list);
        EXPECT_FALSE(off.on) << list;
        EXPECT_NE(off.why.find("UCX_TLS="), std::string::npos) << off.why;
    }
}

TEST_F(transport_choice_by, who_names_it_has_it_without_a_gpu) {
    EXPECT_TRUE(without_gpu_and("cuda_nc,self").on);
    EXPECT_FALSE(without_gpu_and("all").on);
    EXPECT_FALSE(without_gpu_and("^cuda_nc").on);
}

TEST_F(transport_choice_by, a_denied_transport_does_not_carry_it) {
    EXPECT_EQ(with_gpu_and("^tcp").carriers, (names{"posix", "self"}));
    for (const char *list : {"^posix", "^sm", "^shm,ib", "^mm"}) {
        EXPECT_EQ(with_gpu_and(list).carriers, (names{"tcp", "self"})) << list;
    }
    const auto over = [&](const char *list) {
        return with_gpu({{"UCX_TLS", list}, {"UCX_CUDA_NC_CARRIERS", "rc_mlx5,ud_verbs,tcp"}})
            .carriers;
    };
    EXPECT_EQ(over("^ib"), names{"tcp"});
    EXPECT_EQ(over("^rc_x"), (names{"ud_verbs", "tcp"}));
    EXPECT_EQ(over("^ud"), (names{"rc_mlx5", "tcp"}));
    EXPECT_EQ(over("^\\rc"), (names{"rc_mlx5", "ud_verbs", "tcp"}));
    EXPECT_EQ(over("cuda_nc"), (names{"rc_mlx5", "ud_verbs", "tcp"}));
}

// UCX reads Open MPI's settings with the prefix MPI first.
TEST_F(transport_choice_by, programs_with_a_prefix_have_lists_of_their_own) {
    EXPECT_TRUE(with_gpu({{"UCX_TLS", "tcp"}, {"UCX_MPI_TLS", "cuda_nc,self"}}).on);
    EXPECT_TRUE(with_gpu({{"UCX_MPI_TLS", "tcp"}}).on);  // other users of UCX have all
    EXPECT_FALSE(with_gpu({{"UCX_TLS", "tcp"}, {"UCX_MPI_TLS", "sm"}}).on);
    EXPECT_EQ(with_gpu({{"UCX_TLS", "^tcp"}, {"UCX_MPI_TLS", "^sm"}}).carriers,
              (names{"posix", "tcp", "self"}));
}

#ifdef HAVE_CUDA
class gpu_presence : public transport_choice_by {
  protected:
    void SetUp() override {
        transport_choice_by::SetUp();
        char made[] = "/tmp/presence.XXXXXX";
        root_ = mkdtemp(made);
    }
    void TearDown() override {
        std::filesystem::remove_all(root_);
        transport_choice_by::TearDown();
    }
    // An empty folder of this name.
    void make(const std::string &path) { std::filesystem::create_directories(root_ + path); }
    std::string root_;
};

TEST_F(gpu_presence, is_told_by_the_drivers_files) {
    EXPECT_FALSE(gpu::look_for_gpus(root_).possible);
    EXPECT_EQ(gpu::look_for_gpus(root_).why, "there is no NVIDIA driver");
    for (const char *path : {"/dev/dxg", "/proc/driver/nvidia", "/dev/nvidiactl"}) {
        make(path);
        EXPECT_TRUE(gpu::look_for_gpus(root_).possible);
        EXPECT_EQ(gpu::look_for_gpus(root_).why, std::string(path) + " tells of an NVIDIA driver");
        std::filesystem::remove_all(root_ + path);
    }
}

TEST_F(gpu_presence, ends_where_all_are_hidden) {
    make("/dev/nvidiactl");
    for (const char *none : {"", "-1", "NoDevFiles", "-1,0"}) {
        set({{"CUDA_VISIBLE_DEVICES", none}});
        EXPECT_FALSE(gpu::look_for_gpus(root_).possible) << none;
        EXPECT_NE(gpu::look_for_gpus(root_).why.find("hides all GPUs"), std::string::npos);
    }
    for (const char *some : {"0", "1,2", "0,-1", "GPU-8932f937", "MIG-4"}) {
        set({{"CUDA_VISIBLE_DEVICES", some}});
        EXPECT_TRUE(gpu::look_for_gpus(root_).possible) << some;
    }
}
#else
TEST_F(transport_choice_by, a_build_without_cuda_has_no_gpu) {
    EXPECT_FALSE(gpu::look_for_gpus().possible);
    EXPECT_EQ(gpu::look_for_gpus().why, "this ucx-cuda-nc was built without CUDA");
}
#endif

}  // namespace
}  // namespace cuda_nc::uct
