#include "ucs/exec/kernels/plan/part.hpp"

#include <algorithm>

namespace cuda_nc::exec {
namespace {

// With offsets below 2^30 at the start of a part and lengths up to 2^30, sums stay below 2^31.
constexpr uint64_t offset_limit = uint64_t{1} << 30;
constexpr uint32_t no_division = (uint32_t{1} << 31) - 1;  // a divisor above every offset

// Computed as a number: the base may be null (MPI_BOTTOM) or lie outside every object.
char *shifted(char *address, int64_t displacement) {
    return reinterpret_cast<char *>(reinterpret_cast<uintptr_t>(address) +
                                    static_cast<uint64_t>(displacement));
}

void shift_base(part *p, int64_t displacement, bool copy) {
    p->base = shifted(p->base, displacement);
    if (copy) {
        p->packed = shifted(p->packed, displacement);
    }
}

// Adds dims to the base, from the outermost in; may shorten *length_p. Returns the offset in the
// smaller layout.
uint64_t fold_dims(const layout_view &view, uint64_t offset, uint64_t *length_p, bool copy,
                   part *p) {
    p->num_dims = view.num_dims;
    while (p->num_dims != 0) {
        const layout_dim &outer = view.dims[p->num_dims - 1];
        uint64_t inner = view.list_size;  // packed bytes of one index of the outermost dim
        for (unsigned d = 0; d + 1 < p->num_dims; ++d) {
            inner *= view.dims[d].count;
        }
        uint64_t index = offset / inner;
        offset -= index * inner;
        shift_base(p, static_cast<int64_t>(index) * outer.stride, copy);
        if (offset >= offset_limit) {
            *length_p = std::min(*length_p, inner - offset);
        }
        if (offset + *length_p > inner) {
            break;
        }
        --p->num_dims;
    }
    return offset;
}

void describe_dims(const layout_view &view, part *p) {
    for (unsigned d = 0; d < p->num_dims; ++d) {
        p->dims[d].stride = view.dims[d].stride;
        // The outermost index is never divided by its count. An inner count exceeds 31 bits only
        // where its bytes do, and then no outer dim is left.
        p->dims[d].by_count = fast_divide32(
            static_cast<uint32_t>(std::min<uint64_t>(view.dims[d].count, no_division)));
    }
}

}  // namespace

uint32_t cut_part(const gpu::transfer &work, uint64_t done, part *p) noexcept {
    const layout_view &view = work.layout;
    const bool copy = work.dir == gpu::direction::copy;
    uint64_t part_length = std::min(work.length - done, offset_limit);
    *p = part();
    p->dir = work.dir;
    p->base = work.base;
    p->packed = copy ? work.packed : work.packed + done;
    uint64_t offset = fold_dims(view, work.packed_offset + done, &part_length, copy, p);
    p->list = view.num_blocks > 1;
    if (!p->list) {
        shift_base(p, view.first_displacement, copy);
        if (p->num_dims == 0) {  // inside one block
            shift_base(p, static_cast<int64_t>(offset), copy);
            p->block_length = no_division;
            // Offsets count from an aligned address, so that words at multiples of 16 are aligned.
            offset = reinterpret_cast<uintptr_t>(p->base) & 15;
            shift_base(p, -static_cast<int64_t>(offset), copy);
        } else {
            p->block_length = static_cast<uint32_t>(view.list_size);
        }
        p->by_block = fast_divide32(p->block_length);
    } else {
        p->tables = view.tables;
        p->granule_log2 = view.granule_log2;
        p->num_blocks = static_cast<uint32_t>(view.num_blocks);
        p->list_size = view.list_size;
        p->longest_block = view.longest_block;
        uint64_t length = view.block_length;
        if (p->num_dims != 0) {
            p->by_list = fast_divide32(static_cast<uint32_t>(view.list_size));
            p->by_num_blocks = fast_divide32(p->num_blocks);
            p->block_length = static_cast<uint32_t>(length);
        } else if (length == 0) {
            p->list_first = offset & ~uint64_t{15};  // words of the part are words of the list
            offset &= 15;
            p->progression = view.progression;
            p->first_displacement = view.first_displacement;
        } else if (length < offset_limit) {
            p->block_first = static_cast<uint32_t>(offset / length);
            offset %= length;
            p->block_length = static_cast<uint32_t>(length);
        } else {  // huge blocks: one at a time
            p->block_first = static_cast<uint32_t>(offset / length);
            part_length = std::min(part_length, length - offset % length);
            shift_base(p, static_cast<int64_t>(offset % length & ~uint64_t{15}), copy);
            offset = offset % length & 15;
            p->block_length = no_division;
        }
        if (p->block_length != 0) {
            p->by_block = fast_divide32(p->block_length);
        }
    }
    describe_dims(view, p);
    p->first = static_cast<uint32_t>(offset);
    p->length = static_cast<uint32_t>(part_length);
    return p->length;
}

}  // namespace cuda_nc::exec
