// The tables of a list of blocks, in host memory. Private to the layout.
#pragma once

#include <vector>

#include "ucs/layout/layout.hpp"
#include "ucs/layout/list_proof.hpp"

namespace cuda_nc {

struct layout::block_storage {
    std::vector<int64_t> frame_displacement;
    std::vector<uint64_t> frame_packed;
    std::vector<uint32_t> displacement;
    std::vector<uint32_t> packed;
    std::vector<int64_t> wide_displacement;
    std::vector<uint64_t> wide_packed;

    uint64_t list_size = 0;      // bytes
    uint64_t longest_block = 0;  // bytes
    uint64_t block_length = 0;   // bytes, 0 where it varies
    uint64_t alignment = 0;      // all displacements and lengths or-ed
    int64_t first_displacement = 0;
    int64_t lower_bound = 0, upper_bound = 0;
    uint64_t num_blocks = 0;
    uint8_t granule_log2 = 0;
    block_progression progression;
    content_hash hash;
    mutable list_proof proof;

    // Compresses `num_blocks` >= 1 blocks; `lengths` holds one number where all are equal. Sizes
    // and bounds were checked by the caller. Throws std::bad_alloc.
    block_storage(const std::vector<int64_t> &displacements, const std::vector<uint64_t> &lengths);

    block_tables tables() const noexcept;
    size_t bytes() const noexcept;

  private:
    bool fits_narrow(const std::vector<int64_t> &displacements,
                     const std::vector<uint64_t> &lengths);
    void fill_narrow(const std::vector<int64_t> &displacements,
                     const std::vector<uint64_t> &lengths);
    void fill_wide(const std::vector<int64_t> &displacements, const std::vector<uint64_t> &lengths);
    void find_progression(const std::vector<int64_t> &displacements,
                          const std::vector<uint64_t> &lengths) noexcept;
    void make_hash();
};

}  // namespace cuda_nc
