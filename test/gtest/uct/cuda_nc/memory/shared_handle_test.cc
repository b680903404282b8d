#include "uct/cuda_nc/memory/shared_handle.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstring>
#include <string>
#include <vector>

#include "ucs/backend/sim/options.hpp"

namespace cuda_nc::uct {
namespace {

constexpr size_t piece = 4096, num_pieces = 600;

class shared_handle_test : public ::testing::Test {
  protected:
    void SetUp() override {
        gpu::platform &gpus = gpu::platform::instance();
        if (std::string(gpus.name()) != "sim") {
            GTEST_SKIP() << "makes memory of the simulated GPU one of pieces";
        }
        gpu_ = gpus.get_device(0);
        ASSERT_EQ(gpu_->allocate(num_pieces * piece, &memory_), UCS_OK);
        gpu::sim::set_sharing(gpus, memory_->address(), gpu::sharing::by_descriptor, piece);
    }

    // Whether the piece is shared; *keeper_p sees how long.
    bool share(size_t number, std::weak_ptr<void> *keeper_p) {
        const gpu::memory_info found =
            gpu::platform::instance().query(memory_->address() + number * piece);
        gpu::ipc_handle handle;
        std::shared_ptr<void> keeper;
        const bool shared = find_shared_handle(*gpu_, found.allocation, &handle, &keeper);
        *keeper_p = keeper;
        return shared && keeper != nullptr;
    }

    gpu::device *gpu_ = nullptr;
    std::unique_ptr<gpu::memory> memory_;
};

TEST_F(shared_handle_test, of_256_pieces_are_kept_and_then_the_oldest_go) {
    std::vector<std::weak_ptr<void>> keepers(num_pieces);
    for (size_t i = 0; i < 256; ++i) {
        ASSERT_TRUE(share(i, &keepers[i]));
    }
    for (size_t i = 0; i < 256; ++i) {
        EXPECT_FALSE(keepers[i].expired()) << i;
    }
    std::weak_ptr<void> again;
    ASSERT_TRUE(share(0, &again));
    EXPECT_EQ(again.lock(), keepers[0].lock());
    for (size_t i = 256; i < num_pieces; ++i) {
        ASSERT_TRUE(share(i, &keepers[i]));
        ASSERT_TRUE(share(0, &again));
    }
    for (size_t i = 0; i < num_pieces; ++i) {
        EXPECT_EQ(keepers[i].expired(), i != 0 && i <= num_pieces - 256) << i;
    }
}

TEST_F(shared_handle_test, the_oldest_make_room_where_descriptors_run_out) {
    rlimit before;
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    rlimit fewer = before;
    fewer.rlim_cur = 800;  // of which 200 may wait
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &fewer), 0);
    std::vector<std::weak_ptr<void>> keepers(num_pieces);
    for (size_t i = 0; i < num_pieces; ++i) {
        EXPECT_TRUE(share(i, &keepers[i])) << i;
    }
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    EXPECT_TRUE(keepers[num_pieces - 201].expired());
    EXPECT_FALSE(keepers[num_pieces - 150].expired());
}

// Its pieces are gone: they are not kept allocated.
TEST_F(shared_handle_test, of_unmapped_pieces_go_when_another_is_made) {
    std::weak_ptr<void> first, second;
    ASSERT_TRUE(share(0, &first));
    const std::unique_ptr<gpu::memory> unmapped = std::move(memory_);
    SetUp();
    char *const address = unmapped->address();
    gpu::sim::set_sharing(gpu::platform::instance(), address, gpu::sharing::none, 0);
    EXPECT_FALSE(first.expired());
    ASSERT_TRUE(share(1, &second));
    EXPECT_TRUE(first.expired());
    EXPECT_FALSE(second.expired());
}

}  // namespace
}  // namespace cuda_nc::uct
