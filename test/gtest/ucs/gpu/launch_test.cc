// Launches of random layouts, on every platform, against their bytes counted one by one.
#include <algorithm>
#include <chrono>
#include <cstring>

#include "ucs/gpu/layout_move.hpp"
#include "ucs/gpu/random_layouts.hpp"

namespace cuda_nc::gpu::test {
namespace {

class gpu_launch : public random_layout_test {};
INSTANTIATE_TEST_SUITE_P(all, gpu_launch, testing::ValuesIn(platform_names()), name_of_platform());

// False: not within ten seconds.
bool await_end(const end_words &ends) {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!ends.reached()) {
        if (std::chrono::steady_clock::now() > limit) {
            return false;
        }
    }
    return true;
}

TEST_P(gpu_launch, random_fragments_move_their_bytes_and_nothing_else) {
    std::unique_ptr<memory> words = allocate_pinned(end_words::bytes);
    end_words ends;
    ends.use(words->address());
    int told = 0;
    for (int round = 0; round < 250; ++round) {
        SCOPED_TRACE("round " + std::to_string(round) + " of seed " + std::to_string(seed_));
        std::unique_ptr<hand_made_layout> what = random_layout();
        uint64_t total = what->view().packed_size;
        uint64_t offset = number(0, 2) == 0 ? 0 : number(0, total - 1);
        uint64_t length = number(0, 2) == 0 ? total - offset : number(1, total - offset);
        auto dir = static_cast<direction>(number(0, 2));
        constexpr int64_t margin = 64;
        int64_t zero = margin - what->lower();
        auto size = static_cast<size_t>(what->upper() - what->lower() + 2 * margin);
        size_t lead = number(0, 15);

        // Where the work reads and writes: GPU memory, or pinned memory that the GPU reaches.
        const bool laid_out_pinned = number(0, 3) == 0, other_pinned = number(0, 1) == 0;
        std::unique_ptr<memory> laid_out = laid_out_pinned ? allocate_pinned(size) : allocate(size);
        size_t other_size = dir == direction::copy ? size : lead + length + margin;
        std::unique_ptr<memory> other =
            other_pinned ? allocate_pinned(other_size) : allocate(other_size);
        std::vector<char> image = random_bytes(size, random_);
        std::vector<char> before = random_bytes(other_size, random_);
        put(laid_out->address(), image);
        put(other->address(), before);

        transfer work;
        work.dir = dir;
        work.layout = on_device(what->view());
        work.base = laid_out->address() + zero;
        work.packed = other->address() + (dir == direction::copy ? zero : int64_t(lead));
        work.packed_offset = offset;
        work.length = length;
        const bool tells = number(0, 1) == 0;
        work.ends = tells ? &ends : nullptr;
        ends.renew();
        ASSERT_EQ(stream_->launch(work), UCS_OK);

        std::vector<char> wanted_image = image, wanted_other = before;
        uint64_t packed = 0;
        for (const piece &one : what->map()) {
            for (uint64_t i = 0; i < one.length; ++i, ++packed) {
                if (packed < offset || packed >= offset + length) {
                    continue;
                }
                auto at = static_cast<size_t>(zero + one.displacement) + i;
                size_t in_packed = lead + (packed - offset);
                if (dir == direction::pack) {
                    wanted_other[in_packed] = image[at];
                } else if (dir == direction::unpack) {
                    wanted_image[at] = before[in_packed];
                } else {
                    wanted_other[at] = image[at];
                }
            }
        }
        if (tells && ends.count != 0) {
            // The CPU looks at pinned memory as soon as it is told, before any mark of the stream.
            ASSERT_LE(ends.count, end_words::most);
            ASSERT_TRUE(await_end(ends));
            if (laid_out_pinned) {
                ASSERT_EQ(std::memcmp(laid_out->address(), wanted_image.data(), size), 0);
            }
            if (other_pinned) {
                ASSERT_EQ(std::memcmp(other->address(), wanted_other.data(), other_size), 0);
            }
            for (unsigned i = ends.count; i < end_words::most; ++i) {
                ASSERT_NE(ends.words[i], ends.value);
            }
            ++told;
        } else {
            ASSERT_FALSE(tells && length <= 2048) << "a short launch tells of its end";
        }
        ASSERT_EQ(finish(*stream_), UCS_OK);
        ASSERT_EQ(get(laid_out->address(), size), wanted_image);
        ASSERT_EQ(get(other->address(), other_size), wanted_other);
        tables_.clear();
    }
    EXPECT_GT(told, 50);
}

TEST(end_words, are_not_reached_by_what_was_said_as_many_launches_ago_as_there_are_values) {
    uint32_t memory[end_words::most];
    end_words ends;
    ends.use(memory);
    ends.renew();
    std::fill(std::begin(memory), std::end(memory), ends.value);  // and hardly ever again
    ends.value = UINT32_MAX - 3;
    for (unsigned launch = 0; launch < 8; ++launch) {
        ends.renew();
        ASSERT_FALSE(ends.reached());
        ASSERT_EQ(std::find(memory, std::end(memory), ends.value), std::end(memory)) << launch;
        ends.count = 1;
        ASSERT_FALSE(ends.await());
        memory[0] = ends.value;
        ASSERT_TRUE(ends.await());
    }
}

TEST_P(gpu_launch, displacements_may_be_absolute_addresses) {
    constexpr size_t size = 1024;
    std::unique_ptr<memory> from = allocate(size), to = allocate(size);
    std::vector<char> bytes = random_bytes(size, random_);
    put(from->address(), bytes);
    layout_view view = strided(32, 16, 32);
    view.first_displacement = static_cast<int64_t>(reinterpret_cast<uintptr_t>(from->address()));
    ASSERT_EQ(stream_->launch(all_of(direction::pack, view, nullptr, to->address())), UCS_OK);
    ASSERT_EQ(finish(*stream_), UCS_OK);
    std::vector<char> result = get(to->address(), size);
    for (size_t i = 0; i < 512; ++i) {
        ASSERT_EQ(result[i], bytes[i / 16 * 32 + i % 16]) << i;
    }
}

// Over which the driver refuses to copy. On a GPU small allocations follow each other.
TEST_P(gpu_launch, contiguous_bytes_may_lie_in_two_allocations) {
    constexpr size_t size = 64 << 10;
    std::vector<std::unique_ptr<memory>> all;
    for (int i = 0; i < 32; ++i) {
        all.push_back(allocate(size));
        ASSERT_NE(all.back(), nullptr);
    }
    std::sort(all.begin(), all.end(),
              [](const auto &one, const auto &other) { return one->address() < other->address(); });
    const auto first = std::adjacent_find(
        all.begin(), all.end(),
        [](const auto &one, const auto &next) { return one->address() + size == next->address(); });
    if (first == all.end()) {
        GTEST_SKIP() << "no two allocations follow each other";
    }
    char *const both = (*first)->address();
    const std::vector<char> bytes = random_bytes(2 * size, random_);
    const std::unique_ptr<memory> one = allocate(2 * size);
    const layout_view view = one_block(2 * size);
    put(one->address(), bytes);
    layout_move work;
    work.source = work.target = &view;
    for (const bool into : {true, false}) {
        work.source_base = into ? one->address() : both;
        work.target_base = into ? both : one->address();
        ASSERT_EQ(launch(*stream_, work), UCS_OK);
        ASSERT_EQ(finish(*stream_), UCS_OK);
        if (into) {
            put(one->address(), std::vector<char>(2 * size));
        }
    }
    ASSERT_EQ(get(one->address(), 2 * size), bytes);
}

}  // namespace
}  // namespace cuda_nc::gpu::test
