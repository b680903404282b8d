#include "hooks/open_mpi/convertor.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "hooks/open_mpi/convertor_calls.hpp"
#include "hooks/fakes.hpp"
#include "hooks/common/thread_context.hpp"
#include "hooks/open_mpi/convertor_tracker.hpp"
#include "hooks/open_mpi/open_mpi.hpp"

namespace cuda_nc::hooks {
namespace {

using test::buffer;
using test::calls;
using test::datatype;
using test::make_convertor;
using test::move_all;
using test::pattern;

constexpr size_t size = 50 * 96;
const datatype &vector_type() {
    static const datatype only("vector", {{8, 8}, {24, 8}, {48, 8}, {72, 8}}, 96);
    return only;
}

class convertor : public testing::Test {
  protected:
    void SetUp() override {
        open_mpi::find_loaded()->map();  // found by moving bytes, once
        calls() = fake_calls_t();
    }
    // Convertors live on the stack: what is remembered of one test's is no business of the next.
    void TearDown() override {
        for (fake_convertor_t *one : used_) {
            convertor_tracker::instance().forget(one);
        }
        EXPECT_TRUE(convertor_tracker::instance().empty());
    }
    void prepare(bool packs, fake_convertor_t *one, size_t count, const buffer &memory) {
        used_.push_back(one);
        auto call = packs ? prepare_for_send : prepare_for_recv;
        ASSERT_EQ(call(one, vector_type().get(), count, memory.address()), 0);
    }

