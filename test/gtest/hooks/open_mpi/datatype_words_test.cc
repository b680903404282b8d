#include "hooks/open_mpi/datatype_words.hpp"

#include <gtest/gtest.h>

#include <cstring>

namespace cuda_nc::hooks {
namespace {

// A datatype object as Open MPI has it: a header, the words, and more.
struct object {
    alignas(8) char bytes[256] = {};

    object(size_t header, ptrdiff_t size, uint16_t flags) {
        datatype_words words = {flags, 9, 1, static_cast<size_t>(size), 0, size, 0, size, 1, 1};
        std::memcpy(bytes + header, &words, sizeof(words));
    }
};

constexpr uint16_t predefined =
    0x2 | datatype_words::committed | datatype_words::contiguous | datatype_words::no_gaps | 0x100;

TEST(datatype_words, lie_behind_a_header_of_any_build) {
    for (size_t header : {size_t(16), size_t(40)}) {
        object of_1(header, 1, predefined), of_8(header, 8, predefined);
        EXPECT_EQ(find_datatype_words({of_1.bytes, of_8.bytes}), header);
    }
}

TEST(datatype_words, are_unknown_where_the_two_types_disagree) {
    object of_1(16, 1, predefined), of_8(24, 8, predefined), gappy(16, 8, 0x102);
    EXPECT_EQ(find_datatype_words({of_1.bytes, of_8.bytes}), 0);
    EXPECT_EQ(find_datatype_words({of_1.bytes, gappy.bytes}), 0);
    EXPECT_EQ(find_datatype_words({of_1.bytes, nullptr}), 0);
    EXPECT_EQ(find_datatype_words({nullptr, of_8.bytes}), 0);
}

}  // namespace
}  // namespace cuda_nc::hooks
