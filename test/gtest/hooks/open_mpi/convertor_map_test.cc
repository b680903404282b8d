#include "hooks/open_mpi/convertor_map.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <iterator>

#include "hooks/fakes.hpp"
#include "hooks/open_mpi/open_mpi.hpp"

using namespace cuda_nc::hooks;

namespace {

const char byte_type = 0, double_type = 0;

// As Open MPI's in what matters here; `unset` are words that no call writes.
struct convertor {
    void *type;
    size_t total;
    const void *datatype;
    size_t count;
    const void *buffer;
    size_t position;
    const void *unset[readable_convertor_bytes / sizeof(void *) - 6];
};

int32_t prepare(void *scratch, const void *datatype, size_t count, const void *buffer) {
    auto *one = static_cast<convertor *>(scratch);
    one->total = datatype == &double_type ? 8 * count : count;
    one->datatype = datatype;
    one->count = count;
    one->buffer = buffer;
    one->position = 0;
    return 0;
}

int32_t pack(void *scratch, iovec *part, uint32_t *, size_t *) {
    static_cast<convertor *>(scratch)->position += part->iov_len;
    return 0;
}

// The allocator gives memory that held datatypes before, as an array of them that was freed.
TEST(convertor_map, words_that_nobody_has_set_do_not_count) {
    for (const char *stale : {&byte_type, &double_type}) {
        convertor scratch = {};
        std::fill(std::begin(scratch.unset), std::end(scratch.unset), stale);
        convertor_map map = explore_convertor(&scratch, {&byte_type, &double_type}, prepare, pack);
        EXPECT_EQ(map.datatype, offsetof(convertor, datatype));
        EXPECT_EQ(map.buffer, offsetof(convertor, buffer));
        EXPECT_EQ(map.position, offsetof(convertor, position));
    }
}

TEST(convertor_map, the_position_of_a_convertor_is_found_by_trying) {
    fake_convertor_t one = {};
    one.remote_arch = 0xffc00203;
    EXPECT_EQ(open_mpi::find_loaded()->map().position_in(&one), &one.position);
}

TEST(convertor_map, a_convertor_that_serves_something_else_is_seen) {
    fake_convertor_t one = {};
    test::datatype type("one", {{0, 4}}, 8);
    char memory[8];
    const convertor_map &map = open_mpi::find_loaded()->map();
    one.datatype = type.get();
    one.buffer = memory;
    EXPECT_TRUE(map.is_prepared_for(&one, type.get(), memory));
    EXPECT_FALSE(map.is_prepared_for(&one, type.get(), memory + 1));
    EXPECT_FALSE(map.is_prepared_for(&one, memory, memory));
}

}  // namespace
