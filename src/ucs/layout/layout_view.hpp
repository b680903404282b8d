// A layout as the code that moves bytes sees it: a small record of plain numbers and pointers to
// flat tables, usable on the host and, with tables in GPU memory, on a GPU.
//
// A layout is `list` repeated over `dims`: dims[0] varies fastest. The list is one block
// (contiguous, strided), a short list (repeated), or a long one (irregular). Packed bytes follow
// type-map order: all blocks of the list, then the next index of dims[0], and so on. The block
// that holds packed byte p, displacement relative to the buffer's address:
//
//     pass = p / list_size                     (which repetition of the list)
//     b    = block of the list at p % list_size
//     displacement = displacement(b) + sum over d of index_d(pass) * dims[d].stride
#pragma once

#include <cstdint>

#include "ucs/base/compiler.hpp"
#include "ucs/base/fast_divide.hpp"

namespace cuda_nc {

struct list_proof;

enum class shape : uint8_t {
    empty,       // no bytes
    contiguous,  // one block, no dims
    strided,     // one block repeated over dims
    repeated,    // 2 to max_short_list blocks, repeated over dims
    irregular    // a longer list, with or without dims
};

constexpr unsigned max_dims = 8;
constexpr unsigned max_short_list = 32;     // blocks
constexpr unsigned frame_blocks_log2 = 10;  // blocks of a frame: they share a 64-bit base
constexpr uint64_t frame_blocks = 1u << frame_blocks_log2;

struct layout_dim {
    uint64_t count = 1;
    int64_t stride = 0;  // bytes; may be negative or zero
};

// Tables of a list of more than one block, in one of two forms; those of the other are null. Narrow
// tables are frame-of-reference compressed: frame_blocks neighbours share a 64-bit base (their
// frame's), and each block has a 32-bit offset from it, 4 bytes a block (8 where lengths vary).
// Wide tables hold absolute 64-bit values; only lists with a frame too wide for 32 bits have them.
struct block_tables {
    const int64_t *frame_displacement = nullptr;  // [frames] bytes: least displacement of the frame
    const uint64_t *frame_packed = nullptr;  // [frames + 1] bytes; null where lengths are uniform
    const uint32_t *displacement = nullptr;  // [blocks] (bytes - frame's) >> granule_log2
    const uint32_t *packed = nullptr;        // [blocks] bytes from frame's; null if uniform
    const int64_t *wide_displacement = nullptr;  // [blocks] bytes
    const uint64_t *wide_packed = nullptr;       // [blocks + 1] bytes; null if uniform

    // Work lists only (null elsewhere): block unit_block[u] holds packed byte u << unit_log2 of the
    // list, for each unit u; one more entry holds the list's last block. A kernel searches only the
    // few blocks of one unit.
    const uint32_t *unit_block = nullptr;
    uint32_t unit_log2 = 0;
};

// Blocks that grow and move evenly, as the rows of a triangle or a trapezoid do: block b of the
// list has first_length + b * length_step bytes and lies b * stride bytes behind the first. Packed
// offsets are computed from that, without a table.
struct block_progression {
    uint32_t first_length = 0;  // bytes; 0: the list is no progression
    int32_t length_step = 0;    // bytes, not 0
    int64_t stride = 0;         // bytes
};

// Where a packed byte lies.
struct layout_position {
    int64_t displacement;  // bytes from the buffer's address to this very byte
    uint64_t remaining;    // bytes up to the end of its block, at least 1
};

struct layout_view {
    shape kind = shape::empty;
    uint8_t num_dims = 0;
    uint8_t align_log2 = 0;      // the largest a <= 4 such that 2^a divides every displacement,
                                 // stride that counts, and length; the base address is not in it
    uint8_t granule_log2 = 0;    // unit of tables.displacement
    uint64_t packed_size = 0;    // bytes
    uint64_t list_size = 0;      // packed bytes of one pass over the list
    uint64_t num_blocks = 0;     // blocks in the list
    uint64_t block_length = 0;   // bytes where all blocks have the same length, else 0
    uint64_t longest_block = 0;  // bytes, of the list
    int64_t first_displacement = 0;  // of the list's first block
    fast_divide by_list;             // divides by list_size
    fast_divide by_block;            // divides by block_length, where uniform
    layout_dim dims[max_dims];
    fast_divide by_dim[max_dims];  // divides by dims[d].count
    block_tables tables;
    block_progression progression;
    list_proof *proof = nullptr;  // of the list, on the host; null: none is kept

