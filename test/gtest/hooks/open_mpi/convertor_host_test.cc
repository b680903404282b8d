#include "hooks/open_mpi/convertor_host.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>

#include "hooks/open_mpi/convertor_calls.hpp"
#include "hooks/fakes.hpp"
#include "hooks/open_mpi/open_mpi.hpp"

namespace cuda_nc::hooks {
namespace {

using test::buffer;
using test::calls;
using test::datatype;
using test::make_convertor;
using test::move_all;
using test::pattern;

const open_mpi &api() {
    return *open_mpi::find_loaded();
}

void type_dies(const datatype &type) {
    test::find_in_fake<decltype(&fake_type_dies)>("libfake_open_mpi.so",
                                                  "fake_type_dies")(type.get());
}

fake_convertor_t prepared(const datatype &type, size_t count, char *memory) {
    fake_convertor_t made = make_convertor();
    EXPECT_EQ(prepare_for_send(&made, type.get(), count, memory), 0);
    return made;
}

// One call; nothing where the original must run.
template <bool packs>
std::optional<int32_t> move_once(fake_convertor_t *convertor, iovec *parts, uint32_t *num_parts_p,
                                 size_t *length_p) {
    int32_t status = 0;
    bool served = move_on_host(packs, api(), convertor, parts, num_parts_p, length_p, &status);
    return served ? std::optional<int32_t>(status) : std::nullopt;
}

template <bool packs>
int32_t move_served(fake_convertor_t *convertor, iovec *parts, uint32_t *num_parts_p,
                    size_t *length_p) {
    return move_once<packs>(convertor, parts, num_parts_p, length_p).value_or(-1);
}

bool is_served(const datatype &type, fake_convertor_t convertor) {
    char packed[64];
    iovec part = {packed, 1};
    uint32_t one = 1;
    size_t moved = 0;
    EXPECT_LE(type.get()->blocks[0].length, sizeof(packed));
    return move_once<true>(&convertor, &part, &one, &moved).has_value();
}

void expect_right(const datatype &type, size_t count, size_t extent, size_t step, bool on_gpu) {
    const std::vector<ptrdiff_t> bytes = type.bytes(count);
    const std::vector<char> source = pattern(count * extent, 1), stream = pattern(bytes.size(), 2);
    buffer from(source.size(), false), to(source.size(), false), packed(bytes.size(), on_gpu);
    from.write(source);
    fake_convertor_t sender = prepared(type, count, from.address());
    ASSERT_EQ(move_all(move_served<true>, &sender, packed.address(), bytes.size(), step),
              bytes.size());
    const std::vector<char> got = packed.read();
    std::vector<char> expected(source.size(), buffer::untouched);
    for (size_t i = 0; i < bytes.size(); ++i) {
        ASSERT_EQ(got[i], source[static_cast<size_t>(bytes[i])]) << "packed byte " << i;
        expected[static_cast<size_t>(bytes[i])] = stream[i];
    }
    packed.write(stream);
    fake_convertor_t receiver = prepared(type, count, to.address());
    ASSERT_EQ(move_all(move_served<false>, &receiver, packed.address(), bytes.size(), step),
              bytes.size());
    ASSERT_EQ(to.read(), expected);
}

class convertor_host : public testing::Test {
  protected:
    void SetUp() override {
        fake_convertor_t any = make_convertor();
        convertor_content content;
        ASSERT_TRUE(api().map().read(&any, &content));  // found by moving bytes, once
        calls() = fake_calls_t();
    }
    // Open MPI's own convertor moved nothing.
    void TearDown() override { EXPECT_EQ(calls().convertor_moves + calls().copies, 0); }
};

TEST_F(convertor_host, moves_the_bytes_of_the_type_map_in_parts_of_any_size) {
    std::mt19937 random(20261121);
    for (int round = 0; round < 60; ++round) {
        SCOPED_TRACE(testing::Message() << "round " << round);
        std::vector<fake_block_t> blocks;
        ptrdiff_t at = 0;
        for (size_t left = 1 + random() % 6; left != 0; --left) {
            at += static_cast<ptrdiff_t>(1 + random() % 20);
            blocks.push_back({at, 1 + random() % 30});
            at += static_cast<ptrdiff_t>(blocks.back().length);
        }
        std::shuffle(blocks.begin(), blocks.end(), random);
        const auto extent = static_cast<size_t>(at) + 1 + random() % 9;
        datatype type("any", blocks, static_cast<ptrdiff_t>(extent));
        const size_t step = random() % 2 != 0 ? 100000 : 1 + random() % 70;
        expect_right(type, 2 + random() % 40, extent, step, round % 4 == 0);
        type_dies(type);
    }
}

TEST_F(convertor_host, a_caller_may_set_the_position) {
    const datatype type("vector", {{8, 8}, {24, 8}}, 40);
    const std::vector<char> source = pattern(400, 1);
    buffer from(source.size(), false);
    from.write(source);
    const std::vector<ptrdiff_t> bytes = type.bytes(10);
    fake_convertor_t sender = prepared(type, 10, from.address());
    for (size_t position : {size_t(100), size_t(7), size_t(159), size_t(160), size_t(0)}) {
        sender.position = position;
        char packed[20];
        iovec part = {packed, sizeof(packed)};
        uint32_t one = 1;
        size_t moved = 99;
        ASSERT_EQ(move_once<true>(&sender, &part, &one, &moved), position + 20 >= 160);
        ASSERT_EQ(moved, std::min<size_t>(20, 160 - position));
        EXPECT_EQ(part.iov_len, moved);
        EXPECT_EQ(sender.position, position + moved);
        for (size_t i = 0; i < moved; ++i) {
            ASSERT_EQ(packed[i], source[static_cast<size_t>(bytes[position + i])]);
        }
    }
    type_dies(type);
}

// Types are freed and made in loops, and get the same addresses again.
TEST_F(convertor_host, a_new_type_at_an_old_address_is_read_anew) {
    const std::vector<char> source = pattern(64, 1);
    buffer from(64, false);
    from.write(source);
    for (ptrdiff_t place : {0, 16, 8}) {
        alignas(datatype) static char memory[sizeof(datatype)];
        auto *type = new (memory) datatype("here", {{place, 4}, {place + 20, 4}}, 48);
        fake_convertor_t sender = prepared(*type, 1, from.address());
        char packed[8];
        ASSERT_EQ(move_all(move_served<true>, &sender, packed, 8, 8), 8u);
        EXPECT_TRUE(std::equal(packed, packed + 4, source.begin() + place)) << place;
        EXPECT_TRUE(std::equal(packed + 4, packed + 8, source.begin() + place + 20)) << place;
        type_dies(*type);
        type->~datatype();
    }
}

TEST_F(convertor_host, contiguous_bytes_and_predefined_types_are_left_to_open_mpi) {
    buffer memory(4096, false);
    const datatype contiguous("contiguous", {{0, 16}}, 16), gaps("gaps", {{0, 16}}, 24);
    EXPECT_FALSE(is_served(contiguous, prepared(contiguous, 5, memory.address())));
    EXPECT_TRUE(is_served(gaps, prepared(gaps, 5, memory.address())));
    EXPECT_FALSE(is_served(gaps, prepared(gaps, 1, memory.address())));
    EXPECT_FALSE(is_served(gaps, prepared(gaps, 0, memory.address())));
    const auto *predefined = static_cast<const fake_datatype_t *>(
        test::find_symbol("libfake_open_mpi.so", "ompi_mpi_double"));
    fake_convertor_t sender = make_convertor();
    ASSERT_EQ(prepare_for_send(&sender, predefined, 5, memory.address()), 0);
    EXPECT_FALSE(is_served(gaps, sender));
    type_dies(contiguous);
    type_dies(gaps);
}

TEST_F(convertor_host, another_architecture_is_left_to_open_mpi) {
    buffer memory(4096, false);
    const datatype type("gaps", {{0, 16}}, 24);
    fake_convertor_t external = prepared(type, 5, memory.address());
    external.remote_arch = 0x00c00203;
    EXPECT_FALSE(is_served(type, external));
    type_dies(type);
}

TEST_F(convertor_host, no_type_is_watched_after_the_end_of_mpi) {
    buffer memory(4096, false);
    const datatype type("gaps", {{0, 16}}, 24);
    auto *finalized =
        static_cast<int *>(test::find_symbol("libfake_open_mpi.so", "fake_finalized"));
    *finalized = 1;
    EXPECT_FALSE(is_served(type, prepared(type, 5, memory.address())));
    *finalized = 0;
    EXPECT_TRUE(is_served(type, prepared(type, 5, memory.address())));
    *finalized = 1;  // what is known stays so
    EXPECT_TRUE(is_served(type, prepared(type, 5, memory.address())));
    *finalized = 0;
    type_dies(type);
}

TEST_F(convertor_host, copies_to_another_place_and_within_a_buffer) {
    const datatype type("vector", {{8, 8}, {24, 8}}, 40);
    const std::vector<ptrdiff_t> bytes = type.bytes(10);
    for (ptrdiff_t distance : {ptrdiff_t(1000), ptrdiff_t(4), ptrdiff_t(-12), ptrdiff_t(0)}) {
        std::vector<char> memory = pattern(2000, 3), expected = memory;
        for (ptrdiff_t one : bytes) {
            expected[static_cast<size_t>(200 + distance + one)] =
                memory[static_cast<size_t>(200 + one)];
        }
        int32_t status = -1;
        ASSERT_TRUE(copy_on_host(api(), type.get(), 10, memory.data() + 200 + distance,
                                 memory.data() + 200, &status));
        EXPECT_EQ(status, 0);
        EXPECT_EQ(memory, expected) << distance;
    }
    type_dies(type);
}

}  // namespace
}  // namespace cuda_nc::hooks
