// A GPU is prepared for its first message when the program allocates memory there.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

#include "ucs/gpu/child_process.hpp"
#include "ucs/gpu/device.hpp"
#include "uct/cuda_nc/engine/stream_pool.hpp"
#include "uct/cuda_nc/pipe/port.hpp"
#include "uct/cuda_nc/protocol/told_of_allocations.hpp"

namespace cuda_nc::uct {
namespace {

bool has_gpu() {
    gpu::platform &gpus = gpu::platform::instance();
    return std::strcmp(gpus.name(), "cuda") == 0 && gpus.num_devices() != 0;
}

// In a child, because a process prepares a GPU once.
TEST(prepared_gpu_child, DISABLED_allocates) {
    const ucx_api ucx = ucx_with(note_registration);
    prepare_gpus_at_allocations(ucx);
    ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
    void *one = nullptr;
    ASSERT_EQ(cudaMalloc(&one, 4096), cudaSuccess);
    const auto free_bytes = [] {
        size_t left = 0, all = 0;
        EXPECT_EQ(cudaMemGetInfo(&left, &all), cudaSuccess);
        return left;
    };
    const size_t before = free_bytes();
    registered.callback(1 << 20, nullptr, nullptr);
    const size_t prepared = free_bytes();
    EXPECT_LT(prepared, before) << "ports lie in GPU memory";
    registered.callback(1 << 20, nullptr, nullptr);
    EXPECT_EQ(free_bytes(), prepared);
    EXPECT_EQ(cudaFree(one), cudaSuccess);
}

// The program's first use of a GPU may be to look at it.
TEST(prepared_gpu_child, DISABLED_resets) {
    gpu::platform &gpus = gpu::platform::instance();
    prepare_gpus_at_allocations(ucx_with(note_registration));
    for (int times = 0; times < 3; ++times) {
        void *one = nullptr;
        ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
        ASSERT_EQ(cudaMalloc(&one, 4096), cudaSuccess);
        registered.callback(1 << 20, nullptr, nullptr);
        EXPECT_EQ(gpus.query(one).kind, gpu::memory_kind::device) << times;
        ASSERT_EQ(cudaDeviceReset(), cudaSuccess);
    }
    void *one = nullptr;
    ASSERT_EQ(cudaMalloc(&one, 4096), cudaSuccess);
    registered.callback(1 << 20, nullptr, nullptr);
    EXPECT_EQ(gpus.query(one).kind, gpu::memory_kind::device);
    const std::vector<char> given(4096, 42);
    std::vector<char> got(4096);
    bool later = false;
    {
        const std::shared_ptr<pooled_stream> on = acquire_stream(0, &later);
        ASSERT_NE(on, nullptr);
        ASSERT_EQ(on->get().copy(static_cast<char *>(one), given.data(), given.size()), UCS_OK);
        on->finish();
    }
    ASSERT_EQ(cudaMemcpy(got.data(), one, got.size(), cudaMemcpyDeviceToHost), cudaSuccess);
    EXPECT_EQ(got, given);
    pipe_port *const port = acquire_port(0);
    ASSERT_NE(port, nullptr);
    release_port(port);

    ASSERT_EQ(cudaDeviceReset(), cudaSuccess);
    ASSERT_EQ(cudaMalloc(&one, 4096), cudaSuccess);
    registered.callback(1 << 20, nullptr, nullptr);
    EXPECT_EQ(gpus.query(one).kind, gpu::memory_kind::unknown) << "messages had used the GPU";
}

TEST(prepared_gpu, begins_again_on_a_gpu_that_is_reset_before_its_first_message) {
    if (!has_gpu()) {
        GTEST_SKIP() << "no GPU here";
    }
    gpu::test::child_process child("prepared_gpu_child.DISABLED_resets", {"UCX_CUDA_NC_GPU=cuda"});
    EXPECT_EQ(child.wait(), 0) << child.output();
}

TEST(prepared_gpu, makes_what_a_message_needs_at_the_first_allocation_alone) {
    if (!has_gpu()) {
        GTEST_SKIP() << "no GPU here";
    }
    gpu::test::child_process child("prepared_gpu_child.DISABLED_allocates",
                                   {"UCX_CUDA_NC_GPU=cuda"});
    EXPECT_EQ(child.wait(), 0) << child.output();
}

}  // namespace
}  // namespace cuda_nc::uct
