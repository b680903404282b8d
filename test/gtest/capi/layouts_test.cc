#include <gtest/gtest.h>

#include <cstring>

#include "cuda_nc/cuda_nc.h"
#include "ucp/dt/datatype.hpp"

namespace cuda_nc::capi::test {
namespace {

TEST(capi_layouts, refuses_bad_arguments) {
    cuda_nc_layout_t made = nullptr;
    cuda_nc_layout_attr_t attr = {};
    attr.field_mask = 1;
    EXPECT_EQ(cuda_nc_layout_query(made, &attr), UCS_ERR_INVALID_PARAM);
    EXPECT_EQ(cuda_nc_layout_prepare(made, 0), UCS_ERR_INVALID_PARAM);
    ASSERT_EQ(cuda_nc_layout_create_vector(2, 8, 16, &made), UCS_OK);
    EXPECT_EQ(cuda_nc_layout_query(made, nullptr), UCS_ERR_INVALID_PARAM);
    attr.field_mask = uint64_t{1} << 40;
    EXPECT_EQ(cuda_nc_layout_query(made, &attr), UCS_ERR_INVALID_PARAM);
    EXPECT_EQ(cuda_nc_layout_prepare(made, -1), UCS_ERR_NO_DEVICE);
    EXPECT_EQ(cuda_nc_layout_prepare(made, 1000), UCS_ERR_NO_DEVICE);
    EXPECT_EQ(std::strncmp(cuda_nc_last_error(), "device:", 7), 0);
    EXPECT_EQ(cuda_nc_layout_create_dt(made, nullptr), UCS_ERR_INVALID_PARAM);
    cuda_nc_layout_destroy(made);
    ucp_datatype_t datatype = 0;
    EXPECT_EQ(cuda_nc_layout_create_dt(made, &datatype), UCS_ERR_INVALID_PARAM);
    cuda_nc_layout_destroy(nullptr);
    EXPECT_STRNE(cuda_nc_version(), "");
}

TEST(capi_layouts, a_datatype_outlives_its_layout) {
    cuda_nc_layout_t made = nullptr, resized = nullptr;
    ASSERT_EQ(cuda_nc_layout_create_vector(10, 8, -16, &made), UCS_OK);
    ASSERT_EQ(cuda_nc_layout_create_resized(made, 1000, &resized), UCS_OK);
    ucp_datatype_t datatype = 0;
    ASSERT_EQ(cuda_nc_layout_create_dt(resized, &datatype), UCS_OK) << cuda_nc_last_error();
    cuda_nc_layout_destroy(made);
    cuda_nc_layout_destroy(resized);
    dt::message_bytes bytes;
    ASSERT_TRUE(dt::find_bytes(datatype, 3, &bytes));
    EXPECT_EQ(bytes.packed, 240u);
    EXPECT_EQ(bytes.lowest, -144);
    cuda_nc_dt_destroy(datatype);
}

TEST(capi_layouts, the_short_form_of_a_datatype) {
    cuda_nc_block_t block = {0, 8};
    ucp_datatype_t made = 0;
    EXPECT_EQ(cuda_nc_dt_create(&block, 1, 16, nullptr), UCS_ERR_INVALID_PARAM);
    EXPECT_EQ(cuda_nc_dt_create(nullptr, 1, 16, &made), UCS_ERR_INVALID_PARAM);
    cuda_nc_block_t huge[2] = {{0, size_t(1) << 62}, {0, size_t(1) << 62}};
    EXPECT_EQ(cuda_nc_dt_create(huge, 2, 16, &made), UCS_ERR_EXCEEDS_LIMIT);
    EXPECT_EQ(cuda_nc_dt_create(nullptr, 0, 0, &made), UCS_OK);
    cuda_nc_dt_destroy(made);
}

}  // namespace
}  // namespace cuda_nc::capi::test
