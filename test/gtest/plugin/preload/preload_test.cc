// The shim in processes of their own.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "plugin/probe.hpp"

namespace cuda_nc::hooks {
namespace {

using namespace test;

TEST(preload, nothing_changes_without_it) {
    outcome seen = probe("A=b");
    EXPECT_EQ(seen.output, served("original", "original"));
    EXPECT_EQ(seen.status, 0);
}

TEST(preload, libraries_that_were_loaded_local_are_served) {
    expect_served(probe(preload), served("engine", "original"), liar_warning);
}

TEST(preload, everything_is_served_under_an_open_mpi_that_packs_wrongly) {
    expect_served(probe(preload + " FAKE_OPEN_MPI_VERSION=5.0.11"), served("engine", "engine"),
                  liar_warning);
}

// What does not go as a message is not understood there.
TEST(preload, a_later_open_mpi_keeps_its_own_convertor) {
    const std::string convertor = "--convertor ", version = preload + " FAKE_OPEN_MPI_VERSION=";
    expect_served(probe(version + "5.0.11", convertor),
                  served("engine", "engine") + "convertor engine\n", liar_warning);
    expect_served(probe(version + "6.0.0", convertor),
                  served("engine", "engine") + "convertor original\n", liar_warning);
}

TEST(preload, the_host_engine_can_be_switched_off_and_on) {
    expect_served(probe(preload + " UCX_CUDA_NC_HOST_ENGINE=never FAKE_OPEN_MPI_VERSION=5.0.11"),
                  served("original", "original"), liar_warning);
    expect_served(probe(preload + " UCX_CUDA_NC_HOST_ENGINE=always"), served("engine", "engine"),
                  liar_warning);
}

TEST(preload, all_can_be_switched_off) {
    EXPECT_EQ(probe(preload + " UCX_CUDA_NC_ENABLE=n").output, served("original", "original"));
}

// What no derived datatype needs costs contiguous messages nothing.
TEST(preload, passes_sends_on_only_where_the_transport_or_lists_on_gpus_may_be) {
    auto sends = [](const std::string &environment) {
        const std::string all = probe(preload + " " + environment, "--table ").output;
        return all.substr(std::min(all.rfind("table"), all.size()));
    };
    EXPECT_EQ(sends("UCX_CUDA_NC_TRANSPORT=auto UCX_CUDA_NC_GPU=none"), "table ucp\n");
    EXPECT_EQ(sends("UCX_CUDA_NC_TRANSPORT=auto UCX_CUDA_NC_GPU=sim"), "table hook\n");
}

TEST(preload, an_old_ucx_is_passed_by_with_one_warning) {
    expect_served(probe(preload + " FAKE_UCP_MINOR=12"), served("original", "original"),
                  "UCX 1.12.0 is older than 1.13");
    expect_served(probe(preload + " FAKE_UCP_MINOR=13"), served("engine", "original"),
                  liar_warning);
}

class lonely_shim : public testing::Test {
  protected:
    void SetUp() override {
        char pattern[] = "/tmp/nc_shim_XXXXXX";
        ASSERT_NE(mkdtemp(pattern), nullptr);
        directory_ = pattern;
        ASSERT_EQ(run("", "cp " + shim + " " + directory_).status, 0);
    }
    void TearDown() override { run("", "rm -rf " + directory_); }
    std::string preload_alone() const {
        return "LD_PRELOAD=" + directory_ + "/libcuda_nc_preload.so LD_LIBRARY_PATH=";
    }
    std::string directory_;
};

TEST_F(lonely_shim, warns_once_and_passes_by) {
    expect_served(probe(preload_alone()), served("original", "original"),
                  "libcuda_nc.so cannot be used, the job runs without it");
}

TEST_F(lonely_shim, is_silent_where_the_ucx_is_not_served_anyway) {
    EXPECT_EQ(probe(preload_alone() + " FAKE_UCP_MINOR=12").output, served("original", "original"));
}

TEST(preload, a_shell_is_untouched) {
    const char *const shell =
        "bash -c 'echo; grep -c cuda_nc /proc/self/maps; ls /; cat /no/such/file; exit 7'";
    outcome plain = run("", shell), loaded = run(preload, shell);
    int lines_plain, lines_loaded;
    EXPECT_EQ(loaded.status, 7);
    // grep's own process holds the shim's few mappings and nothing else of ours
    EXPECT_EQ(without(plain.output, "no such line", &lines_plain).substr(3),
              without(loaded.output, "no such line", &lines_loaded).substr(3));
    EXPECT_EQ(run(preload, "bash -c true"), run("", "bash -c true"));
    outcome others = run(preload, "bash -c 'grep -v preload /proc/self/maps | grep -c cuda_nc'");
    EXPECT_EQ(others.output, "0\n");
}

TEST(preload, python_is_untouched_until_it_calls) {
    const std::string script =
        "python3 -c \"import ctypes; l = ctypes.CDLL('" + fake_path("libucp_fake.so") +
        "'); print(l.fake_ucp_live(), 'libcuda_nc.so' in open('/proc/self/maps').read())\"";
    EXPECT_EQ(run(preload, script).output, "0 False\n");
}

}  // namespace
}  // namespace cuda_nc::hooks
