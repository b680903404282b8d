// The bytes that a datatype covers, in type-map order.
//
// A layout is immutable and shared. It is made once per datatype by a layout_builder, which folds a
// stream of blocks on line, and is then repeated `count` times at the datatype's extent for a
// message; repeating shares the block list.
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
    // where the layout is empty. May exceed the buffer where blocks overlap or strides are
    // negative only as far as the datatype itself does.
    int64_t lower_bound() const noexcept { return lower_bound_; }
    int64_t upper_bound() const noexcept { return upper_bound_; }

    // Equal layouts have equal hashes whatever calls made them.
    const content_hash &hash() const noexcept { return hash_; }
    bool equal(const layout &other) const noexcept;

    // Blocks of the whole layout, dims counted (saturates at 2^64 - 1).
    uint64_t total_blocks() const noexcept;

    // Bytes of the block tables. On a GPU up to 2 bytes a block more where lengths vary: an index.
    size_t table_bytes() const noexcept;

    // This layout `count` times, each `extent` bytes (may be negative or 0) after the one before.
    // Neighbours that touch are merged where the result stays simple.
    // Returns null where the total exceeds 2^63 - 1 bytes or memory is exhausted.
    layout_ref repeat(uint64_t count, int64_t extent) const;

    // The same bytes in the order in which they lie in memory, so that what folding left apart is
    // together (a transposed matrix is plain rows again). For moves between two layouts that are
    // alike: nobody sees the order of the stream there. Lives as long as this one. *this where it
    // is in that order, where blocks overlap, interleave or are listed.
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

// Folds blocks, given in type-map order, into the smallest layout. O(1) amortised per block; its
// memory is that of the result plus a constant.
class layout_builder {
  public:
    using block_storage = layout::block_storage;

    layout_builder();
    ~layout_builder();
    layout_builder(layout_builder &&) noexcept;
    layout_builder &operator=(layout_builder &&) noexcept;

    // Zero-length blocks are ignored. Throws std::bad_alloc.
    void append(int64_t displacement, uint64_t length);

    // Null where the total exceeds 2^63 - 1 bytes, or a displacement plus its length does. The
    // builder is empty afterwards.
    layout_ref finish();

  private:
    struct state;
    std::unique_ptr<state> state_;
};

// Walks a range of a layout block by block, on the host.
class layout_cursor {
  public:
    // `packed_offset` <= packed_size. The layout must outlive the cursor.
    layout_cursor(const layout &source, uint64_t packed_offset) noexcept;

    // The next span of at most `max_length` bytes, which lies in one block; length 0 at the end.
    // Amortised O(1) per span in order.
    block next(uint64_t max_length) noexcept;

  private:
    const layout_view *view_;
    uint64_t offset_;  // packed
    uint64_t pass_ = 0, block_ = 0;
    int64_t pass_displacement_ = 0;
    uint64_t in_block_ = 0;  // bytes of the current block already given
};

}  // namespace cuda_nc
