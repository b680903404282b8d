#include "hooks/common/watched_types.hpp"

#include <gtest/gtest.h>

#include "hooks/common/library_stub.hpp"

namespace cuda_nc::hooks {
namespace {

const void *type(uintptr_t handle) {
    return reinterpret_cast<const void *>(handle);
}

TEST(watched_types, a_record_lives_as_long_as_its_type) {
    test::library_stub library;
    const type_record *first = find_watched(library, type(1));
    ASSERT_NE(first, nullptr);
    EXPECT_EQ(first->datatype, type(1));
    EXPECT_EQ(find_watched(library, type(1)), first);
    ASSERT_NE(find_watched(library, type(2)), first);
    EXPECT_EQ(find_watched(library, type(1)), first);
    counted_layout made;
    ASSERT_TRUE(first->make(1, unknown_size, &made));
    library.end(type(1));
    library.end(type(2));
    library.blocks = 5;  // another type by the same handle
    const type_record *second = find_watched(library, type(1));
    ASSERT_NE(second, nullptr);
    EXPECT_EQ(second->find(1), nullptr);
    ASSERT_TRUE(second->make(1, unknown_size, &made));
    EXPECT_EQ(made.what->packed_size(), 40u);
    library.end(type(1));
}

TEST(watched_types, predefined_types_and_those_that_cannot_be_watched_have_none) {
    test::library_stub library;
    EXPECT_EQ(find_watched(library, type(0)), nullptr);
    EXPECT_EQ(library.end, nullptr) << "there is nothing to watch";
    library.can_watch = false;
    EXPECT_EQ(find_watched(library, type(3)), nullptr);
    library.can_watch = true;
    EXPECT_NE(find_watched(library, type(3)), nullptr);
    library.end(type(3));
}

TEST(watched_types, a_layout_is_made_once_for_each_count) {
    test::library_stub library;
    counted_layout made;
    EXPECT_EQ(find_watched_layout(library, type(0), 2, unknown_size, &made), nullptr);
    const counted_layout *two = find_watched_layout(library, type(4), 2, unknown_size, &made);
    ASSERT_NE(two, nullptr);
    EXPECT_EQ(two->count, 2u);
    EXPECT_EQ(library.reads, 1);
    const counted_layout *kept = find_watched_layout(library, type(4), 2, unknown_size, &made);
    EXPECT_EQ(kept, find_watched(library, type(4))->find(2));
    EXPECT_NE(find_watched_layout(library, type(4), 3, unknown_size, &made), nullptr);
    EXPECT_EQ(library.reads, 1);
    library.end(type(4));
}

}  // namespace
}  // namespace cuda_nc::hooks
