// A GPU is prepared for its first message when the program allocates memory there.
#include "uct/cuda_nc/protocol/gpu_preparation.hpp"

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

#include "ucs/base/ucx_instance.hpp"
#include "ucs/gpu/child_process.hpp"
#include "ucs/gpu/device.hpp"
#include "uct/cuda_nc/engine/stream_pool.hpp"
#include "uct/cuda_nc/pipe/port.hpp"
#include "uct/cuda_nc/with_setting.hpp"

namespace cuda_nc::uct {
namespace {

using handler = void (*)(int, void *, void *);

struct registration {
    int number = 0, events = 0, priority = 0;
    handler callback = nullptr;
} registered;

ucs_status_t note_registration(int events, int priority, handler callback, void *) {
    registered = {registered.number + 1, events, priority, callback};
    return UCS_OK;
}
ucs_status_t refuse(int, int, handler, void *) {
    ++registered.number;
    return UCS_ERR_UNSUPPORTED;
}

// Of a UCX that no other test names: each is asked once.
ucx_api ucx_with(ucs_status_t (*set)(int, int, handler, void *)) {
    static unsigned instance = max_ucx_instances;
    ucx_api made = {};
    made.instance = --instance;
    made.ucm_set_event_handler = set;
    registered = {};
    return made;
}

bool has_gpu() {
    gpu::platform &gpus = gpu::platform::instance();
    return std::strcmp(gpus.name(), "cuda") == 0 && gpus.num_devices() != 0;
}

TEST(gpu_preparation, asks_ucx_once_to_tell_of_gpu_memory) {
    const ucx_api ucx = ucx_with(note_registration);
    prepare_gpus_at_allocations(ucx);
    prepare_gpus_at_allocations(ucx);
    EXPECT_EQ(registered.number, 1);
    EXPECT_EQ(registered.events, 1 << 20) << "allocations of GPU memory";
    EXPECT_GT(registered.priority, 1000)
        << "UCX's own handler, which learns of the memory, is first";
    ASSERT_NE(registered.callback, nullptr);
    registered.callback(1 << 20, nullptr, nullptr);  // in a thread that uses no GPU
}

TEST(gpu_preparation, does_without_ucx) {
    prepare_gpus_at_allocations(ucx_with(nullptr));
    EXPECT_EQ(registered.number, 0);
    prepare_gpus_at_allocations(ucx_with(refuse));
    EXPECT_EQ(registered.number, 1);
}

TEST(gpu_preparation, leaves_hooks_off_that_the_user_has_turned_off) {
    for (const char *off : {"n", "N", "no", "No", "off", "0"}) {
        const with_setting turned("UCX_MEMTYPE_CACHE", off);
        prepare_gpus_at_allocations(ucx_with(note_registration));
        EXPECT_EQ(registered.number, 0) << off;
    }
    const with_setting turned("UCX_MEMTYPE_CACHE", "y");
    prepare_gpus_at_allocations(ucx_with(note_registration));
    EXPECT_EQ(registered.number, 1);
}

// In a child, because a process prepares a GPU once.
TEST(gpu_preparation_child, DISABLED_allocates) {
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
TEST(gpu_preparation_child, DISABLED_resets) {
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

TEST(gpu_preparation, begins_again_on_a_gpu_that_is_reset_before_its_first_message) {
    if (!has_gpu()) {
        GTEST_SKIP() << "no GPU here";
    }
    gpu::test::child_process child("gpu_preparation_child.DISABLED_resets",
                                   {"UCX_CUDA_NC_GPU=cuda"});
    EXPECT_EQ(child.wait(), 0) << child.output();
}

TEST(gpu_preparation, makes_what_a_message_needs_at_the_first_allocation_alone) {
    if (!has_gpu()) {
        GTEST_SKIP() << "no GPU here";
    }
    gpu::test::child_process child("gpu_preparation_child.DISABLED_allocates",
                                   {"UCX_CUDA_NC_GPU=cuda"});
    EXPECT_EQ(child.wait(), 0) << child.output();
}

}  // namespace
}  // namespace cuda_nc::uct
