// Illegal accesses and injected faults of the simulated GPU.
#include <cstring>
#include <functional>
#include <vector>

#include "ucs/backend/sim/faults.hpp"
#include "ucs/backend/sim/sim_fixture.hpp"

namespace cuda_nc::gpu::test {
namespace {

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
        {"not where it says that bytes land", "own memory, as the launch says",
         [&] {
             transfer work = blocks(one->address(), pinned->address(), 8, 8, 16);
             work.into_own_memory = true;
             return work;
         }},
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

TEST_F(gpu_sim, a_pair_list_that_leads_to_memory_out_of_reach_fails_and_the_error_stays) {
    struct wrong {
        const char *what;
        const char *logged;
        std::function<pair_list()> list;
    };
    start("");
    std::unique_ptr<memory> one = allocate(1024), two = allocate(1024);
    std::unique_ptr<memory> pairs = allocate_pinned(4 * sizeof(block_pair)), other_gpu;
    ASSERT_EQ(platform_->get_device(1)->allocate(1024, &other_gpu), UCS_OK);
    std::vector<char> host(1024);
    char *freed = allocate(1024)->address();
    auto *placed = reinterpret_cast<block_pair *>(pairs->address());
    // Two pairs, of which the second is wrong.
    auto with = [&](const char *from, char *to, uint64_t length) {
        return [=, &one, &two] {
            placed[0] = {one->address(), two->address(), 8};
            placed[1] = {from, to, length};
            return pair_list{placed, 2, 0, nullptr};
        };
    };
    static const block_pair in_host_memory[1] = {{nullptr, nullptr, 0}};
    const wrong all[] = {
        {"pageable source", "a pair's source", with(host.data(), two->address() + 8, 8)},
        {"pageable target", "a pair's target", with(one->address(), host.data(), 8)},
        {"null source", "a pair's source", with(nullptr, two->address() + 8, 1)},
        {"source beyond its allocation", "a pair's source",
         with(one->address() + 1020, two->address() + 8, 5)},
        {"target beyond its allocation", "a pair's target",
         with(one->address(), two->address() + 1020, 5)},
        {"a length that wraps", "a pair's source",
         with(one->address() + 8, two->address() + 8, UINT64_MAX - 4)},
        {"freed memory", "a pair's target", with(one->address(), freed, 8)},
        {"another GPU", "memory of another GPU", with(other_gpu->address(), two->address() + 8, 8)},
        {"pairs in host memory", "a pair list",
         [&] {
             return pair_list{in_host_memory, 1, 0, nullptr};
         }},
        {"pairs beyond their allocation", "a pair list",
         [&] {
             return pair_list{placed, 5, 0, nullptr};
         }},
        {"pairs of another GPU", "memory of another GPU",
         [&] {
             return pair_list{reinterpret_cast<block_pair *>(other_gpu->address()), 1, 0, nullptr};
         }},
        {"pairs that are not aligned", "1 pairs at",
         [&] {
             return pair_list{reinterpret_cast<block_pair *>(pairs->address() + 4), 1, 0, nullptr};
         }},
        {"a count that wraps", "pairs at",
         [&] {
             return pair_list{placed, SIZE_MAX / sizeof(block_pair) + 2, 0, nullptr};
         }},
    };
    for (const wrong &one_wrong : all) {
        SCOPED_TRACE(one_wrong.what);
        std::unique_ptr<stream> failing;
        create(&failing);
        std::unique_ptr<event> mark = make_event();
        testing::internal::CaptureStderr();
        EXPECT_EQ(failing->launch(one_wrong.list()), UCS_OK) << "as a GPU: fails at execution";
        EXPECT_EQ(failing->record(*mark), UCS_OK);
        EXPECT_EQ(mark->synchronize(), UCS_ERR_IO_ERROR);
        std::string log = testing::internal::GetCapturedStderr();
        EXPECT_NE(log.find(one_wrong.logged), std::string::npos) << log;
        EXPECT_EQ(finish(*failing), UCS_ERR_IO_ERROR) << "stays";
        EXPECT_EQ(finish(*stream_), UCS_OK) << "other streams do not fail";
    }
}

TEST_F(gpu_sim, faults_strike_pair_lists_as_other_launches) {
    start("launch:2,load:3,kernel:4");
    std::unique_ptr<memory> one = allocate(1024), pinned = allocate_pinned(4096);
    auto *pairs = reinterpret_cast<block_pair *>(pinned->address());
    pairs[0] = {one->address(), one->address() + 512, 512};
    end_words ends;
    ends.use(pinned->address() + 1024);
    const pair_list list = {pairs, 1, 0, &ends};
    ends.renew();
    EXPECT_EQ(stream_->launch(list), UCS_OK);
    EXPECT_EQ(finish(*stream_), UCS_OK);
    EXPECT_TRUE(ends.reached());
    EXPECT_EQ(stream_->launch({pairs, 0, 0, nullptr}), UCS_OK) << "not counted";
    EXPECT_EQ(stream_->launch(list), UCS_ERR_IO_ERROR);
    EXPECT_EQ(stream_->launch(list), UCS_ERR_NO_MEMORY);
    EXPECT_EQ(finish(*stream_), UCS_OK) << "a refused launch leaves the stream as it was";
    ends.renew();
    EXPECT_EQ(stream_->launch(list), UCS_OK);
    EXPECT_EQ(finish(*stream_), UCS_ERR_IO_ERROR);
    EXPECT_FALSE(ends.reached()) << "words tell of success only";
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
    start("alloc:2,pinned:1,stream:2,event:3+,launch:2,load:3,copy:1,mark:1,ipc_open:1,kernel:4");
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
    EXPECT_EQ(stream_->launch(work), UCS_ERR_NO_MEMORY);
    EXPECT_EQ(stream_->record(*first), UCS_ERR_IO_ERROR);
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
        EXPECT_NE(why.find("UCX_CUDA_NC_SIM_FAULTS: "), std::string::npos) << why;
        EXPECT_NE(why.find("ipc_open"), std::string::npos) << why;
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
