// UCX is asked to tell of allocations of GPU memory.
#include "uct/cuda_nc/protocol/gpu_preparation.hpp"

#include <gtest/gtest.h>

#include "uct/cuda_nc/protocol/told_of_allocations.hpp"
#include "uct/cuda_nc/with_setting.hpp"

namespace cuda_nc::uct {
namespace {

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

}  // namespace
}  // namespace cuda_nc::uct
