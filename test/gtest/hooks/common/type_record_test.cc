#include "hooks/common/type_record.hpp"

#include <gtest/gtest.h>

#include "hooks/common/library_stub.hpp"

namespace cuda_nc::hooks {
namespace {

TEST(type_record, the_library_is_asked_once_and_each_count_is_kept) {
    test::library_stub library;
    int context = 7;
    const type_record type(library, library.datatype_of(&context), &context);
    EXPECT_EQ(type.find(3), nullptr);
    counted_layout made;
    for (uint64_t count : {3, 5}) {
        ASSERT_TRUE(type.make(count, 32 * count, &made));
        EXPECT_EQ(made.what->packed_size(), 32 * count);
        const counted_layout *kept = type.find(count);
        ASSERT_NE(kept, nullptr);
        EXPECT_EQ(kept->what, made.what);
    }
    EXPECT_EQ(library.reads, 1);
    dt::message_bytes bytes;
    ASSERT_TRUE(type.find_bytes(10, &bytes));
    EXPECT_EQ(bytes.packed, 320u);
    EXPECT_EQ(bytes.lowest, 0);
}

TEST(type_record, a_type_whose_sizes_disagree_is_left_to_its_own_library) {
    test::library_stub library;
    int context = 12;
    const type_record type(library, library.datatype_of(&context), &context);
    counted_layout made;
    testing::internal::CaptureStderr();
    EXPECT_FALSE(type.make(1, 31, &made));
    EXPECT_FALSE(type.make(1, 32, &made));
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_NE(said.find("datatype type 12 is left to Stub MPI's own operations"), std::string::npos)
        << said;
}

TEST(type_record, a_count_that_is_too_large_is_left_to_the_library_for_that_message) {
    test::library_stub library;
    const type_record type(library, nullptr);
    counted_layout made;
    EXPECT_FALSE(type.make(UINT64_MAX / 2, unknown_size, &made));
    ASSERT_TRUE(type.make(2, 64, &made));
    EXPECT_EQ(made.what->packed_size(), 64);
}

TEST(type_record, host_memory_is_served_where_the_library_packs_it_wrongly) {
    test::library_stub library;
    counted_layout made;
    ASSERT_TRUE(type_record(library, nullptr).make(1, unknown_size, &made));
    EXPECT_FALSE(made.on_host.serve);
    library.fault = "it swaps bytes";
    ASSERT_TRUE(type_record(library, nullptr).make(1, unknown_size, &made));
    EXPECT_TRUE(made.on_host.serve);
    EXPECT_STREQ(made.on_host.why, "it swaps bytes");
}

}  // namespace
}  // namespace cuda_nc::hooks
