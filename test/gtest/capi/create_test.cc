// All functions that create layouts: what they refuse, and in which words. What they make is
// compared with plain loops in move_test.cc.
#include "capi/create.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "cuda_nc/cuda_nc.h"

namespace cuda_nc::capi::test {
namespace {

struct creates : testing::Test {
    cuda_nc_layout_t made = nullptr;

    void refuses(ucs_status_t status, const char *name,
                 ucs_status_t wanted = UCS_ERR_INVALID_PARAM) {
        EXPECT_EQ(status, wanted) << cuda_nc_last_error();
        EXPECT_EQ(std::strncmp(cuda_nc_last_error(), name, std::strlen(name)), 0)
            << cuda_nc_last_error();
        EXPECT_EQ(made, nullptr);
    }
    cuda_nc_layout_attr_t attributes(ucs_status_t status) {
        EXPECT_EQ(status, UCS_OK) << cuda_nc_last_error();
        cuda_nc_layout_attr_t attr = {};
        attr.field_mask = 31;
        EXPECT_EQ(cuda_nc_layout_query(made, &attr), UCS_OK);
        cuda_nc_layout_destroy(made);
        made = nullptr;
        return attr;
    }
};

constexpr int64_t huge = INT64_MAX;

TEST_F(creates, vectors) {
    refuses(cuda_nc_layout_create_vector(-1, 8, 16, &made), "count:");
    refuses(cuda_nc_layout_create_vector(2, -8, 16, &made), "block_length:");
    refuses(cuda_nc_layout_create_vector(2, 8, 16, nullptr), "layout_p:");
    refuses(cuda_nc_layout_create_vector(huge, 8, 16, &made), "count:", UCS_ERR_EXCEEDS_LIMIT);
    refuses(cuda_nc_layout_create_vector(3, 8, huge, &made), "count:", UCS_ERR_EXCEEDS_LIMIT);
    refuses(cuda_nc_layout_create_vector(3, 8, INT64_MIN, &made), "count:", UCS_ERR_EXCEEDS_LIMIT);
    const auto rows = attributes(cuda_nc_layout_create_vector(10, 8, 16, &made));
    EXPECT_EQ(rows.packed_size, 80u);
    EXPECT_EQ(rows.extent, 152);
    EXPECT_EQ(rows.num_blocks, 10u);
    EXPECT_EQ(attributes(cuda_nc_layout_create_vector(10, 8, -16, &made)).lower_bound, -144);
    EXPECT_EQ(attributes(cuda_nc_layout_create_vector(1, 8, INT64_MIN, &made)).packed_size, 8u);
    EXPECT_EQ(attributes(cuda_nc_layout_create_vector(huge, 0, huge, &made)).packed_size, 0u);
}

TEST_F(creates, boxes) {
    const int64_t sizes[] = {4, 5}, subsizes[] = {2, 3}, starts[] = {1, 1}, outside[] = {3, 1},
                  negative[] = {1, -1}, many[] = {huge, 5}, far[] = {huge, 0};
    auto create = [&](int ndims, const int64_t *a, const int64_t *b, const int64_t *c,
                      int64_t element = 8, int order = 0) {
        return cuda_nc_layout_create_subarray(ndims, a, b, c, element, order, &made);
    };
    refuses(create(-1, sizes, subsizes, starts), "ndims:");
    refuses(create(65, sizes, subsizes, starts), "ndims:");
    refuses(create(2, nullptr, subsizes, starts), "sizes: null");
    refuses(create(2, sizes, nullptr, starts), "subsizes: null");
    refuses(create(2, sizes, subsizes, nullptr), "starts: null");
    refuses(create(2, sizes, subsizes, outside), "starts:");
    refuses(create(2, sizes, subsizes, far), "starts:");
    refuses(create(2, sizes, negative, starts), "subsizes[1]:");
    refuses(create(2, sizes, subsizes, starts, -8), "element_size:");
    refuses(create(2, sizes, subsizes, starts, 8, 2), "order:");
    refuses(create(2, many, subsizes, starts), "sizes:", UCS_ERR_EXCEEDS_LIMIT);
    const auto box = attributes(create(2, sizes, subsizes, starts));
    EXPECT_EQ(box.packed_size, 48u);
    EXPECT_EQ(box.extent, 160);
    EXPECT_EQ(box.lower_bound, 48);
    EXPECT_EQ(box.upper_bound, 112);
    EXPECT_EQ(attributes(create(0, nullptr, nullptr, nullptr)).extent, 8);
}

TEST_F(creates, strided_arrays) {
    const int64_t extents[] = {3, 4}, strides[] = {-100, 10}, negative[] = {3, -4},
                  many[] = {huge, huge}, wide[] = {huge, 1};
    refuses(cuda_nc_layout_create_strided(2, negative, strides, 8, &made), "extents[1]:");
    refuses(cuda_nc_layout_create_strided(2, nullptr, strides, 8, &made), "extents: null");
    refuses(cuda_nc_layout_create_strided(2, many, nullptr, 8, &made),
            "extents:", UCS_ERR_EXCEEDS_LIMIT);
    refuses(cuda_nc_layout_create_strided(2, extents, wide, 8, &made),
            "count:", UCS_ERR_EXCEEDS_LIMIT);
    EXPECT_EQ(attributes(cuda_nc_layout_create_strided(2, extents, strides, 8, &made)).lower_bound,
              -200);
    EXPECT_EQ(attributes(cuda_nc_layout_create_strided(2, extents, nullptr, 8, &made)).num_blocks,
              1u);
    // Broadcast: it can be read, and not written to.
    const int64_t none[] = {0, 8};
    EXPECT_EQ(attributes(cuda_nc_layout_create_strided(2, extents, none, 8, &made)).overlaps, 1);
}

// More dimensions than a layout has: the blocks are listed.
TEST_F(creates, arrays_of_many_dimensions) {
    int64_t extents[13], strides[13];
    for (int d = 0; d < 13; ++d) {
        extents[d] = 2;
        strides[d] = 3 << (2 * (12 - d));
    }
    const auto all = attributes(cuda_nc_layout_create_strided(13, extents, strides, 1, &made));
    EXPECT_EQ(all.packed_size, 8192u);
    EXPECT_EQ(all.num_blocks, 8192u);
    EXPECT_EQ(all.overlaps, 0);
}

TEST_F(creates, lists) {
    const int64_t displacements[] = {5, huge / 4}, lengths[] = {1, -1};
    refuses(cuda_nc_layout_create_indexed(-1, nullptr, displacements, 8, &made), "count:");
    refuses(cuda_nc_layout_create_indexed(2, nullptr, nullptr, 8, &made), "displacements: null");
    refuses(cuda_nc_layout_create_indexed(2, lengths, displacements, 8, &made), "lengths[1]:");
    refuses(cuda_nc_layout_create_indexed(2, nullptr, displacements, 8, &made),
            "displacements[1]:", UCS_ERR_EXCEEDS_LIMIT);
    const cuda_nc_block_t blocks[] = {{0, size_t{1} << 62}, {0, size_t{1} << 62}};
    const cuda_nc_block_t apart[] = {{INT64_MIN + 10, 1}, {huge - 10, 1}};
    refuses(cuda_nc_layout_create_blocks(nullptr, 1, &made), "blocks: null");
    refuses(cuda_nc_layout_create_blocks(blocks, 2, &made), "", UCS_ERR_EXCEEDS_LIMIT);
    refuses(cuda_nc_layout_create_blocks(apart, 2, &made), "", UCS_ERR_EXCEEDS_LIMIT);
    const ucp_dt_iov_t iov[] = {{nullptr, 8}};
    refuses(cuda_nc_layout_create_iov(nullptr, nullptr, 1, &made), "iov: null");
    refuses(cuda_nc_layout_create_iov(nullptr, iov, 1, &made), "iov[0].buffer: null");
    EXPECT_EQ(attributes(cuda_nc_layout_create_blocks(nullptr, 0, &made)).packed_size, 0u);
}

TEST_F(creates, layouts_of_layouts) {
    cuda_nc_layout_t element = nullptr;
    ASSERT_EQ(cuda_nc_layout_create_vector(2, 8, 16, &element), UCS_OK);
    const cuda_nc_layout_t members[] = {element, element, nullptr};
    const int64_t displacements[] = {0, 100, 200}, far[] = {0, huge - 20};
    refuses(cuda_nc_layout_create_struct(3, members, displacements, &made), "members[2]:");
    refuses(cuda_nc_layout_create_struct(2, members, far, &made), "", UCS_ERR_EXCEEDS_LIMIT);
    refuses(cuda_nc_layout_create_struct(2, nullptr, displacements, &made), "members: null");
    refuses(cuda_nc_layout_create_struct(2, members, nullptr, &made), "displacements: null");
    refuses(cuda_nc_layout_create_repeated(nullptr, 2, 8, &made), "element:");
    refuses(cuda_nc_layout_create_repeated(element, -2, 8, &made), "count:");
    refuses(cuda_nc_layout_create_repeated(element, huge, huge, &made),
            "stride:", UCS_ERR_EXCEEDS_LIMIT);
    refuses(cuda_nc_layout_create_resized(nullptr, 8, &made), "layout:");
    EXPECT_EQ(
        attributes(cuda_nc_layout_create_struct(2, members, displacements, &made)).packed_size,
        32u);
    EXPECT_EQ(attributes(cuda_nc_layout_create_resized(element, -7, &made)).extent, -7);
    // A layout outlives what it was made of.
    ASSERT_EQ(cuda_nc_layout_create_repeated(element, 3, 50, &made), UCS_OK);
    cuda_nc_layout_destroy(element);
    EXPECT_EQ(attributes(UCS_OK).packed_size, 48u);
    refuses(cuda_nc_layout_create_repeated(element, 2, 8, &made), "element:");
}

TEST_F(creates, layouts_of_mpi_datatypes) {
    const int datatype = 0;
    refuses(cuda_nc_layout_create_mpi(nullptr, 4, 1, &made), "datatype: null");
    refuses(cuda_nc_layout_create_mpi(&datatype, 3, 1, &made), "datatype_size:");
    refuses(cuda_nc_layout_create_mpi(&datatype, 4, -1, &made), "count:");
    refuses(cuda_nc_layout_create_mpi(&datatype, 4, 1, &made), "datatype: no MPI",
            UCS_ERR_UNSUPPORTED);
}

TEST_F(creates, each_thread_has_its_last_error) {
    refuses(cuda_nc_layout_create_vector(-1, 8, 16, &made), "count:");
    std::thread([] { EXPECT_STREQ(cuda_nc_last_error(), ""); }).join();
    EXPECT_STRNE(cuda_nc_last_error(), "");
}

}  // namespace
}  // namespace cuda_nc::capi::test