    // Displacement of repetition `pass` of the list relative to its first.
    CUDA_NC_HD int64_t pass_displacement(uint64_t pass) const {
        int64_t sum = 0;
        for (unsigned d = 0; d + 1 < num_dims; ++d) {
            uint64_t q = by_dim[d].quotient(pass);
            sum += static_cast<int64_t>(by_dim[d].remainder(pass, q)) * dims[d].stride;
            pass = q;
        }
        if (num_dims != 0) {
            sum += static_cast<int64_t>(pass) * dims[num_dims - 1].stride;
        }
        return sum;
    }

    CUDA_NC_HD int64_t block_displacement(uint64_t block) const {
        if (num_blocks == 1) {
            return first_displacement;
        }
        if (tables.wide_displacement != nullptr) {
            return tables.wide_displacement[block];
        }
        return tables.frame_displacement[block >> frame_blocks_log2] +
               static_cast<int64_t>(static_cast<uint64_t>(tables.displacement[block])
                                    << granule_log2);
    }

    // Packed offset, within the list, of the first byte of `block`; block may be num_blocks.
    CUDA_NC_HD uint64_t block_packed(uint64_t block) const {
        if (block_length != 0) {
            return block * block_length;
        }
        if (tables.wide_packed != nullptr) {
            return tables.wide_packed[block];
        }
        if (block == num_blocks) {
            return list_size;
        }
        uint64_t frame_start = tables.frame_packed[block >> frame_blocks_log2];
        // A frame's first entry, which is 0, is not read: it may not be in GPU memory yet.
        return (block & (frame_blocks - 1)) == 0 ? frame_start : frame_start + tables.packed[block];
    }

    // The block of the list that holds packed byte `offset` of it; offset < list_size. O(1) where
    // lengths are uniform, else O(log num_blocks). Of the narrow tables it reads only the answer's
    // frame: a work list may not hold the others yet.
    CUDA_NC_HD uint64_t find_block(uint64_t offset) const {
        if (block_length != 0) {
            return by_block.quotient(offset);
        }
        uint64_t low = 0, high = num_blocks;  // the answer is in [low, high)
        if (tables.wide_packed == nullptr) {
            uint64_t frame = 0, end = (num_blocks + frame_blocks - 1) >> frame_blocks_log2;
            while (end - frame > 1) {
                uint64_t middle = frame + (end - frame) / 2;
                if (tables.frame_packed[middle] <= offset) {
                    frame = middle;
                } else {
                    end = middle;
                }
            }
            low = frame << frame_blocks_log2;
            high = low + frame_blocks < num_blocks ? low + frame_blocks : num_blocks;
        }
        while (high - low > 1) {
            uint64_t middle = low + (high - low) / 2;
            if (block_packed(middle) <= offset) {
                low = middle;
            } else {
                high = middle;
            }
        }
        return low;
    }

    // `packed_offset` < packed_size.
    CUDA_NC_HD layout_position locate(uint64_t packed_offset) const {
        uint64_t pass = 0, offset = packed_offset;
        if (num_dims != 0) {
            pass = by_list.quotient(packed_offset);
            offset = by_list.remainder(packed_offset, pass);
        }
        uint64_t block = num_blocks == 1 ? 0 : find_block(offset);
        uint64_t start = num_blocks == 1 ? 0 : block_packed(block);
        uint64_t end = num_blocks == 1 ? list_size : block_packed(block + 1);
        layout_position position;
        position.displacement = block_displacement(block) + pass_displacement(pass) +
                                static_cast<int64_t>(offset - start);
        position.remaining = end - offset;
        return position;
    }
};

// `bytes` bytes, not 0, that follow each other.
inline layout_view contiguous_view(uint64_t bytes) noexcept {
    layout_view view;
    view.kind = shape::contiguous;
    view.num_blocks = 1;
    view.packed_size = view.list_size = view.block_length = view.longest_block = bytes;
    view.by_list = view.by_block = fast_divide(bytes);
    return view;
}

}  // namespace cuda_nc
