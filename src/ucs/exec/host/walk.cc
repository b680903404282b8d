#include "ucs/exec/host/walk.hpp"

#include <algorithm>
#include <cstring>

#include "ucs/exec/host/disjoint.hpp"
#include "ucs/exec/host/walk_order.hpp"

namespace cuda_nc::exec {
namespace {

// Bytes of the buffer that a group of passes over a short list spans. They stay in the first-level
// cache while the blocks of the list are moved one after the other.
constexpr uint64_t group_span = 16 << 10;

}  // namespace

position::position(const layout_view &view, uint64_t packed_offset) noexcept {
    uint64_t pass = 0, offset = packed_offset;
    if (view.num_dims != 0) {
        pass = view.by_list.quotient(packed_offset);
        offset = view.by_list.remainder(packed_offset, pass);
    }
    if (view.num_blocks != 1) {
        block = view.find_block(offset);
        offset -= view.block_packed(block);
    }
    in_block = offset;
    for (unsigned d = 0; d < view.num_dims; ++d) {
        uint64_t q = d + 1 < view.num_dims ? view.by_dim[d].quotient(pass) : 0;
        index[d] = d + 1 < view.num_dims ? view.by_dim[d].remainder(pass, q) : pass;
        displacement += index[d] * static_cast<uint64_t>(view.dims[d].stride);
        pass = q;
    }
}

void position::advance(const layout_view &view, unsigned d, uint64_t count) noexcept {
    if (d >= view.num_dims) {
        return;
    }
    index[d] += count;
    displacement += count * static_cast<uint64_t>(view.dims[d].stride);
    while (index[d] == view.dims[d].count && d + 1u < view.num_dims) {
        displacement -= index[d] * static_cast<uint64_t>(view.dims[d].stride);
        index[d] = 0;
        ++d;
        ++index[d];
        displacement += static_cast<uint64_t>(view.dims[d].stride);
    }
}

template <direction Dir>
walk<Dir>::walk(const layout_view &view, address laid, address laid_target,
                uint64_t packed_offset) noexcept
    : view_(view),
      kernels_(current_kernels()),
      laid_(laid),
      laid_target_(laid_target),
      at_(view, packed_offset) {
    if (view.num_dims != 0 && view.num_blocks == 1) {
        dense_ = find_dense_dimension(view);
        grid_ = kernels_.choose_grid(view.list_size, choose_fetch(view, Dir));
    } else if (view.num_blocks > 1) {
        list_ =
            kernels_.choose_list(Dir, view.block_length, view.tables.wide_displacement != nullptr);
        any_order_ = view.num_blocks <= max_short_list && view.num_dims != 0;
    }
    if (Dir == direction::unpack && dense_ != 0 && !blocks_are_disjoint(view, dense_ + 1)) {
        dense_ = 0;
    }
    if (Dir == direction::unpack && any_order_ && !blocks_are_disjoint(view, 1)) {
        any_order_ = false;
    }
}

template <direction Dir>
void walk<Dir>::move(address packed, uint64_t length) noexcept {
    if (view_.num_blocks == 1) {
        move_single(packed, length);
    } else {
        move_list(packed, length);
    }
}

template <direction Dir>
void walk<Dir>::move_bytes(uint64_t displacement, address packed, uint64_t length) const noexcept {
    address target = Dir == direction::pack ? packed : laid_target_ + displacement;
    address source = Dir == direction::unpack ? packed : laid_ + displacement;
    std::memcpy(reinterpret_cast<void *>(target), reinterpret_cast<const void *>(source), length);
}

template <direction Dir>
block_grid walk<Dir>::make_grid(uint64_t displacement, address packed, const stride_pair &stride0,
                                const stride_pair &stride1) const noexcept {
    block_grid grid;
    grid.target = Dir == direction::pack ? packed : laid_target_ + displacement;
    grid.source = Dir == direction::unpack ? packed : laid_ + displacement;
    grid.target_stride0 = Dir == direction::pack ? stride0.packed : stride0.laid;
    grid.source_stride0 = Dir == direction::unpack ? stride0.packed : stride0.laid;
    grid.target_stride1 = Dir == direction::pack ? stride1.packed : stride1.laid;
    grid.source_stride1 = Dir == direction::unpack ? stride1.packed : stride1.laid;
    return grid;
}

template <direction Dir>
void walk<Dir>::move_single(address packed, uint64_t length) noexcept {
    const uint64_t block_length = view_.list_size;
    const uint64_t first = static_cast<uint64_t>(view_.first_displacement);
    if (at_.in_block != 0 || view_.num_dims == 0) {
        const uint64_t part = std::min(block_length - at_.in_block, length);
        move_bytes(first + at_.displacement + at_.in_block, packed, part);
        packed += part;
        length -= part;
        at_.in_block += part;
        if (at_.in_block != block_length) {
            return;
        }
        at_.in_block = 0;
        at_.advance(view_, 0, 1);
    }
    uint64_t passes = view_.by_list.quotient(length);
    const uint64_t tail = view_.by_list.remainder(length, passes);
    while (passes != 0) {
        const uint64_t done = move_blocks(packed, passes);
        packed += done * block_length;
        passes -= done;
    }
    if (tail != 0) {
        move_bytes(first + at_.displacement, packed, tail);
        at_.in_block = tail;
    }
}

// Moves whole blocks of a layout of one block: as many of `passes` as one kernel call can. Returns
// how many.
template <direction Dir>
uint64_t walk<Dir>::move_blocks(address packed, uint64_t passes) noexcept {
    const uint64_t length = view_.list_size;
    const layout_dim &row = view_.dims[0];
    const uint64_t displacement =
        static_cast<uint64_t>(view_.first_displacement) + at_.displacement;
    const stride_pair stride0{static_cast<uint64_t>(row.stride), length};
    if (at_.index[0] != 0 || passes < row.count || view_.num_dims == 1) {
        const uint64_t count = std::min(passes, row.count - at_.index[0]);
        block_grid grid =
            make_grid(displacement, packed, stride0, stride_pair{to_next_row(count), 0});
        grid.length = length;
        grid.count0 = count;
        grid.count1 = 1;
        grid_(grid);
        at_.advance(view_, 0, grid.count0);
        return grid.count0;
    }
    if (dense_ != 0) {
        const uint64_t done = move_transposed(packed, passes);
        if (done != 0) {
            return done;
        }
    }
    const layout_dim &column = view_.dims[1];
    const stride_pair stride1{static_cast<uint64_t>(column.stride), row.count * length};
    block_grid grid = make_grid(displacement, packed, stride0, stride1);
    grid.length = length;
    grid.count0 = row.count;
    grid.count1 = std::min(passes / row.count, column.count - at_.index[1]);
    grid_(grid);
    at_.advance(view_, 1, grid.count1);
    return grid.count0 * grid.count1;
}

// Bytes from the current block to the one behind the next `count` of its row, which is prefetched.
template <direction Dir>
uint64_t walk<Dir>::to_next_row(uint64_t count) const noexcept {
    const uint64_t stride = static_cast<uint64_t>(view_.dims[0].stride);
    if (at_.index[0] + count < view_.dims[0].count || view_.num_dims == 1) {
        return count * stride;
    }
    return static_cast<uint64_t>(view_.dims[1].stride) - at_.index[0] * stride;
}

// Moves as many of `passes` as are whole slices below the dense dimension, by transposes of
// dimension 0 and the dense one. Returns how many; 0: too few slices are left.
template <direction Dir>
uint64_t walk<Dir>::move_transposed(address packed, uint64_t passes) noexcept {
    uint64_t slice = view_.dims[0].count;
    for (unsigned d = 1; d < dense_; ++d) {
        if (at_.index[d] != 0) {
            return 0;
        }
        slice *= view_.dims[d].count;
    }
    const layout_dim &dense = view_.dims[dense_];
    const uint64_t slices = std::min(passes / slice, dense.count - at_.index[dense_]);
    if (slices < least_slices) {
        return 0;
    }
    const uint64_t length = view_.list_size;
    const grid_function transpose = kernels_.choose_transpose(length);
    const stride_pair stride0{static_cast<uint64_t>(view_.dims[0].stride), length};
    const stride_pair stride1{static_cast<uint64_t>(dense.stride), slice * length};
    position row = at_;
    for (uint64_t done = 0; done < slice; done += view_.dims[0].count) {
        block_grid grid =
            make_grid(static_cast<uint64_t>(view_.first_displacement) + row.displacement,
                      packed + done * length, stride0, stride1);
        grid.length = length;
        grid.count0 = view_.dims[0].count;
        grid.count1 = slices;
        transpose(grid);
        row.advance(view_, 0, grid.count0);
    }
    at_.advance(view_, dense_, slices);
    return slice * slices;
}

template <direction Dir>
void walk<Dir>::move_list(address packed, uint64_t length) noexcept {
    while (length != 0) {
        if (any_order_ && at_.block == 0 && at_.in_block == 0) {
            const uint64_t passes = view_.by_list.quotient(length);
            if (passes >= 4) {
                const uint64_t done = move_passes(packed, passes) * view_.list_size;
                packed += done;
                length -= done;
                continue;
            }
        }
        const uint64_t done = move_in_pass(packed, length);
        packed += done;
        length -= done;
    }
}

// Moves at most `length` bytes, up to the end of the pass; returns how many.
template <direction Dir>
uint64_t walk<Dir>::move_in_pass(address packed, uint64_t length) noexcept {
    const uint64_t start = view_.block_packed(at_.block) + at_.in_block;
    const uint64_t stop = std::min(view_.list_size - start, length) + start;
    uint64_t at = start;
    if (at_.in_block != 0) {
        const uint64_t block_end = view_.block_packed(at_.block + 1);
        const uint64_t part = std::min(block_end, stop) - at;
        move_bytes(static_cast<uint64_t>(view_.block_displacement(at_.block)) + at_.displacement +
                       at_.in_block,
                   packed, part);
        at += part;
        at_.in_block += part;
        if (at != block_end) {
            return at - start;
        }
        at_.in_block = 0;
        ++at_.block;
    }
    if (at != stop) {
        const uint64_t end = stop == view_.list_size ? view_.num_blocks : view_.find_block(stop);
        if (end > at_.block) {
            const address other =
                Dir == direction::copy ? laid_target_ + at_.displacement : packed + (at - start);
            list_({&view_, at_.block, end, laid_ + at_.displacement, other});
            at = view_.block_packed(end);
            at_.block = end;
        }
    }
    if (at != stop) {
        at_.in_block = stop - at;
        move_bytes(static_cast<uint64_t>(view_.block_displacement(at_.block)) + at_.displacement,
                   packed + (at - start), at_.in_block);
    }
    if (at_.block == view_.num_blocks) {
        at_.block = 0;
        at_.advance(view_, 0, 1);
    }
    return stop - start;
}

// Moves whole passes over a short list, in groups that stay in cache: one block of the list after
// the other, each over all passes of the group. Returns how many of `passes`: at most those left in
// dimension 0.
template <direction Dir>
uint64_t walk<Dir>::move_passes(address packed, uint64_t passes) noexcept {
    const layout_dim &dim = view_.dims[0];
    passes = std::min(passes, dim.count - at_.index[0]);
    const uint64_t span = std::max({magnitude(dim.stride), view_.list_size, uint64_t(1)});
    const uint64_t group = std::max<uint64_t>(group_span / span, 8);
    const stride_pair stride0{static_cast<uint64_t>(dim.stride), view_.list_size};
    for (uint64_t done = 0; done < passes; done += group) {
        const uint64_t count = std::min(group, passes - done);
        for (uint64_t b = 0; b < view_.num_blocks; ++b) {
            const uint64_t start = view_.block_packed(b);
            block_grid grid =
                make_grid(static_cast<uint64_t>(view_.block_displacement(b)) + at_.displacement,
                          packed + start, stride0, stride_pair{0, 0});
            grid.length = view_.block_packed(b + 1) - start;
            grid.count0 = count;
            grid.count1 = 1;
            kernels_.choose_grid(grid.length, fetch::none)(grid);
        }
        packed += count * view_.list_size;
        at_.advance(view_, 0, count);
    }
    return passes;
}

template class walk<direction::pack>;
template class walk<direction::unpack>;
template class walk<direction::copy>;

}  // namespace cuda_nc::exec
