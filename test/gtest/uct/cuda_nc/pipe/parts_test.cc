// The pieces that pipes and rings are made of.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "ucs/base/settings.hpp"
#include "uct/cuda_nc/memory/lent_memory.hpp"
#include "uct/cuda_nc/pipe/shape.hpp"
#include "uct/cuda_nc/pipe/port.hpp"

namespace cuda_nc::uct {
namespace {

TEST(pipe_shape, geometry_is_valid_and_keeps_its_bounds) {
    std::mt19937_64 random(20261121);
    for (int i = 0; i < 20000; ++i) {
        uint64_t bytes = 1 + random() % (uint64_t(1) << (1 + random() % 29));
        auto channels = static_cast<unsigned>(1 + random() % 300);
        uint64_t room = 8192 + random() % (uint64_t(1) << (13 + random() % 14));
        gpu::pipe_geometry g = choose_geometry(bytes, channels, room);
        ASSERT_TRUE(g.valid()) << bytes << " " << channels << " " << room;
        ASSERT_LE(g.channels, channels);
        ASSERT_LE(g.channels, max_message_channels);
        ASSERT_LE(g.ring_size(), room);
        ASSERT_LE((g.channels - 1) * uint64_t{g.chunk_size}, bytes) << "a channel without a chunk";
    }
}

TEST(pipe_shape, without_room_there_is_no_pipe) {
    EXPECT_EQ(choose_geometry(100000, 16, 4095).channels, 0u);
}

TEST(pipe_shape, longer_messages_get_no_fewer_channels_and_no_smaller_chunks) {
    gpu::pipe_geometry before = {1, 1, 1};
    for (uint64_t bytes = 4096; bytes <= gpu::max_pipe_length; bytes *= 2) {
        gpu::pipe_geometry g = choose_geometry(bytes, 256, UINT64_MAX);
        EXPECT_GE(g.channels, before.channels) << bytes;
        EXPECT_GE(g.chunk_size, before.chunk_size) << bytes;
        EXPECT_GE(g.depth, before.depth) << bytes;
        before = g;
    }
}

TEST(pipe_shape, rows_are_copied_where_that_is_sooner) {
    char *const aligned = reinterpret_cast<char *>(uintptr_t{1} << 30);
    auto pays = [&](uint64_t bytes, uint64_t width, uint64_t pitch, uint64_t skew) {
        gpu::box rows;
        rows.width = width;
        rows.rows = bytes / width;
        rows.source.pitch = rows.target.pitch = pitch;
        return copy_pays(rows, aligned + skew, aligned);
    };
    for (uint64_t bytes = 4096; bytes <= uint64_t{64} << 20; bytes *= 2) {
        EXPECT_EQ(pays(bytes, 4096, 8192, 0), bytes <= 32 << 20) << bytes;
        EXPECT_EQ(pays(bytes, 4096, 8200, 0), bytes <= 32 << 20) << bytes;
        EXPECT_EQ(pays(bytes, 256, 512, 0), bytes <= 32 << 20) << bytes;
        EXPECT_EQ(pays(bytes, 256, 512, 8), bytes <= 4 << 20) << bytes;
        EXPECT_EQ(pays(bytes, 64, 128, 0), bytes <= 1 << 20) << bytes;
        EXPECT_EQ(pays(bytes, 8, 16, 0), bytes <= 32 << 10) << bytes;
    }
    EXPECT_TRUE(copy_geometry().valid());
}

TEST(lent_memory, regions_are_apart_bounded_and_used_again) {
    if (gpu::platform::instance().num_devices() == 0) {
        GTEST_SKIP() << "no GPU, not even a simulated one";
    }
    std::mt19937_64 random(20261121);
    const size_t lent = regions_lent();
    std::map<char *, region> taken;
    size_t bytes = 0;
    bool refused = false;
    for (int i = 0; i < 4000; ++i) {
        if (random() % 5 < 3) {
            size_t size = 1 + random() % (size_t(1) << (random() % 23));
            region one = acquire_region(0, size);
            if (!one) {
                refused = true;
                continue;
            }
            ASSERT_GE(one.size, size);
            auto next = taken.lower_bound(one.address);
            ASSERT_TRUE(next == taken.end() || one.address + one.size <= next->first);
            ASSERT_TRUE(next == taken.begin() ||
                        std::prev(next)->first + std::prev(next)->second.size <= one.address);
            taken[one.address] = one;
            bytes += one.size;
            ASSERT_LE(bytes, config().staging_size / 2);
        } else if (!taken.empty()) {
            auto gone = std::next(taken.begin(), static_cast<long>(random() % taken.size()));
            bytes -= gone->second.size;
            release_region(gone->second);
            taken.erase(gone);
        }
    }
    for (auto &[address, one] : taken) {
        release_region(one);
    }
    EXPECT_EQ(regions_lent(), lent);
    region large = acquire_region(0, size_t(16) << 20);
    ASSERT_TRUE(large) << "halves do not join" << refused;
    release_region(large);
}

}  // namespace
}  // namespace cuda_nc::uct
