// The choice of a backend, forks, and the C functions: each in a process of its own.
#include <sys/wait.h>
#include <unistd.h>

#include "cuda_nc/cuda_nc.h"
#include "ucs/gpu/child_process.hpp"
#include "ucs/gpu/gpu_fixture.hpp"

namespace cuda_nc::gpu::test {
namespace {

// What the child printed is shown where its end is not the expected one.
void run(const char *test, const std::vector<std::string> &settings, int expected = 0) {
    child_process child(std::string("gpu_platform.DISABLED_") + test, settings);
    EXPECT_EQ(child.wait(), expected) << test << " printed:\n" << child.output();
    // A name that matches no test would end well too.
    EXPECT_TRUE(expected != 0 || child.output().find("] 1 test") != std::string::npos)
        << child.output();
}

TEST(gpu_platform, DISABLED_none) {
    platform &chosen = platform::instance();
    EXPECT_STREQ(chosen.name(), "none");
    EXPECT_FALSE(chosen.why().empty());
    EXPECT_EQ(chosen.num_devices(), 0);
    EXPECT_EQ(chosen.get_device(0), nullptr);
    char local = 0;
    EXPECT_EQ(chosen.query(&local).kind, memory_kind::host);
    EXPECT_EQ(&platform::instance(), &chosen);
    EXPECT_EQ(cuda_nc_sim_malloc(10), nullptr);
    char other = 5;
    cuda_nc_sim_memcpy(&local, &other, 1);
    EXPECT_EQ(local, 5);
    cuda_nc_sim_free(nullptr);
}

TEST(gpu_platform, none_serves_host_memory) {
    run("none", {"UCX_CUDA_NC_GPU=none"});
}

TEST(gpu_platform, a_sim_that_cannot_be_had_is_none) {
    run("none", {"UCX_CUDA_NC_GPU=sim", "UCX_CUDA_NC_SIM_FAULTS=wrong"});
}

TEST(gpu_platform, DISABLED_automatic) {
    platform &chosen = platform::instance();
    std::string name = chosen.name();
    EXPECT_TRUE(name == "none" || name == "cuda") << name;
    EXPECT_FALSE(chosen.why().empty());
    char local;
    EXPECT_EQ(chosen.query(&local).kind, memory_kind::host);
}

TEST(gpu_platform, automatic_choice_never_simulates) {
    run("automatic", {"UCX_CUDA_NC_GPU=auto"});
    run("automatic", {"UCX_CUDA_NC_GPU=cuda"});
}

TEST(gpu_platform, DISABLED_sim_settings) {
    platform &chosen = platform::instance();
    EXPECT_STREQ(chosen.name(), "sim");
    EXPECT_EQ(chosen.num_devices(), 3);
    EXPECT_EQ(chosen.get_device(2)->properties().memory_size, size_t(1) << 20);
    EXPECT_EQ(cuda_nc_sim_malloc(1000), nullptr) << "the first allocation fails";
    auto *first = static_cast<char *>(cuda_nc_sim_malloc(1000));
    auto *second = static_cast<char *>(cuda_nc_sim_malloc(1000));
    ASSERT_NE(first, nullptr);
    ASSERT_NE(second, nullptr);
    EXPECT_EQ(cuda_nc_sim_malloc(1 << 21), nullptr);
    EXPECT_EQ(chosen.query(first + 999).kind, memory_kind::device);
    EXPECT_EQ(chosen.query(first + 999).device, 2);
    char from[100], to[100] = {};
    for (int i = 0; i < 100; ++i) {
        from[i] = static_cast<char>(i);
    }
    cuda_nc_sim_memcpy(first + 7, from, 100);
    cuda_nc_sim_memcpy(second + 900, first + 7, 100);
    cuda_nc_sim_memcpy(to, second + 900, 100);
    EXPECT_EQ(std::memcmp(from, to, 100), 0);
    cuda_nc_sim_memcpy(nullptr, nullptr, 0);
    cuda_nc_sim_free(first);
    cuda_nc_sim_free(second);
}

TEST(gpu_platform, settings_rule_the_simulated_gpus) {
    run("sim_settings",
        {"UCX_CUDA_NC_GPU=sim", "UCX_CUDA_NC_SIM_DEVICES=3", "UCX_CUDA_NC_SIM_MEMORY=1M",
         "UCX_CUDA_NC_SIM_DEVICE=2", "UCX_CUDA_NC_SIM_FAULTS=alloc:1"});
}

TEST(gpu_platform, DISABLED_wild_copy) {
    auto *address = static_cast<char *>(cuda_nc_sim_malloc(100));
    char local[200];
    cuda_nc_sim_memcpy(local, address, 101);
}

TEST(gpu_platform, a_copy_beyond_an_allocation_ends_the_process) {
    run("wild_copy", {"UCX_CUDA_NC_GPU=sim"}, -SIGABRT);
}

// Exit status of a forked child that runs `body`, which returns true where all is well.
template <typename F>
int in_fork(F &&body) {
    pid_t child = fork();
    if (child == 0) {
        _exit(body() ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    return status;
}

// A child has no GPU, and neither hangs nor disturbs its parent when it uses or releases what it
// inherited.
void fork_with_work_in_flight() {
    platform &chosen = platform::instance();
    device *where = chosen.get_device(0);
    if (where == nullptr) {
        GTEST_SKIP() << chosen.why();
    }
    auto one = std::make_unique<std::unique_ptr<memory>>();
    std::unique_ptr<memory> pinned;
    std::unique_ptr<stream> stream;
    std::unique_ptr<event> mark;
    ASSERT_EQ(where->allocate(1 << 20, one.get()), UCS_OK);
    ASSERT_EQ(where->allocate_pinned(1 << 20, &pinned), UCS_OK);
    ASSERT_EQ(where->create_stream(&stream), UCS_OK);
    ASSERT_EQ(where->create_event(&mark), UCS_OK);
    std::memset(pinned->address(), 9, 1 << 20);
    ASSERT_EQ(stream->copy((*one)->address(), pinned->address(), 1 << 20), UCS_OK);
    ASSERT_EQ(stream->record(*mark), UCS_OK);
    EXPECT_EQ(in_fork([&] {
                  platform &mine = platform::instance();
                  bool good = std::strcmp(mine.name(), "none") == 0 && mine.num_devices() == 0 &&
                              mine.query((*one)->address()).kind == memory_kind::host &&
                              chosen.num_devices() == 0 && chosen.get_device(0) == nullptr &&
                              chosen.query((*one)->address()).kind == memory_kind::host;
                  std::unique_ptr<memory> none;
                  good = good && where->allocate(10, &none) != UCS_OK &&
                         stream->record(*mark) != UCS_OK && mark->query() == UCS_ERR_IO_ERROR &&
                         mark->synchronize() == UCS_ERR_IO_ERROR &&
                         cuda_nc_sim_malloc(10) == nullptr;
                  stream.reset();
                  mark.reset();
                  one->reset();
                  pinned.reset();
                  return good;
              }),
              0);
    ASSERT_EQ(mark->synchronize(), UCS_OK);
    EXPECT_EQ(chosen.query((*one)->address()).kind, memory_kind::device);
    std::vector<char> bytes(1 << 20);
    ASSERT_EQ(stream->copy(bytes.data(), (*one)->address(), bytes.size()), UCS_OK);
    EXPECT_EQ(bytes, std::vector<char>(1 << 20, 9));
}

TEST(gpu_platform, DISABLED_fork) {
    fork_with_work_in_flight();
}

TEST(gpu_platform, a_forked_child_has_no_gpu) {
    run("fork", {"UCX_CUDA_NC_GPU=sim", "UCX_CUDA_NC_SIM_DELAY=2000"});
    run("fork", {"UCX_CUDA_NC_GPU=auto"});
}

TEST(gpu_platform, DISABLED_fork_before_use) {
    EXPECT_EQ(in_fork([] {
                  return std::strcmp(platform::instance().name(), "sim") == 0 &&
                         cuda_nc_sim_malloc(10) != nullptr;
              }),
              0);
    EXPECT_STREQ(platform::instance().name(), "sim");
}

TEST(gpu_platform, a_child_forked_before_any_use_has_gpus) {
    run("fork_before_use", {"UCX_CUDA_NC_GPU=sim"});
}

TEST(gpu_platform, DISABLED_exit_with_work) {
    // Everything is left to the process's end, with work still to be done.
    platform &chosen = platform::instance();
    device *where = chosen.get_device(0);
    if (where == nullptr) {
        return;
    }
    static std::unique_ptr<memory> pinned, one;
    static std::unique_ptr<stream> stream;
    ASSERT_EQ(where->allocate_pinned(1 << 20, &pinned), UCS_OK);
    ASSERT_EQ(where->allocate(1 << 20, &one), UCS_OK);
    ASSERT_EQ(where->create_stream(&stream), UCS_OK);
    for (int i = 0; i < 20; ++i) {
        ASSERT_EQ(stream->copy(one->address(), pinned->address(), 1 << 20), UCS_OK);
    }
}

TEST(gpu_platform, a_process_may_end_with_work_in_flight) {
    run("exit_with_work", {"UCX_CUDA_NC_GPU=sim", "UCX_CUDA_NC_SIM_DELAY=1000"});
    run("exit_with_work", {"UCX_CUDA_NC_GPU=auto"});
}

}  // namespace
}  // namespace cuda_nc::gpu::test
