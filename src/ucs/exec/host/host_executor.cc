#include "ucs/exec/host/host_executor.hpp"

#include <cstring>
#include <new>
#include <type_traits>

#include "ucs/exec/host/host_kernels.hpp"
#include "ucs/exec/host/split.hpp"
#include "ucs/exec/host/walk.hpp"

namespace cuda_nc::exec {
namespace {

address to_address(const void *pointer) {
    return reinterpret_cast<address>(pointer);
}

template <unsigned Length>
void copy_blocks(address target, uint64_t target_stride, address source, uint64_t source_stride,
                 uint64_t count) noexcept {
    for (; count != 0; --count) {
        std::memcpy(reinterpret_cast<void *>(target), reinterpret_cast<const void *>(source),
                    Length);
        target += target_stride;
        source += source_stride;
    }
}

// Moves a list of few blocks that is not repeated.
template <direction Dir>
void move_list_once(const layout_view &view, address laid, address packed) noexcept {
    for (uint64_t block = 0; block < view.num_blocks; ++block) {
        const address place = laid + static_cast<uint64_t>(view.block_displacement(block));
        const uint64_t start = view.block_packed(block);
        const uint64_t length = view.block_packed(block + 1) - start;
        const address target = Dir == direction::pack ? packed + start : place;
        const address source = Dir == direction::pack ? place : packed + start;
        std::memcpy(reinterpret_cast<void *>(target), reinterpret_cast<const void *>(source),
                    length);
    }
}

// For small messages, whose time is mostly that of choosing a kernel and finding a position. False,
// with nothing moved: the message is not one of these.
template <direction Dir>
bool move_little(const layout_view &view, address laid, address packed) noexcept {
    constexpr uint64_t most_bytes = 1024, most_listed = 8;
    if (view.packed_size > most_bytes) {
        return false;
    }
    if (view.num_dims == 0 && view.num_blocks <= most_listed) {
        move_list_once<Dir>(view, laid, packed);
        return true;
    }
    if (view.num_blocks != 1 || view.num_dims != 1) {
        return false;
    }
    const address first = laid + static_cast<uint64_t>(view.first_displacement);
    const uint64_t stride = static_cast<uint64_t>(view.dims[0].stride), length = view.list_size;
    const uint64_t count = view.dims[0].count;
    const address target = Dir == direction::pack ? packed : first;
    const address source = Dir == direction::pack ? first : packed;
    const uint64_t target_stride = Dir == direction::pack ? length : stride;
    const uint64_t source_stride = Dir == direction::pack ? stride : length;
    switch (length) {
        case 4:
            copy_blocks<4>(target, target_stride, source, source_stride, count);
            return true;
        case 8:
            copy_blocks<8>(target, target_stride, source, source_stride, count);
            return true;
        case 16:
            copy_blocks<16>(target, target_stride, source, source_stride, count);
            return true;
        default:
            return false;
    }
}

template <direction Dir>
void move_range(const layout_view &view, address laid, address laid_target, uint64_t packed_offset,
                address packed, uint64_t length) noexcept {
    if (length == 0 || (may_split(length) &&
                        move_split<Dir>(view, laid, laid_target, packed_offset, packed, length))) {
        return;
    }
    walk<Dir>(view, laid, laid_target, packed_offset).move(packed, length);
}

}  // namespace

void host_pack(const layout_view &source, const void *base, uint64_t packed_offset, void *packed,
               uint64_t length) noexcept {
    if (length == source.packed_size &&
        move_little<direction::pack>(source, to_address(base), to_address(packed))) {
        return;
    }
    move_range<direction::pack>(source, to_address(base), 0, packed_offset, to_address(packed),
                                length);
}

void host_unpack(const layout_view &target, void *base, uint64_t packed_offset, const void *packed,
                 uint64_t length) noexcept {
    if (length == target.packed_size &&
        move_little<direction::unpack>(target, to_address(base), to_address(packed))) {
        return;
    }
    move_range<direction::unpack>(target, to_address(base), to_address(base), packed_offset,
                                  to_address(packed), length);
}

void host_copy(const layout_view &both, const void *source_base, void *target_base,
               uint64_t packed_offset, uint64_t length) noexcept {
    move_range<direction::copy>(both, to_address(source_base), to_address(target_base),
                                packed_offset, 0, length);
}

template <direction Dir>
void host_cursor::move(const layout_view &view, address laid, uint64_t packed_offset,
                       address packed, uint64_t length) noexcept {
    static_assert(sizeof(walk<Dir>) <= walk_bytes && alignof(walk<Dir>) <= 8 &&
                  std::is_trivially_destructible_v<walk<Dir>>);
    if (length == view.packed_size && move_little<Dir>(view, laid, packed)) {
        return;
    }
    if (length == 0) {
        return;
    }
    auto *standing = std::launder(reinterpret_cast<walk<Dir> *>(walk_));
    if (packed_offset != next_) {
        standing = new (walk_) walk<Dir>(view, laid, laid, packed_offset);
    }
    standing->move(packed, length);
    next_ = packed_offset + length;
}

void host_cursor::pack(const layout_view &source, const void *base, uint64_t packed_offset,
                       void *packed, uint64_t length) noexcept {
    move<direction::pack>(source, to_address(base), packed_offset, to_address(packed), length);
}

void host_cursor::unpack(const layout_view &target, void *base, uint64_t packed_offset,
                         const void *packed, uint64_t length) noexcept {
    move<direction::unpack>(target, to_address(base), packed_offset, to_address(packed), length);
}

const char *host_simd_name() noexcept {
    return current_kernels().name;
}

}  // namespace cuda_nc::exec
