#include "hooks/common/policy.hpp"

#include <gtest/gtest.h>

#include "hooks/fakes.hpp"
#include "ucs/base/loaded_objects.hpp"

namespace cuda_nc::hooks {
namespace {

TEST(policy, our_own_module_is_not_taken_for_what_recognises_gpu_memory) {
    ASSERT_FALSE(is_loaded("libuct_cuda"));
    test::load_fake("libuct_cudanc.so");
    ASSERT_TRUE(is_loaded("libuct_cuda"));
    EXPECT_STREQ(missing_for_detection(), "libuct_cuda.so");
    test::load_fake("libuct_cuda-12ab.so");
    EXPECT_STREQ(missing_for_detection(), "libucm_cuda.so");
}

}  // namespace
}  // namespace cuda_nc::hooks
