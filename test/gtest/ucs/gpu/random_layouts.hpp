// Random layouts in memory of a device, for tests on every platform.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "ucs/exec/host/hand_made_layout.hpp"
#include "ucs/gpu/gpu_fixture.hpp"

namespace cuda_nc::gpu::test {

using exec::test::hand_made_layout;
using exec::test::piece;

// A buffer on the device with a layout in it, and what its bytes are.
struct laid_out_buffer {
    static constexpr int64_t margin = 64;

    std::shared_ptr<hand_made_layout> layout;
    std::unique_ptr<memory> bytes;
    std::vector<char> image;

    uint64_t total() const { return layout->view().packed_size; }
    int64_t zero() const { return margin - layout->lower(); }
    char *zero_address() const { return bytes->address() + zero(); }
    // Of every packed byte, in the image.
    std::vector<size_t> positions() const {
        std::vector<size_t> all;
        for (const piece &one : layout->map()) {
            for (uint64_t i = 0; i < one.length; ++i) {
                all.push_back(static_cast<size_t>(zero() + one.displacement) + i);
            }
        }
        return all;
    }
};

class random_layout_test : public gpu_test {
  protected:
    uint64_t number(uint64_t least, uint64_t most) {
        return std::uniform_int_distribution<uint64_t>(least, most)(random_);
    }

    // Blocks that do not overlap, in any order, repeated over up to two dimensions.
    std::unique_ptr<hand_made_layout> random_layout() {
        std::vector<piece> list;
        uint64_t unit = uint64_t(1) << number(0, 4);
        bool uniform = number(0, 1) == 0;
        uint64_t length = unit * number(1, 40);
        int64_t end = static_cast<int64_t>(number(0, 1000)) - 500;
        static const size_t sizes[] = {1, 1, 1, 2, 7, 33, 1500};
        for (size_t i = sizes[number(0, 6)]; i > 0; --i) {
            uint64_t now = uniform ? length : unit * number(1, 40);
            end += static_cast<int64_t>(unit * number(0, 5));
            list.push_back({end, now});
            end += static_cast<int64_t>(now);
        }
        int64_t span = end - list[0].displacement;
        std::shuffle(list.begin(), list.end(), random_);
        std::vector<layout_dim> dims;
        for (uint64_t d = number(0, list.size() > 100 ? 1 : 2); d > 0; --d) {
            int64_t stride = span + static_cast<int64_t>(unit * number(0, 9));
            uint64_t count = number(1, 9);
            dims.push_back({count, number(0, 3) == 0 ? -stride : stride});
            span = stride * static_cast<int64_t>(count);
        }
        return std::make_unique<hand_made_layout>(std::move(list), std::move(dims),
                                                  number(0, 2) == 0);
    }

    laid_out_buffer random_buffer() { return random_buffer(random_layout()); }
    // Laid out as `like`.
    laid_out_buffer random_buffer(const laid_out_buffer &like) {
        return random_buffer(like.layout);
    }
    laid_out_buffer random_buffer(std::shared_ptr<hand_made_layout> layout) {
        laid_out_buffer made;
        made.layout = std::move(layout);
        auto size = static_cast<size_t>(made.layout->upper() - made.layout->lower() +
                                        2 * laid_out_buffer::margin);
        made.bytes = allocate(size);
        made.image = random_bytes(size, random_);
        put(made.bytes->address(), made.image);
        return made;
    }

    template <typename T>
    void move_table(const T **table_p, uint64_t entries) {
        if (*table_p == nullptr) {
            return;
        }
        tables_.push_back(allocate(entries * sizeof(T)));
        ASSERT_EQ(stream_->copy(tables_.back()->address(), *table_p, entries * sizeof(T)), UCS_OK);
        *table_p = reinterpret_cast<const T *>(tables_.back()->address());
    }

    // The view with its tables in the device's memory.
    layout_view on_device(layout_view view) {
        uint64_t blocks = view.num_blocks, frames = (blocks + frame_blocks - 1) / frame_blocks;
        move_table(&view.tables.frame_displacement, frames);
        move_table(&view.tables.frame_packed, frames + 1);
        move_table(&view.tables.displacement, blocks);
        move_table(&view.tables.packed, blocks);
        move_table(&view.tables.wide_displacement, blocks);
        move_table(&view.tables.wide_packed, blocks + 1);
        return view;
    }

    std::vector<std::unique_ptr<memory>> tables_;
};

}  // namespace cuda_nc::gpu::test
