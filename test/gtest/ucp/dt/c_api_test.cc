#include <gtest/gtest.h>

#include "cuda_nc/cuda_nc.h"

namespace cuda_nc::test {
namespace {

TEST(c_api, refuses_bad_arguments) {
    cuda_nc_block_t block = {0, 8};
    ucp_datatype_t made = 0;
    EXPECT_EQ(cuda_nc_dt_create(&block, 1, 16, nullptr), UCS_ERR_INVALID_PARAM);
    EXPECT_EQ(cuda_nc_dt_create(nullptr, 1, 16, &made), UCS_ERR_INVALID_PARAM);
    cuda_nc_block_t huge[2] = {{0, size_t(1) << 62}, {0, size_t(1) << 62}};
    EXPECT_EQ(cuda_nc_dt_create(huge, 2, 16, &made), UCS_ERR_INVALID_PARAM);
    EXPECT_EQ(cuda_nc_dt_create(nullptr, 0, 0, &made), UCS_OK);
    cuda_nc_dt_destroy(made);
    EXPECT_STRNE(cuda_nc_version(), "");
}

}  // namespace
}  // namespace cuda_nc::test
