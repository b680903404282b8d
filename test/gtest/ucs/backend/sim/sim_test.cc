// What only the simulated GPU promises: memory out of the CPU's reach, and work that runs late.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <map>
#include <random>
#include <vector>

#include "ucs/backend/sim/sim_fixture.hpp"

namespace cuda_nc::gpu::test {
namespace {

using gpu_sim_death = gpu_sim;

// Sanitizers turn the signal into a report and an exit.
bool died_of_an_access(int status) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    // A sanitizer may catch the signal and end the process in its own way.
    return WIFSIGNALED(status) || (WIFEXITED(status) && WEXITSTATUS(status) != 0);
#else
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV;
#endif
}

TEST_F(gpu_sim_death, a_touch_by_the_cpu_ends_the_process) {
    GTEST_FLAG_SET(death_test_style, "fast");
    start("");
    std::unique_ptr<memory> one = allocate(1000);
    volatile char *address = one->address();
    EXPECT_EXIT(address[10] = 1, died_of_an_access, "");
    EXPECT_EXIT(
        {
            char byte = address[10];
            _exit(byte == 0 ? 0 : 0);
        },
        died_of_an_access, "");
}

TEST_F(gpu_sim, managed_memory_is_reached_by_the_cpu_and_by_every_gpu) {
    start("alloc:3");
    std::unique_ptr<memory> made, none;
    ASSERT_EQ(sim::allocate_managed(*platform_, 1, 4096, &made), UCS_OK);
    std::memset(made->address(), 7, 4096);
    const memory_info found = platform_->query(made->address() + 100);
    EXPECT_EQ(found.kind, memory_kind::managed);
    EXPECT_EQ(found.device, 1);
    EXPECT_EQ(found.allocation.base, made->address());
    EXPECT_EQ(found.allocation.size, 4096u);
    EXPECT_NE(found.allocation.id, 0u);
    EXPECT_EQ(found.allocation.shared, sharing::none);
    EXPECT_EQ(platform_->query(made->address() + 4096).kind, memory_kind::host);

    std::unique_ptr<memory> packed = allocate(2048);  // of GPU 0
    std::vector<char> seen(2048);
    ASSERT_EQ(stream_->launch(blocks(made->address(), packed->address(), 64, 32, 64)), UCS_OK);
    ASSERT_EQ(finish(*stream_), UCS_OK);
    sim::copy_now(*platform_, seen.data(), packed->address(), 2048);
    EXPECT_EQ(seen, std::vector<char>(2048, 7));

    ipc_handle handle;
    size_t offset;
    std::shared_ptr<void> keeper;
    EXPECT_EQ(platform_->get_device(1)->ipc_export(made->address(), &handle, &offset),
              UCS_ERR_UNSUPPORTED);
    EXPECT_EQ(platform_->get_device(1)->ipc_share(made->address(), 4096, &handle, &keeper),
              UCS_ERR_UNSUPPORTED);
    EXPECT_EQ(sim::allocate_managed(*platform_, 2, 4096, &none), UCS_ERR_NO_DEVICE);
    EXPECT_EQ(sim::allocate_managed(*platform_, 0, 4096, &none), UCS_ERR_NO_MEMORY) << "alloc:3";
    const char *const address = made->address();
    made.reset();
    EXPECT_EQ(platform_->query(address).kind, memory_kind::host);
}

TEST_F(gpu_sim, a_launch_runs_after_the_call_and_a_missing_wait_shows) {
    sim::options slow;
    slow.delay = 800000;
    slow.seed = 5;
    start(slow);
    std::unique_ptr<memory> from = allocate_pinned(4096), to = allocate_pinned(4096);
    std::memset(from->address(), 1, 4096);
    std::memset(to->address(), 2, 4096);
    std::unique_ptr<event> mark = make_event();
    ASSERT_EQ(stream_->launch(blocks(from->address(), to->address(), 64, 64, 64)), UCS_OK);
    ASSERT_EQ(stream_->record(*mark), UCS_OK);
    // Hundreds of milliseconds from now; whoever does not wait finds nothing.
    EXPECT_EQ(mark->query(), UCS_INPROGRESS);
#if !CUDA_NC_TSAN  // which rightly complains of this
    EXPECT_NE(std::memcmp(from->address(), to->address(), 4096), 0);
#endif
    ASSERT_EQ(mark->synchronize(), UCS_OK);
    EXPECT_EQ(mark->query(), UCS_OK);
    EXPECT_EQ(std::memcmp(from->address(), to->address(), 4096), 0);
}

TEST_F(gpu_sim, different_streams_run_side_by_side) {
    start("stuck:1");
    std::unique_ptr<stream> other;
    create(&other);
    std::unique_ptr<memory> memory = allocate(4096), packed = allocate(4096);
    std::unique_ptr<event> stuck = make_event();
    transfer work = blocks(memory->address(), packed->address(), 8, 8, 16);
    ASSERT_EQ(stream_->launch(work), UCS_OK);
    ASSERT_EQ(stream_->record(*stuck), UCS_OK);
    ASSERT_EQ(other->launch(work), UCS_OK);
    EXPECT_EQ(finish(*other), UCS_OK);
    EXPECT_EQ(stuck->query(), UCS_INPROGRESS);
    EXPECT_EQ(stuck->synchronize(), UCS_ERR_IO_ERROR) << "bounded";
}

TEST_F(gpu_sim, pieces_run_in_an_order_of_their_own) {
    // Overlapping targets show the order: it must differ from run to run.
    sim::options how;
    how.delay = 0;
    start(how);
    std::unique_ptr<memory> packed = allocate_pinned(4096), target = allocate_pinned(16);
    for (int i = 0; i < 4096; ++i) {
        packed->address()[i] = static_cast<char>(i / 16);
    }
    std::map<char, int> last;
    for (int round = 0; round < 50; ++round) {
        transfer work = blocks(target->address(), packed->address(), 256, 16, 0);
        work.dir = direction::unpack;
        ASSERT_EQ(stream_->launch(work), UCS_OK);
        ASSERT_EQ(finish(*stream_), UCS_OK);
        ++last[target->address()[0]];
    }
    EXPECT_GT(last.size(), 5u);
}

TEST_F(gpu_sim, pairs_of_a_list_run_in_an_order_of_their_own) {
    sim::options how;
    how.delay = 0;
    start(how);
    constexpr size_t count = 200;
    std::unique_ptr<memory> bytes = allocate_pinned(count), target = allocate_pinned(1);
    std::unique_ptr<memory> pinned = allocate_pinned(count * sizeof(block_pair));
    auto *pairs = reinterpret_cast<block_pair *>(pinned->address());
    for (size_t i = 0; i < count; ++i) {
        bytes->address()[i] = static_cast<char>(i);
        pairs[i] = {bytes->address() + i, target->address(), 1};
    }
    std::map<char, int> last;
    for (int round = 0; round < 50; ++round) {
        ASSERT_EQ(stream_->launch({pairs, count, 0, nullptr}), UCS_OK);
        ASSERT_EQ(finish(*stream_), UCS_OK);
        ++last[target->address()[0]];
    }
    EXPECT_GT(last.size(), 5u);
}

TEST_F(gpu_sim, memory_is_limited_and_comes_back) {
    sim::options how;
    how.memory = 1 << 20;
    start(how);
    std::unique_ptr<memory> none;
    EXPECT_EQ(device_->allocate((1 << 20) + 1, &none), UCS_ERR_NO_MEMORY);
    std::unique_ptr<memory> half = allocate(1 << 19), other = allocate(1 << 19);
    EXPECT_EQ(device_->allocate(1, &none), UCS_ERR_NO_MEMORY);
    std::unique_ptr<memory> elsewhere;
    EXPECT_EQ(platform_->get_device(1)->allocate(1 << 20, &elsewhere), UCS_OK);
    EXPECT_EQ(platform_->query(elsewhere->address()).device, 1);
    half.reset();
    other.reset();
    EXPECT_EQ(device_->allocate(1 << 20, &none), UCS_OK);
}

TEST_F(gpu_sim, allocations_never_overlap_or_touch) {
    sim::options how;
    how.memory = 1 << 20;
    start(how);
    std::mt19937_64 random(3);
    std::map<char *, std::unique_ptr<memory>> live;
    for (int round = 0; round < 5000; ++round) {
        if (random() % 3 == 0 && !live.empty()) {
            live.erase(std::next(live.begin(), static_cast<long>(random() % live.size())));
            continue;
        }
        std::unique_ptr<memory> made;
        size_t size = random() % (random() % 8 == 0 ? 200000 : 3000);
        if (device_->allocate(size, &made) != UCS_OK) {
            continue;
        }
        char *address = made->address();
        ASSERT_EQ(reinterpret_cast<uintptr_t>(address) % 256, 0u);
        auto next = live.lower_bound(address);
        ASSERT_TRUE(next == live.end() || address + size < next->first);
        ASSERT_TRUE(next == live.begin() ||
                    std::prev(next)->first + std::prev(next)->second->size() < address);
        live[address] = std::move(made);
    }
    live.clear();
    EXPECT_NE(allocate(1 << 20), nullptr) << "all gaps are one again";
}

}  // namespace
}  // namespace cuda_nc::gpu::test
