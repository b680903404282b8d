// What only the simulated GPU promises.
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <map>

#include "cuda_nc/cuda_nc.h"
#include "ucs/gpu/child_process.hpp"
#include "ucs/gpu/gpu_fixture.hpp"
#include "ucs/gpu/sim/faults.hpp"

namespace cuda_nc::gpu::test {
namespace {

class gpu_sim : public testing::Test {
  protected:
    // A platform of its own for each test; destroyed after everything that comes from it.
    void start(const sim::options &how) {
        std::string why;
        platform_ = sim::make_platform(how, &why);
        ASSERT_NE(platform_, nullptr) << why;
        device_ = platform_->get_device(0);
        create(&stream_);
    }
    void start(const std::string &faults) {
        sim::options how;
        how.memory = 16 << 20;
        how.faults = faults;
        start(how);
    }

    void create(std::unique_ptr<stream> *stream_p) {
        ASSERT_EQ(device_->create_stream(stream_p), UCS_OK);
    }
    std::unique_ptr<event> make_event() {
        std::unique_ptr<event> made;
        EXPECT_EQ(device_->create_event(&made), UCS_OK);
        return made;
    }
    std::unique_ptr<memory> allocate(size_t size) {
        std::unique_ptr<memory> made;
        EXPECT_EQ(device_->allocate(size, &made), UCS_OK);
        return made;
    }
    std::unique_ptr<memory> allocate_pinned(size_t size) {
        std::unique_ptr<memory> made;
        EXPECT_EQ(device_->allocate_pinned(size, &made), UCS_OK);
        return made;
    }
    ucs_status_t finish(stream &on) {
        std::unique_ptr<event> mark = make_event();
        ucs_status_t status = on.record(*mark);
        return status != UCS_OK ? status : mark->synchronize();
    }
    static transfer blocks(char *base, char *packed, uint64_t count, uint64_t length,
                           int64_t stride) {
        transfer work;
        work.layout.kind = shape::strided;
        work.layout.num_blocks = work.layout.num_dims = 1;
        work.layout.list_size = work.layout.block_length = length;
        work.layout.packed_size = work.length = count * length;
        work.layout.by_list = work.layout.by_block = fast_divide(length);
        work.layout.dims[0] = {count, stride};
        work.layout.by_dim[0] = fast_divide(count);
        work.base = base;
        work.packed = packed;
        return work;
    }