    std::vector<fake_convertor_t *> used_;
};

TEST_F(convertor, each_side_may_be_gpu_memory) {
    const size_t packed_size = 50 * 32;
    std::vector<ptrdiff_t> bytes = vector_type().bytes(50);
    std::vector<char> source = pattern(size, 1), packed = pattern(packed_size, 2);
    for (int where = 0; where < 4; ++where) {
        for (size_t step : {size_t(100), size_t(10000)}) {
            bool laid_out_on_gpu = where & 1, packed_on_gpu = where & 2;
            SCOPED_TRACE(testing::Message() << "where " << where << ", step " << step);
            buffer from(size, laid_out_on_gpu), stream(packed_size, packed_on_gpu);
            from.write(source);
            fake_convertor_t sender = make_convertor();
            prepare(true, &sender, 50, from);
            ASSERT_EQ(move_all(true, &sender, stream.address(), packed_size, step), packed_size);
            std::vector<char> got = stream.read();
            for (size_t i = 0; i < packed_size; ++i) {
                ASSERT_EQ(got[i], source[static_cast<size_t>(bytes[i])]) << i;
            }

            buffer to(size, laid_out_on_gpu);
            stream.write(packed);
            fake_convertor_t receiver = make_convertor();
            prepare(false, &receiver, 50, to);
            ASSERT_EQ(move_all(false, &receiver, stream.address(), packed_size, step), packed_size);
            std::vector<char> expected(size, buffer::untouched);
            for (size_t i = 0; i < packed_size; ++i) {
                expected[static_cast<size_t>(bytes[i])] = packed[i];
            }
            ASSERT_EQ(to.read(), expected);
            EXPECT_EQ(calls().convertor_moves == 0, laid_out_on_gpu);
            calls() = fake_calls_t();
            TearDown();
            used_.clear();
        }
    }
}

TEST_F(convertor, host_memory_is_the_originals_business) {
    buffer from(size, false);
    fake_convertor_t sender = make_convertor();
    prepare(true, &sender, 50, from);
    EXPECT_TRUE(convertor_tracker::instance().empty());
    char packed[50 * 32];
    move_all(true, &sender, packed, sizeof(packed), sizeof(packed));
    EXPECT_EQ(calls().convertor_moves, 1);
}

TEST_F(convertor, a_caller_may_set_the_position) {
    std::vector<char> source = pattern(size, 1);
    buffer from(size, true);
    from.write(source);
    fake_convertor_t sender = make_convertor();
    prepare(true, &sender, 50, from);
    std::vector<ptrdiff_t> bytes = vector_type().bytes(50);
    for (size_t position : {size_t(1000), size_t(7), size_t(1599), size_t(0)}) {
        sender.position = position;
        char packed[64];
        iovec part = {packed, sizeof(packed)};
        uint32_t one = 1;
        size_t moved = 0;
        ASSERT_EQ(convertor_pack(&sender, &part, &one, &moved), position + 64 >= 1600);
        ASSERT_EQ(moved, std::min<size_t>(64, 1600 - position));
        EXPECT_EQ(part.iov_len, moved);
        EXPECT_EQ(sender.position, position + moved);
        for (size_t i = 0; i < moved; ++i) {
            ASSERT_EQ(packed[i], source[static_cast<size_t>(bytes[position + i])]);
        }
    }
}

TEST_F(convertor, what_was_unpacked_is_there_when_the_call_returns) {
    const size_t packed_size = 50 * 32;
    std::vector<ptrdiff_t> bytes = vector_type().bytes(50);
    std::vector<char> packed = pattern(packed_size, 2), expected(size, buffer::untouched);
    buffer to(size, true);
    fake_convertor_t receiver = make_convertor();
    prepare(false, &receiver, 50, to);
    // a short message ends after any of them; the last fragment may come first
    for (auto [begin, end] : {std::pair(1500, 1600), std::pair(0, 700), std::pair(700, 1001)}) {
        receiver.position = static_cast<size_t>(begin);
        iovec part = {packed.data() + begin, static_cast<size_t>(end - begin)};
        uint32_t one = 1;
        size_t moved = 0;
        ASSERT_EQ(convertor_unpack(&receiver, &part, &one, &moved), end == 1600);
        for (int i = begin; i < end; ++i) {
            expected[static_cast<size_t>(bytes[static_cast<size_t>(i)])] =
                packed[static_cast<size_t>(i)];
        }
        ASSERT_EQ(to.read(), expected) << begin;
    }
}

TEST_F(convertor, a_complete_one_moves_nothing_more) {
    buffer from(size, true);
    fake_convertor_t sender = make_convertor();
    prepare(true, &sender, 1, from);
    char packed[64];
    EXPECT_EQ(move_all(true, &sender, packed, 32, 64), 32u);
    iovec part = {packed, sizeof(packed)};
    uint32_t one = 1;
    size_t moved = 99;
    EXPECT_EQ(convertor_pack(&sender, &part, &one, &moved), 1);
    EXPECT_EQ(moved, 0u);
    EXPECT_EQ(part.iov_len, 0u);
}

TEST_F(convertor, a_complete_one_keeps_no_layout_and_may_begin_again) {
    buffer from(size, true);
    from.write(pattern(size, 1));
    fake_convertor_t sender = make_convertor();
    prepare(true, &sender, 1, from);
    char packed[32], again[32];
    EXPECT_EQ(move_all(true, &sender, packed, 32, 32), 32u);
    const tracked_convertor *entry = convertor_tracker::instance().find(&sender);
    ASSERT_NE(entry, nullptr);
    EXPECT_EQ(entry->what, nullptr);
    sender.position = 0;
    EXPECT_EQ(move_all(true, &sender, again, 32, 32), 32u);
    EXPECT_TRUE(std::equal(packed, packed + 32, again));
}

TEST_F(convertor, a_datatype_is_read_once_for_all_of_them) {
    buffer from(size, true), to(size, true);
    char packed[5 * 32];
    for (int round = 0; round < 3; ++round) {
        fake_convertor_t sender = make_convertor();
        prepare(true, &sender, 5, from);
        EXPECT_EQ(move_all(true, &sender, packed, sizeof(packed), 32), sizeof(packed));
        EXPECT_EQ(copy_same(vector_type().get(), 5, to.address(), from.address()), 0);
        EXPECT_LE(calls().reads, 1);
    }
}

// As the last step of Bruck's allgather does, with blocks of any type.
TEST_F(convertor, a_copy_may_go_to_bytes_that_are_yet_to_be_read) {
    const size_t all = 2 * size;
    std::vector<ptrdiff_t> bytes = vector_type().bytes(50);
    const std::vector<char> source = pattern(all, 3);
    for (size_t to : {size_t(0), size_t(96), size_t(97), size}) {
        for (size_t from : {size_t(0), size_t(96), size_t(500), size}) {
            buffer area(all, true);
            area.write(source);
            char *base = static_cast<char *>(area.address());
            ASSERT_EQ(copy_same(vector_type().get(), 50, base + to, base + from), 0);
            std::vector<char> expected = source;
            for (ptrdiff_t at : bytes) {
                expected[to + static_cast<size_t>(at)] = source[from + static_cast<size_t>(at)];
            }
            ASSERT_EQ(area.read(), expected) << from << " to " << to;
        }
    }
}

TEST_F(convertor, one_that_is_prepared_for_host_memory_is_forgotten) {
    buffer device(size, true), host(size, false);
    fake_convertor_t sender = make_convertor();
    prepare(true, &sender, 1, device);
    EXPECT_FALSE(convertor_tracker::instance().empty());
    prepare(true, &sender, 1, host);
    EXPECT_TRUE(convertor_tracker::instance().empty());
}

TEST_F(convertor, one_that_left_a_message_half_way_starts_anew) {
    std::vector<char> source = pattern(size, 1);
    buffer from(size, true);
    from.write(source);
    fake_convertor_t sender = make_convertor();
    for (int round = 0; round < 3; ++round) {
        prepare(true, &sender, 50, from);
        char packed[40];
        iovec part = {packed, sizeof(packed)};
        uint32_t one = 1;
        size_t moved = 0;
        ASSERT_EQ(convertor_pack(&sender, &part, &one, &moved), 0);
        EXPECT_EQ(packed[0], source[8]);
    }
}

TEST_F(convertor, one_that_was_copied_onto_is_not_taken_for_the_old) {
    std::vector<char> source = pattern(size, 1);
    buffer device(size, true), host(size, false);
    host.write(source);
    fake_convertor_t sender = make_convertor(), other = make_convertor();
    prepare(true, &sender, 1, device);
    prepare(true, &other, 1, host);
    sender = other;  // as Open MPI clones convertors
    char packed[32];
    EXPECT_EQ(move_all(true, &sender, packed, 32, 32), 32u);
    EXPECT_EQ(packed[0], source[8]);
    EXPECT_EQ(calls().convertor_moves, 1);
    EXPECT_TRUE(convertor_tracker::instance().empty());
}

TEST_F(convertor, an_address_is_not_remembered_while_the_datatype_path_prepares) {
    buffer device(size, true);
    fake_convertor_t sender = make_convertor();
    prepare(true, &sender, 1, device);
    {
        original_start_scope scope(true);
        prepare(true, &sender, 1, device);
    }
    EXPECT_TRUE(convertor_tracker::instance().empty());
}

TEST_F(convertor, another_architectures_is_left_alone) {
    buffer device(size, true);
    fake_convertor_t external = make_convertor();
    external.remote_arch = 0x00c00203;
    prepare(true, &external, 1, device);
    EXPECT_TRUE(convertor_tracker::instance().empty());
}

TEST_F(convertor, absolute_displacements_are_found_on_the_gpu) {
    std::vector<char> source = pattern(96, 4);
    buffer device(96, true);
    device.write(source);
    datatype bottom("bottom", {{reinterpret_cast<ptrdiff_t>(device.address()) + 16, 24}}, 96);
    fake_convertor_t sender = make_convertor();
    used_.push_back(&sender);
    ASSERT_EQ(prepare_for_send(&sender, bottom.get(), 1, nullptr), 0);
    char packed[24];
    ASSERT_EQ(move_all(true, &sender, packed, 24, 24), 24u);
    EXPECT_TRUE(std::equal(packed, packed + 24, source.begin() + 16));
}

TEST_F(convertor, a_local_copy_may_cross_to_the_gpu_and_back) {
    std::vector<ptrdiff_t> bytes = vector_type().bytes(50);
    std::vector<char> source = pattern(size, 1), expected(size, buffer::untouched);
    for (ptrdiff_t one : bytes) {
        expected[static_cast<size_t>(one)] = source[static_cast<size_t>(one)];
    }
    for (int where = 0; where < 4; ++where) {
        buffer from(size, where & 1), to(size, where & 2);
        from.write(source);
        calls() = fake_calls_t();
        ASSERT_EQ(copy_same(vector_type().get(), 50, to.address(), from.address()), 0);
        EXPECT_EQ(to.read(), expected) << where;
        EXPECT_EQ(calls().copies, where == 0);
    }
}

// Own parts of collectives, whose types may differ.
TEST_F(convertor, bytes_may_go_to_another_type_on_the_same_gpu) {
    static const datatype pairs("pairs", {{0, 16}, {32, 16}}, 96);  // as many bytes as vector_type
    const std::vector<ptrdiff_t> read = vector_type().bytes(50), written = pairs.bytes(50);
    const std::vector<char> source = pattern(size, 1);
    std::vector<char> expected(size, buffer::untouched);
    for (size_t i = 0; i < read.size(); ++i) {
        expected[static_cast<size_t>(written[i])] = source[static_cast<size_t>(read[i])];
    }
    for (int where : {0, 3}) {
        buffer from(size, where & 1), to(size, where & 2);
        from.write(source);
        calls() = fake_calls_t();
        ASSERT_EQ(
            move_between(from.address(), 50, vector_type().get(), to.address(), 50, pairs.get()),
            0);
        EXPECT_EQ(to.read(), expected) << where;
        EXPECT_EQ(calls().moves_between, where == 0) << where;
        calls() = fake_calls_t();
        // Of other lengths Open MPI itself knows what becomes of it.
        EXPECT_EQ(move_between(from.address(), 50, vector_type().get(), to.address(), 0,
                               pairs.get()) != 0,
                  true);
        EXPECT_EQ(calls().moves_between, 1);
    }
}

}  // namespace
}  // namespace cuda_nc::hooks
