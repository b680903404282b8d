#include "ucs/exec/host/host_executor.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "ucs/exec/host/hand_made_layout.hpp"
#include "ucs/exec/host/range_checks.hpp"
#include "ucs/base/settings.hpp"
#include "ucs/exec/host/host_kernels.hpp"
#include "ucs/exec/host/split.hpp"

namespace cuda_nc::exec {
namespace {

using test::byte_map;
using test::check_cursor;
using test::check_range;
using test::fill;
using test::guard;
using test::hand_made_layout;
using test::piece;
using test::span_buffer;

class host_executor : public testing::TestWithParam<const char *> {
  protected:
    void SetUp() override {
        const bool threads = std::strcmp(GetParam(), "threads") == 0;
        setenv("UCX_CUDA_NC_HOST_SIMD", threads ? "auto" : GetParam(), 1);
        setenv("UCX_CUDA_NC_HOST_THREADS", threads ? "3" : "1", 1);
        reload_config_for_test();
        reload_kernels_for_test();
        reload_split_for_test(threads ? 24 : 0);
        const std::string name = host_simd_name();
        if (!threads && name != GetParam()) {
            GTEST_SKIP() << "this processor has no " << GetParam();
        }
        const char *text = std::getenv("CUDA_NC_TEST_SEED");
        seed_ = text != nullptr ? std::strtoull(text, nullptr, 0) : 20251121;
        random_.seed(seed_);
    }
    void TearDown() override {
        unsetenv("UCX_CUDA_NC_HOST_SIMD");
        unsetenv("UCX_CUDA_NC_HOST_THREADS");
        reload_config_for_test();
        reload_kernels_for_test();
        reload_split_for_test(0);
        if (HasFailure()) {
            std::printf("CUDA_NC_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed_));
        }
    }

    uint64_t below(uint64_t limit) { return random_() % limit; }

    // The whole layout, and ranges that start and end anywhere.
    void check(const hand_made_layout &layout, unsigned ranges) {
        const std::vector<int64_t> bytes = byte_map(layout);
        ASSERT_EQ(bytes.size(), layout.view().packed_size);
        ASSERT_NO_FATAL_FAILURE(check_range(layout, bytes, 0, bytes.size(), random_));
        for (unsigned i = 0; i < ranges; ++i) {
            const uint64_t offset = below(bytes.size());
            const uint64_t length = 1 + below(bytes.size() - offset);
            ASSERT_NO_FATAL_FAILURE(check_range(layout, bytes, offset, length, random_));
        }
        ASSERT_NO_FATAL_FAILURE(check_cursor(layout, bytes, random_));
    }

    uint64_t seed_ = 0;
    std::mt19937_64 random_;
};

TEST_P(host_executor, vectors_of_every_block_length) {
    for (uint64_t length = 1; length <= 300; ++length) {
        SCOPED_TRACE("block length " + std::to_string(length));
        const int64_t gap = static_cast<int64_t>(below(80));
        hand_made_layout layout({{0, length}},
                                {{1 + below(40), static_cast<int64_t>(length) + gap}});
        ASSERT_NO_FATAL_FAILURE(check(layout, 3));
    }
}

TEST_P(host_executor, large_blocks_and_contiguous_ranges) {
    for (uint64_t length : {1023u, 1024u, 1025u, 4096u, 5000u, 70000u}) {
        SCOPED_TRACE("block length " + std::to_string(length));
        hand_made_layout contiguous({{-77, length}}, {});
        ASSERT_NO_FATAL_FAILURE(check(contiguous, 5));
        hand_made_layout vector({{64, length}}, {{3, static_cast<int64_t>(length) + 24}});
        ASSERT_NO_FATAL_FAILURE(check(vector, 5));
    }
}

TEST_P(host_executor, far_strides_both_ways) {
    for (uint64_t length : {1u, 3u, 4u, 8u, 16u, 31u, 64u, 200u}) {
        for (int64_t stride : {512, 4096, -640, -4096, 100000}) {
            SCOPED_TRACE("block length " + std::to_string(length) + " stride " +
                         std::to_string(stride));
            hand_made_layout layout({{8, length}}, {{1 + below(60), stride}});
            ASSERT_NO_FATAL_FAILURE(check(layout, 3));
        }
    }
}

TEST_P(host_executor, overlapping_and_zero_strides_keep_type_map_order) {
    for (uint64_t length : {1u, 2u, 7u, 8u, 24u, 64u, 129u, 300u}) {
        for (int64_t stride : {0, 1, -1, 3, -5, 16}) {
            SCOPED_TRACE("block length " + std::to_string(length) + " stride " +
                         std::to_string(stride));
            hand_made_layout row({{0, length}}, {{1 + below(20), stride}});
            ASSERT_NO_FATAL_FAILURE(check(row, 3));
            hand_made_layout grid({{0, length}}, {{2 + below(20), 64}, {2 + below(9), stride}});
            ASSERT_NO_FATAL_FAILURE(check(grid, 3));
        }
    }
}

TEST_P(host_executor, grids_of_many_dimensions) {
    for (unsigned i = 0; i < 600; ++i) {
        const uint64_t length = 1 + below(i % 2 == 0 ? 24 : 200);
        std::vector<layout_dim> dims;
        uint64_t blocks = 1;
        const unsigned num_dims = 1 + static_cast<unsigned>(below(max_dims));
        std::string text = "block length " + std::to_string(length);
        for (unsigned d = 0; d < num_dims; ++d) {
            const uint64_t count = 2 + below(blocks > 60 ? 1 : 9);
            const int64_t stride = static_cast<int64_t>(below(400)) - 100;
            blocks *= count;
            dims.push_back({count, stride});
            text += " dim " + std::to_string(count) + "*" + std::to_string(stride);
            if (blocks > 500) {
                break;
            }
        }
        SCOPED_TRACE(text);
        hand_made_layout layout({{static_cast<int64_t>(below(100)) - 50, length}}, dims);
        ASSERT_NO_FATAL_FAILURE(check(layout, 4));
    }
}

TEST_P(host_executor, transposes) {
    for (unsigned i = 0; i < 200; ++i) {
        const uint64_t length = 1 + below(i % 2 == 0 ? 20 : 40);
        const uint64_t rows = 2 + below(70), columns = 2 + below(70);
        // the dense dimension may touch, have gaps, or overlap
        const int64_t dense = static_cast<int64_t>(below(length + 30)) + 1;
        int64_t far = dense * static_cast<int64_t>(columns) + static_cast<int64_t>(below(50));
        if (i % 5 == 0) {
            far = dense * static_cast<int64_t>(columns / 2) + 1;  // rows overlap
        }
        if (i % 7 == 0) {
            far = -far;
        }
        SCOPED_TRACE("element " + std::to_string(length) + " rows " + std::to_string(rows) + "*" +
                     std::to_string(far) + " columns " + std::to_string(columns) + "*" +
                     std::to_string(dense));
        hand_made_layout plain({{0, length}}, {{rows, far}, {columns, dense}});
        ASSERT_NO_FATAL_FAILURE(check(plain, 3));
        const uint64_t few = 2 + below(4);
        hand_made_layout between(
            {{16, length}},
            {{2 + rows % 10, far * 5}, {few, far}, {2 + columns % 9, dense}, {2, far * 100}});
        ASSERT_NO_FATAL_FAILURE(check(between, 3));
    }
}

// `count` blocks at random places; lengths all `least`, or from `least` to `most`.
std::vector<piece> random_list(std::mt19937_64 &random, uint64_t count, uint64_t least,
                               uint64_t most, uint64_t range) {
    std::vector<piece> list;
    for (uint64_t b = 0; b < count; ++b) {
        const uint64_t length = least + random() % (most - least + 1);
        list.push_back({static_cast<int64_t>(random() % range) - 1000, length});
    }
    return list;
}

TEST_P(host_executor, structs_with_and_without_overlap) {
    for (unsigned i = 0; i < 500; ++i) {
        std::vector<piece> list;
        const uint64_t blocks = 2 + below(max_short_list - 1);
        const bool overlaps = i % 3 == 0;
        int64_t at = 0;
        for (uint64_t b = 0; b < blocks; ++b) {
            const uint64_t length = 1 + below(i % 2 == 0 ? 8 : 60);
            at = overlaps ? static_cast<int64_t>(below(200))
                          : at + 1 + static_cast<int64_t>(below(9));
            list.push_back({at, length});
            at += static_cast<int64_t>(length);
        }
        if (i % 4 == 1) {
            std::shuffle(list.begin(), list.end(), random_);
        }
        int64_t extent = at + static_cast<int64_t>(below(40));
        if (i % 5 == 0) {
            extent = -extent;
        }
        if (i % 7 == 0) {
            extent /= 2;  // passes interleave
        }
        std::vector<layout_dim> dims = {{1 + below(i % 10 == 0 ? 60 : 12), extent}};
        if (i % 3 == 1) {
            dims.push_back({1 + below(4), static_cast<int64_t>(below(3000))});
        }
        SCOPED_TRACE("list of " + std::to_string(blocks) + " extent " + std::to_string(extent));
        hand_made_layout layout(list, dims, i % 2 == 0);
        ASSERT_NO_FATAL_FAILURE(check(layout, 4));
    }
}

TEST_P(host_executor, irregular_lists) {
    for (unsigned i = 0; i < 200; ++i) {
        const uint64_t least = 1 + below(i % 2 == 0 ? 16 : 130);
        const uint64_t most = i % 3 == 0 ? least : least + below(i % 2 == 0 ? 20 : 200);
        const uint64_t count = 33 + below(i % 8 == 0 ? 3000 : 100);
        const uint64_t range = i % 5 == 0 ? 100 + most : count * most * 2;  // the first overlap
        std::vector<layout_dim> dims;
        if (i % 6 == 0) {
            dims = {{2 + below(4), static_cast<int64_t>(below(1000))}};
        }
        SCOPED_TRACE(std::to_string(count) + " blocks of " + std::to_string(least) + " to " +
                     std::to_string(most));
        hand_made_layout layout(random_list(random_, count, least, most, range), dims, i % 2 == 0);
        ASSERT_NO_FATAL_FAILURE(check(layout, 4));
    }
}

TEST_P(host_executor, lists_of_several_frames) {
    const uint64_t lengths[] = {1, 8, 12, 16, 64, 100};
    for (unsigned i = 0; i < 24; ++i) {
        const uint64_t least = lengths[i % 6];
        const uint64_t most = i % 4 < 2 ? least : least + 1 + below(70);
        const uint64_t count = i < 4 ? (1 + below(3)) * frame_blocks : 1000 + below(2500);
        SCOPED_TRACE(std::to_string(count) + " blocks of " + std::to_string(least) + " to " +
                     std::to_string(most));
        hand_made_layout layout(random_list(random_, count, least, most, count * most * 2), {},
                                i % 2 == 0);
        ASSERT_NO_FATAL_FAILURE(check(layout, 3));
    }
}

TEST_P(host_executor, irregular_lists_of_every_block_length) {
    for (uint64_t length = 1; length <= 300; ++length) {
        SCOPED_TRACE("block length " + std::to_string(length));
        hand_made_layout layout(random_list(random_, 40, length, length, 20000), {},
                                length % 2 == 0);
        ASSERT_NO_FATAL_FAILURE(check(layout, 2));
    }
}

TEST_P(host_executor, consecutive_fragments_make_the_whole) {
    hand_made_layout layout(random_list(random_, 5000, 1, 90, 1 << 20), {});
    span_buffer buffer(layout, 3);
    fill(random_, buffer.begin(), buffer.size());
    const uint64_t size = layout.view().packed_size;
    std::vector<uint8_t> whole(size), parts(size, guard);
    host_pack(layout.view(), buffer.base(), 0, whole.data(), size);
    for (uint64_t offset = 0; offset < size;) {
        const uint64_t length = std::min<uint64_t>(size - offset, below(9000));
        host_pack(layout.view(), buffer.base(), offset, parts.data() + offset, length);
        offset += length;
    }
    EXPECT_EQ(whole, parts);
}

TEST_P(host_executor, displacements_relative_to_address_zero) {
    // MPI_BOTTOM: the displacement is the address
    uint8_t buffer[64], packed[32];
    fill(random_, buffer, sizeof(buffer));
    hand_made_layout layout({{static_cast<int64_t>(reinterpret_cast<uintptr_t>(buffer)), 4}},
                            {{8, 8}});
    host_pack(layout.view(), nullptr, 0, packed, sizeof(packed));
    for (unsigned i = 0; i < sizeof(packed); ++i) {
        ASSERT_EQ(packed[i], buffer[i / 4 * 8 + i % 4]);
    }
}

TEST_P(host_executor, huge_strides_do_not_overflow) {
    // one block exists, the stride to the next is never used
    uint8_t buffer[16], packed[8] = {};
    fill(random_, buffer, sizeof(buffer));
    for (int64_t stride : {INT64_MAX / 2, INT64_MIN / 2}) {
        hand_made_layout layout({{4, 8}}, {{1, stride}});
        host_pack(layout.view(), buffer, 0, packed, 8);
        ASSERT_EQ(std::memcmp(packed, buffer + 4, 8), 0);
    }
}

TEST_P(host_executor, zero_length_touches_nothing) {
    hand_made_layout layout({{0, 8}}, {{4, 16}});
    host_pack(layout.view(), nullptr, 0, nullptr, 0);
    host_unpack(layout.view(), nullptr, 32, nullptr, 0);
    host_copy(layout.view(), nullptr, nullptr, 5, 0);
}

// "threads": every call is shared by three, from 48 bytes on.
INSTANTIATE_TEST_SUITE_P(simd, host_executor,
                         testing::Values("scalar", "sse2", "avx2", "avx512", "threads"),
                         [](const auto &set) { return std::string(set.param); });

}  // namespace
}  // namespace cuda_nc::exec
