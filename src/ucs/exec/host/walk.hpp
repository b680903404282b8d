// Goes through a layout in packed order and calls kernels for its regular pieces.
#pragma once

#include <cstdint>

#include "ucs/exec/host/host_kernels.hpp"
#include "ucs/layout/layout_view.hpp"

namespace cuda_nc::exec {

// A place in a layout: a pass over the list (its index in each dimension), a block, a byte.
class position {
  public:
    // `packed_offset` < packed_size.
    position(const layout_view &view, uint64_t packed_offset) noexcept;

    // Advances by `count` steps of dimension d, which has at least so many left. The indices of the
    // dimensions below d are 0.
    void advance(const layout_view &view, unsigned d, uint64_t count) noexcept;

    uint64_t index[max_dims];   // those of the layout's dimensions
    uint64_t displacement = 0;  // of the pass; wraps
    uint64_t block = 0;
    uint64_t in_block = 0;  // bytes
};

// Moves the next packed bytes of one layout, call by call. The view must outlive it.
template <direction Dir>
class walk {
  public:
    // `laid` holds the layout; for a copy it is the source and `laid_target` the target.
    walk(const layout_view &view, address laid, address laid_target,
         uint64_t packed_offset) noexcept;

    // The next `length` bytes, to or from `packed` (unused in a copy).
    void move(address packed, uint64_t length) noexcept;

  private:
    // Strides of one dimension in the buffer and in the packed bytes.
    struct stride_pair {
        uint64_t laid, packed;
    };

    void move_single(address packed, uint64_t length) noexcept;
    uint64_t move_blocks(address packed, uint64_t passes) noexcept;
    uint64_t to_next_row(uint64_t count) const noexcept;
    uint64_t move_transposed(address packed, uint64_t passes) noexcept;
    void move_list(address packed, uint64_t length) noexcept;
    uint64_t move_in_pass(address packed, uint64_t length) noexcept;
    uint64_t move_passes(address packed, uint64_t passes) noexcept;
    void move_bytes(uint64_t displacement, address packed, uint64_t length) const noexcept;
    block_grid make_grid(uint64_t displacement, address packed, const stride_pair &stride0,
                         const stride_pair &stride1) const noexcept;

    const layout_view &view_;
    const host_kernels &kernels_;
    const address laid_, laid_target_;
    position at_;
    grid_function grid_ = nullptr;
    list_function list_ = nullptr;
    unsigned dense_ = 0;      // dimension to exchange with dimension 0, or 0
    bool any_order_ = false;  // passes over a short list may be moved block by block
};

}  // namespace cuda_nc::exec
