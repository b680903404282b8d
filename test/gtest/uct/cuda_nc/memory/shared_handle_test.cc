#include "uct/cuda_nc/memory/shared_handle.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstring>
#include <string>
#include <vector>

#include "ucs/backend/sim/options.hpp"
#include "ucs/gpu/span.hpp"

namespace cuda_nc::uct {
namespace {

constexpr size_t piece = 4096, num_pieces = 600;

class shared_handle_test : public ::testing::Test {
  protected:
    void SetUp() override {
        ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0);
        gpu::platform &gpus = gpu::platform::instance();
        if (std::string(gpus.name()) != "sim") {
            GTEST_SKIP() << "makes memory of the simulated GPU one of pieces";
        }
        gpu_ = gpus.get_device(0);
        if (before_.rlim_max < 4096) {
            GTEST_SKIP() << "needs 4,096 file descriptors";
        }
        limit(4096);
        ASSERT_EQ(gpu_->allocate(num_pieces * piece, &memory_), UCS_OK);
        gpu::sim::set_sharing(gpus, memory_->address(), gpu::sharing::by_descriptor, piece);
    }

    void TearDown() override { setrlimit(RLIMIT_NOFILE, &before_); }
    void limit(rlim_t most) {
        const rlimit wanted = {most, before_.rlim_max};
        ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &wanted), 0);
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
    rlimit before_ = {};
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
    limit(800);  // of which 200 may be offered
    std::vector<std::weak_ptr<void>> keepers(num_pieces);
    for (size_t i = 0; i < num_pieces; ++i) {
        EXPECT_TRUE(share(i, &keepers[i])) << i;
    }
    EXPECT_TRUE(keepers[num_pieces - 201].expired());
    EXPECT_FALSE(keepers[num_pieces - 150].expired());
}

// Each use of one made the handles of the other anew.
TEST_F(shared_handle_test, of_two_gpus_are_kept_side_by_side) {
    if (gpu::platform::instance().num_devices() < 2) {
        GTEST_SKIP() << "needs two GPUs";
    }
    const size_t span = 3 * piece;
    std::unique_ptr<gpu::memory> all[2];
    std::weak_ptr<void> keepers[2];
    for (int turn = 0; turn < 3; ++turn) {
        for (int device = 0; device < 2; ++device) {
            gpu::platform &gpus = gpu::platform::instance();
            if (turn == 0) {
                ASSERT_EQ(gpus.get_device(device)->allocate(span, &all[device]), UCS_OK);
                gpu::sim::set_sharing(gpus, all[device]->address(), gpu::sharing::by_descriptor,
                                      piece);
            }
            const auto base = reinterpret_cast<uintptr_t>(all[device]->address());
            const gpu::allocation_info memory = gpu::find_span(
                device, gpus.query(all[device]->address()).allocation, base, base + span);
            ASSERT_EQ(memory.size, span);
            gpu::ipc_handle handle;
            std::shared_ptr<void> keeper;
            ASSERT_TRUE(find_shared_handle(*gpus.get_device(device), memory, &handle, &keeper));
            EXPECT_TRUE(turn == 0 || keeper == keepers[device].lock());
            keepers[device] = keeper;
        }
    }
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