    std::unique_ptr<platform> platform_;
    device *device_ = nullptr;
    std::unique_ptr<stream> stream_;
};

using gpu_sim_death = gpu_sim;

// Sanitizers turn the signal into a report and an exit.
bool died_of_an_access(int status) {
#if defined(__SANITIZE_ADDRESS__) || CUDA_NC_TSAN
    return WIFEXITED(status) && WEXITSTATUS(status) != 0;
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

TEST_F(gpu_sim, illegal_accesses_fail_and_the_error_stays) {
    struct wrong {
        const char *what;
        const char *logged;
        std::function<transfer()> work;
    };
    start("");
    std::unique_ptr<memory> one = allocate(1024), small = allocate(64),
                            pinned = allocate_pinned(64);
    std::unique_ptr<memory> other_gpu;
    ASSERT_EQ(platform_->get_device(1)->allocate(1024, &other_gpu), UCS_OK);
    std::vector<char> host(1024);
    static const int64_t host_table[2] = {0, 32};
    char *freed = allocate(1024)->address();
    auto listed = [&](const int64_t *table) {
        transfer work = blocks(one->address(), small->address(), 1, 16, 0);
        work.layout.num_blocks = 2;
        work.layout.num_dims = 0;
        work.layout.list_size = work.layout.packed_size = work.length = 32;
        work.layout.tables.wide_displacement = table;
        return work;
    };
    const wrong all[] = {
        {"pageable base", "laid-out bytes",
         [&] { return blocks(host.data(), small->address(), 8, 8, 16); }},
        {"pageable packed bytes", "packed bytes",
         [&] { return blocks(one->address(), host.data(), 8, 8, 16); }},
        {"beyond the allocation", "laid-out bytes",
         [&] { return blocks(one->address(), small->address(), 2, 8, 1017); }},
        {"before the allocation", "laid-out bytes",
         [&] { return blocks(one->address() + 8, small->address(), 2, 8, -9); }},
        {"packed beyond the allocation", "packed bytes",
         [&] { return blocks(one->address(), small->address() + 1, 8, 8, 16); }},
        {"packed beyond pinned memory", "packed bytes",
         [&] { return blocks(one->address(), pinned->address() + 1, 8, 8, 16); }},
        {"freed memory", "laid-out bytes",
         [&] { return blocks(freed, small->address(), 8, 8, 16); }},
        {"another GPU", "memory of another GPU",
         [&] { return blocks(other_gpu->address(), small->address(), 8, 8, 16); }},
        {"a table in host memory", "displacements", [&] { return listed(host_table); }},
        {"a table beyond its allocation", "displacements",
         [&] { return listed(reinterpret_cast<int64_t *>(small->address() + 56)); }},
        {"more bytes than the layout has", "of a layout of",
         [&] {
             transfer work = blocks(one->address(), small->address(), 4, 8, 16);
             work.packed_offset = 8;
             return work;
         }},
    };
    for (const wrong &one_wrong : all) {
        SCOPED_TRACE(one_wrong.what);
        std::unique_ptr<stream> failing, depending;
        create(&failing);
        create(&depending);
        std::unique_ptr<event> mark = make_event();
        testing::internal::CaptureStderr();
        ASSERT_EQ(failing->launch(one_wrong.work()), UCS_OK) << "as a GPU: fails at execution";
        ASSERT_EQ(failing->record(*mark), UCS_OK);
        EXPECT_EQ(mark->synchronize(), UCS_ERR_IO_ERROR);
        EXPECT_EQ(mark->query(), UCS_ERR_IO_ERROR);
        std::string log = testing::internal::GetCapturedStderr();
        EXPECT_NE(log.find(one_wrong.logged), std::string::npos) << log;
        EXPECT_EQ(finish(*failing), UCS_ERR_IO_ERROR) << "stays";
        ASSERT_EQ(depending->wait(*mark), UCS_OK);
        EXPECT_EQ(finish(*depending), UCS_ERR_IO_ERROR) << "what waits for it fails too";
        EXPECT_EQ(finish(*stream_), UCS_OK) << "other streams do not";
    }
    testing::internal::CaptureStderr();
    EXPECT_EQ(stream_->copy(one->address() + 1, small->address(), 1024), UCS_ERR_IO_ERROR);
    EXPECT_EQ(stream_->copy(host.data(), freed, 8), UCS_ERR_IO_ERROR);
    testing::internal::GetCapturedStderr();
    EXPECT_EQ(finish(*stream_), UCS_OK);
}

TEST_F(gpu_sim, a_wrong_work_list_is_noticed) {
    start("");
    std::unique_ptr<memory> one = allocate(1024), small = allocate(64), tables = allocate(64);
    const int64_t displacements[2] = {0, 32};
    for (uint32_t second_unit : {1u, 2u}) {
        // Unit 1 begins in block 1 (bytes 16 to 31): an entry beyond it is wrong.
        const uint32_t units[3] = {0, second_unit, 1};
        ASSERT_EQ(stream_->copy(tables->address(), displacements, sizeof(displacements)), UCS_OK);
        ASSERT_EQ(stream_->copy(tables->address() + 16, units, sizeof(units)), UCS_OK);
        transfer work = blocks(one->address(), small->address(), 1, 16, 0);
        work.layout.num_blocks = 2;
        work.layout.num_dims = 0;
        work.layout.list_size = work.layout.packed_size = work.length = 32;
        work.layout.tables.wide_displacement = reinterpret_cast<int64_t *>(tables->address());
        work.layout.tables.unit_block = reinterpret_cast<uint32_t *>(tables->address() + 16);
        work.layout.tables.unit_log2 = 4;
        testing::internal::CaptureStderr();
        ASSERT_EQ(stream_->launch(work), UCS_OK);
        EXPECT_EQ(finish(*stream_), second_unit == 1 ? UCS_OK : UCS_ERR_IO_ERROR);
        testing::internal::GetCapturedStderr();
    }
}

TEST_F(gpu_sim, faults_strike_the_operation_they_name) {
    start("alloc:2,pinned:1,stream:2,event:3+,launch:2,copy:1,ipc_open:1,kernel:3");
    std::unique_ptr<memory> one = allocate(1024), packed, pinned;
    EXPECT_EQ(device_->allocate(1024, &packed), UCS_ERR_NO_MEMORY);
    EXPECT_EQ(device_->allocate(1024, &packed), UCS_OK);
    EXPECT_EQ(device_->allocate_pinned(64, &pinned), UCS_ERR_NO_MEMORY);
    EXPECT_EQ(device_->allocate_pinned(64, &pinned), UCS_OK);
    std::unique_ptr<stream> other;
    EXPECT_EQ(device_->create_stream(&other), UCS_ERR_NO_MEMORY);
    EXPECT_EQ(device_->create_stream(&other), UCS_OK);
    std::unique_ptr<event> first = make_event(), second = make_event(), third;
    EXPECT_EQ(device_->create_event(&third), UCS_ERR_NO_MEMORY);
    EXPECT_EQ(device_->create_event(&third), UCS_ERR_NO_MEMORY);
    EXPECT_EQ(stream_->copy(one->address(), pinned->address(), 64), UCS_ERR_IO_ERROR);
    EXPECT_EQ(stream_->copy(one->address(), pinned->address(), 64), UCS_OK);
    EXPECT_EQ(device_->ipc_open(ipc_handle{}, &pinned), UCS_ERR_IO_ERROR);
    transfer work = blocks(one->address(), packed->address(), 8, 8, 16);
    EXPECT_EQ(stream_->launch(work), UCS_OK);
    EXPECT_EQ(stream_->launch(work), UCS_ERR_IO_ERROR);
    ASSERT_EQ(stream_->record(*first), UCS_OK);
    EXPECT_EQ(first->synchronize(), UCS_OK) << "a refused launch leaves the stream as it was";
    EXPECT_EQ(stream_->launch(work), UCS_OK);
    ASSERT_EQ(stream_->record(*second), UCS_OK);
    EXPECT_EQ(second->synchronize(), UCS_ERR_IO_ERROR);
}

TEST_F(gpu_sim, fault_texts_are_checked) {
    for (const char *good : {"", "alloc:1", "alloc:3+,alloc:1,slow:2.5", "stuck:10", "slow:0"}) {
        std::string why;
        EXPECT_TRUE(sim::fault_plan().parse(good, &why)) << good;
    }
    for (const char *bad : {"alloc", "alloc:", "alloc:0", "alloc:-1", "alloc:1x", "alloc:1++",
                            "what:1", ":1", "slow:", "slow:x", "alloc:1,,", "alloc: 1"}) {
        std::string why;
        EXPECT_FALSE(sim::fault_plan().parse(bad, &why)) << bad;
        EXPECT_FALSE(why.empty()) << bad;
    }
    sim::options how;
    how.faults = "nonsense";
    std::string why;
    EXPECT_EQ(sim::make_platform(how, &why), nullptr);
    EXPECT_FALSE(why.empty());
}

}  // namespace
}  // namespace cuda_nc::gpu::test
