#include "tools/perftest/support/timed_transfer.hpp"

#include <gtest/gtest.h>

#include "tools/perftest/layouts/catalogue.hpp"
#include "tools/perftest/support/sectors.hpp"

namespace cuda_nc::tools {
namespace {

// Tables that a GPU reads, in bytes; after the first use.
size_t tables_on_gpu(const layout_ref &what) {
    transfer_request request;
    request.what = what;
    request.memory = memory_choice::device;
    std::unique_ptr<timed_transfer> moves = make_timed_transfer(request);
    moves->first_use();
    return moves->table_bytes();
}

TEST(timed_transfer, lists_of_one_length_cost_four_bytes_a_block) {
    if (gpu::platform::instance().num_devices() == 0) {
        GTEST_SKIP() << "no GPU";
    }
    constexpr size_t blocks = 100 * 1024, padding = 2 * 256;
    const size_t bytes = tables_on_gpu(layout_of("indexed:100K,8,8,8,5"));
    EXPECT_GE(bytes, 4 * blocks);
    EXPECT_LE(bytes, 4 * blocks + blocks / 1024 * 8 + padding);
    EXPECT_EQ(tables_on_gpu(layout_of("vector:1K,8,16")), 0u);
}

TEST(timed_transfer, lists_of_any_lengths_cost_eight_to_ten_bytes_a_block) {
    if (gpu::platform::instance().num_devices() == 0) {
        GTEST_SKIP() << "no GPU";
    }
    constexpr size_t blocks = 20 * 1024, padding = 5 * 256;
    for (const char *text : {"indexed:20K,1,100,1,7", "indexed:20K,600,1800,8,7"}) {
        const layout_ref what = layout_of(text);
        const size_t bytes = tables_on_gpu(what);
        EXPECT_GT(bytes, what->table_bytes()) << text;  // the index
        EXPECT_GE(bytes, 8 * blocks) << text;
        EXPECT_LE(bytes, 10 * blocks + blocks / 1024 * 16 + padding) << text;
    }
}

// A copy of half the bytes that a transfer touches fits into its buffers.
TEST(timed_transfer, copies_as_many_sectors_as_it_says) {
    for (memory_choice memory :
         {memory_choice::host, memory_choice::device, memory_choice::pinned}) {
        transfer_request request;
        request.what = layout_of("vector:1K,8,1000");
        request.dir = gpu::direction::unpack;
        request.memory = memory;
        if (memory != memory_choice::host && gpu::platform::instance().num_devices() == 0) {
            continue;
        }
        std::unique_ptr<timed_transfer> moves = make_timed_transfer(request);
        moves->first_use();
        const uint64_t sector = memory == memory_choice::host ? host_sector : gpu_sector;
        EXPECT_EQ(moves->prepare_sector_copy(),
                  memory == memory_choice::pinned
                      ? 0
                      : touched_bytes(*request.what, request.dir, 0, sector).value());
        EXPECT_GT(moves->plain_copy(2), 0);
        if (memory != memory_choice::pinned) {
            EXPECT_GT(moves->sector_copy(2), 0);
        }
    }
}

}  // namespace
}  // namespace cuda_nc::tools
