#include "capi/layout_object.hpp"

#include <gtest/gtest.h>

#include <string>

namespace cuda_nc::capi::test {
namespace {

object_ref make_object(int64_t count, int64_t stride) {
    layout_builder builder;
    builder.append(0, 8);
    return std::make_shared<layout_object>(
        builder.finish()->repeat(static_cast<uint64_t>(count), stride), 0);
}

bool error_begins_with(const std::string &text) {
    return std::string(cuda_nc_last_error()).compare(0, text.size(), text) == 0;
}

TEST(layout_object, a_handle_names_one_object_alone) {
    const object_ref one = make_object(2, 16), other = make_object(3, 16);
    const cuda_nc_layout_t first = add_handle(one);
    EXPECT_EQ(find_object(first), one);
    EXPECT_EQ(remove_handle(first), one);
    EXPECT_EQ(find_object(first), nullptr);
    EXPECT_EQ(remove_handle(first), nullptr);
    const cuda_nc_layout_t second = add_handle(other);  // at the same place
    EXPECT_NE(second, first);
    EXPECT_EQ(find_object(first), nullptr);
    EXPECT_EQ(remove_handle(first), nullptr);
    EXPECT_EQ(remove_handle(second), other);
}

TEST(layout_object, anything_may_be_asked_for) {
    char here;
    for (const uintptr_t number : {uintptr_t{0}, uintptr_t{1}, reinterpret_cast<uintptr_t>(&here),
                                   UINTPTR_MAX, uintptr_t{1} << 24, uintptr_t{0xffffff}}) {
        EXPECT_EQ(find_object(reinterpret_cast<cuda_nc_layout_t>(number)), nullptr) << number;
    }
}

TEST(layout_object, as_many_handles_as_needed) {
    const object_ref one = make_object(2, 16);
    std::vector<cuda_nc_layout_t> all;
    for (int i = 0; i < 10000; ++i) {
        all.push_back(add_handle(one));
    }
    std::sort(all.begin(), all.end());
    EXPECT_EQ(std::adjacent_find(all.begin(), all.end()), all.end());
    for (const cuda_nc_layout_t each : all) {
        ASSERT_EQ(remove_handle(each), one);
    }
    EXPECT_EQ(one.use_count(), 1);
}

TEST(layout_object, says_whether_it_can_be_written_to) {
    EXPECT_TRUE(make_object(5, 8)->is_writable());
    EXPECT_TRUE(make_object(5, -9)->is_writable());
    EXPECT_FALSE(make_object(5, 7)->is_writable());
    EXPECT_FALSE(make_object(2, 0)->is_writable());
    EXPECT_TRUE(make_object(1, 0)->is_writable());
    EXPECT_TRUE(make_object(0, 0)->is_writable());
    // Spans that do not nest: 0, 10, 20 and 15, 25, 35.
    layout_builder builder;
    builder.append(0, 1);
    const layout_ref crossing = builder.finish()->repeat(3, 10)->repeat(2, 15);
    EXPECT_TRUE(layout_object(crossing, 0).is_writable());
    // Too many blocks to look at each.
    const layout_ref many = crossing->repeat(uint64_t{1} << 30, 20);
    layout_object unknown(many, 0);
    EXPECT_FALSE(unknown.is_writable());
    EXPECT_EQ(unknown.find_overlap(), exec::overlap::unknown);
    EXPECT_EQ(check_target("here", unknown), UCS_ERR_INVALID_PARAM);
    EXPECT_TRUE(error_begins_with("here: its layout has more than 2^24 blocks"));
    EXPECT_EQ(check_target("here", *make_object(5, 7)), UCS_ERR_INVALID_PARAM);
    EXPECT_TRUE(error_begins_with("here: its layout covers a byte twice"));
    EXPECT_EQ(check_target("here", *make_object(5, 8)), UCS_OK);
}

}  // namespace
}  // namespace cuda_nc::capi::test
