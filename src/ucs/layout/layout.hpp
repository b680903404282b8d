// The bytes that a datatype covers, in type-map order.
//
// A layout is immutable and shared. A layout_builder makes it once for a datatype from its blocks,
// one after the other; for a message it is repeated `count` times at the datatype's extent.
// Repetitions share the block list.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ucs/layout/layout_view.hpp"

namespace cuda_nc {

struct block {
    int64_t displacement;  // bytes from the buffer's address
    uint64_t length;       // bytes
};

struct content_hash {
    uint64_t low = 0, high = 0;
    friend bool operator==(const content_hash &a, const content_hash &b) {
        return a.low == b.low && a.high == b.high;
    }
};

class layout;
using layout_ref = std::shared_ptr<const layout>;

class layout {
  public:
    // The tables point into this object's memory: valid as long as it lives.
    const layout_view &view() const noexcept { return view_; }

    shape kind() const noexcept { return view_.kind; }
    uint64_t packed_size() const noexcept { return view_.packed_size; }

    // Bytes [lower_bound, upper_bound) relative to the buffer's address hold every block; both 0
    // where the layout is empty. They do not exceed what the datatype itself covers.
    int64_t lower_bound() const noexcept { return lower_bound_; }
    int64_t upper_bound() const noexcept { return upper_bound_; }

    // Equal layouts have equal hashes whatever calls made them.
    const content_hash &hash() const noexcept { return hash_; }
    bool equal(const layout &other) const noexcept;

    // Blocks of the whole layout, dims counted (saturates at 2^64 - 1).
    uint64_t total_blocks() const noexcept;

    // Bytes of the block tables. On a GPU an index adds up to 2 bytes a block where lengths vary.
    size_t table_bytes() const noexcept;

    // This layout `count` times, each `extent` bytes (may be negative or 0) after the one before.
    // Neighbours that touch are merged where the result stays simple.
    // Returns null where the total exceeds 2^63 - 1 bytes or memory is exhausted.
    layout_ref repeat(uint64_t count, int64_t extent) const;

    // The same bytes in the order of memory, in longer blocks where that joins some (a transposed
    // matrix becomes plain rows). For moves between two equal layouts, where the packed order does
    // not show. Lives as long as this layout. Returns *this where it is in that order already, or
    // its blocks overlap, interleave or are a list.
    const layout &in_memory_order() const noexcept { return ordered_ ? *ordered_ : *this; }

    // One line for people: "strided 1024 x 8 B, stride 16 B, 8192 B packed, span 16376 B".
    std::string describe() const;

    struct block_storage;  // owns the tables, shared between repetitions

  private:
    friend layout_ref make_layout(std::shared_ptr<const block_storage>, unsigned,
                                  const layout_dim *);

    layout_view view_;
    int64_t lower_bound_ = 0, upper_bound_ = 0;
    content_hash hash_;
    std::shared_ptr<const block_storage> storage_;
    layout_ref ordered_;  // null: in_memory_order() is *this
};

// Makes the smallest layout from blocks that are given in type-map order. Amortised O(1) a block;
// needs the memory of the result plus a constant.
class layout_builder {
  public:
    using block_storage = layout::block_storage;

    layout_builder();
    ~layout_builder();
    layout_builder(layout_builder &&) noexcept;
    layout_builder &operator=(layout_builder &&) noexcept;

    // Zero-length blocks are ignored. Throws std::bad_alloc.
    void append(int64_t displacement, uint64_t length);

    // Null where the total, the end of a block or the distance of two exceeds 2^63 - 1 bytes. The
    // builder is empty afterwards. Throws std::bad_alloc.
    layout_ref finish();

  private:
    struct state;
    std::unique_ptr<state> state_;
};

// One block at the buffer's address. Null beyond 2^63 - 1 bytes. Throws std::bad_alloc.
layout_ref one_block(uint64_t length);

// Walks a range of a layout block by block, on the host.
class layout_cursor {
  public:
    // `packed_offset` <= packed_size. The layout must outlive the cursor.
    layout_cursor(const layout &source, uint64_t packed_offset) noexcept;

    // The next bytes, at most `max_length` and of one block; length 0 at the end. Amortised O(1).
    block next(uint64_t max_length) noexcept;

  private:
    const layout_view *view_;
    uint64_t offset_;  // packed
    uint64_t pass_ = 0, block_ = 0;
    int64_t pass_displacement_ = 0;
    uint64_t in_block_ = 0;  // bytes of the current block that were returned
};

}  // namespace cuda_nc
