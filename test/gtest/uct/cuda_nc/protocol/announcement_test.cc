// An early offer and UCP's RTS in one message.
#include "uct/cuda_nc/protocol/announcement.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "uct/cuda_nc/address.hpp"

namespace cuda_nc::uct {
namespace {

using namespace wire;

template <class Record>
void fill(Record &one) {
    static std::mt19937_64 random(1);
    auto *bytes = reinterpret_cast<unsigned char *>(&one);
    for (size_t i = 0; i < sizeof(one); ++i) {
        bytes[i] = static_cast<unsigned char>(random());
    }
}

announcement any(bool port, bool source, uint32_t dims, bool list) {
    announcement what = {};
    fill(what.message);
    fill(what.identity);
    sender_offer &offer = what.offer.offer;
    fill(offer);
    offer.channels = port ? 7 : 0;
    if (!port) {
        offer.sequence = offer.credits = 0;
        offer.memory = {};
    }
    if (source) {
        source_descriptor &its = what.offer.source;
        fill(its);
        its.allocation |= 1;
        its.num_dims = dims;
        its.is_list = list ? 1 : 0;
        for (uint32_t d = dims; d < max_dims; ++d) {
            its.dims[d] = {};
        }
    }
    return what;
}

// Of exactly its length, so that the address sanitizer sees what is read beyond.
std::unique_ptr<char[]> copy_of(const std::vector<char> &bytes, size_t length) {
    std::unique_ptr<char[]> made(new char[length]);
    std::memcpy(made.get(), bytes.data(), length);
    return made;
}

std::vector<char> written(const announcement &what, size_t rts_length = sizeof(rts_head)) {
    std::vector<char> bytes(longest_announcement);
    bytes.resize(write_announcement(what, bytes.data()));
    bytes.resize(bytes.size() + rts_length, '\x5a');
    return bytes;
}

bool equal(const early_offer &one, const early_offer &other) {
    const source_descriptor &a = one.source, &b = other.source;
    bool dims_agree = a.num_dims == b.num_dims;
    for (uint32_t d = 0; d < a.num_dims && dims_agree; ++d) {
        dims_agree = a.dims[d].count == b.dims[d].count && a.dims[d].stride == b.dims[d].stride;
    }
    return std::memcmp(&one.offer, &other.offer, sizeof(one.offer)) == 0 && dims_agree &&
           a.allocation == b.allocation && a.address == b.address &&
           a.displacement_0 == b.displacement_0 && a.is_list == b.is_list &&
           a.block_length == b.block_length && a.first_displacement == b.first_displacement &&
           std::memcmp(&a.memory, &b.memory, sizeof(a.memory)) == 0;
}

TEST(announcement, is_read_as_it_was_written) {
    for (uint32_t i = 0; i < 200; ++i) {
        const bool source = i % 2 == 0;
        const announcement what =
            any(i % 3 == 0, source, source ? i % (max_dims + 1) : 0, source && i % 5 == 0);
        const std::vector<char> bytes = written(what, sizeof(rts_head) + i % 30);
        const auto exact = copy_of(bytes, bytes.size());
        announcement seen;
        std::memset(static_cast<void *>(&seen), 0x33, sizeof(seen));
        const size_t rts_at = read_announcement(exact.get(), bytes.size(), &seen);
        ASSERT_EQ(bytes.size() - rts_at, sizeof(rts_head) + i % 30) << i;
        EXPECT_EQ(rts_at % 8, 0u) << "UCP reads words there";
        EXPECT_LE(rts_at, longest_announcement);
        EXPECT_EQ(seen.message, what.message);
        EXPECT_EQ(seen.identity, what.identity);
        EXPECT_TRUE(equal(seen.offer, what.offer)) << i;
    }
}

TEST(announcement, without_its_end_is_none) {
    for (uint32_t i = 0; i < 8; ++i) {
        const std::vector<char> bytes = written(any((i & 1) != 0, (i & 2) != 0, i & 2, i > 3));
        for (size_t length = 0; length < bytes.size(); ++length) {
            announcement seen;
            const auto exact = copy_of(bytes, length);
            ASSERT_EQ(read_announcement(exact.get(), length, &seen), 0u) << length;
        }
    }
}

TEST(announcement, of_another_version_or_kind_or_of_more_dims_than_there_are_is_none) {
    announcement seen;
    const std::vector<char> right = written(any(true, true, 2, false), 4096);
    EXPECT_NE(read_announcement(right.data(), right.size(), &seen), 0u);
    for (size_t at : {offsetof(announcement_head, version), offsetof(announcement_head, kind)}) {
        std::vector<char> bytes = right;
        bytes[at] = static_cast<char>(bytes[at] + 1);
        EXPECT_EQ(read_announcement(bytes.data(), bytes.size(), &seen), 0u);
    }
    for (unsigned dims : {max_dims + 1, 255u}) {
        std::vector<char> bytes = right;
        bytes[offsetof(announcement_head, num_dims)] = static_cast<char>(dims);
        EXPECT_EQ(read_announcement(bytes.data(), bytes.size(), &seen), 0u);
    }
}

}  // namespace
}  // namespace cuda_nc::uct
