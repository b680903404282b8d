#include "ucs/exec/kernels/plan/order_plan.hpp"

#include <algorithm>
#include <limits>

#include "ucs/exec/kernels/plan/policy.hpp"

namespace cuda_nc::exec {
namespace {

static_assert(order_word::next_stride + 2 <= order_word::number);

// The address `back` bytes before: it may lie outside every object.
void write_address(const char *address, uint32_t back, uint32_t *words) {
    const auto number = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(address) - back);
    words[0] = static_cast<uint32_t>(number);
    words[1] = static_cast<uint32_t>(number >> 32);
}

void write_line(uint32_t word_log2, const part &p, uint32_t *words) {
    // A part within one block is a block whose end no offset reaches.
    const fast_divide32 by_block =
        p.num_dims == 0 ? fast_divide32(std::numeric_limits<int32_t>::max()) : p.by_block;
    const packed_side packed = p.dir == gpu::direction::pack     ? packed_side::target
                               : p.dir == gpu::direction::unpack ? packed_side::source
                                                                 : packed_side::none;
    words[order_word::header] =
        order_header(order_kind::move, std::max(1u, p.num_dims), word_log2, packed);
    // A copy's base is the source's. Of contiguous memory p.packed is where offset p.first lies.
    write_address(packed == packed_side::source ? p.packed : p.base,
                  packed == packed_side::source ? p.first : 0, words + order_word::source);
    write_address(packed == packed_side::source ? p.base : p.packed,
                  packed == packed_side::target ? p.first : 0, words + order_word::target);
    words[order_word::first] = p.first;
    words[order_word::block_length] = by_block.divisor;
    words[order_word::block_magic] = by_block.magic;
    constexpr uint32_t at[] = {order_word::stride, order_word::next_stride};
    for (uint32_t d = 0; d < p.num_dims; ++d) {
        const auto stride = static_cast<uint64_t>(p.dims[d].stride);
        words[at[d]] = static_cast<uint32_t>(stride);
        words[at[d] + 1] = static_cast<uint32_t>(stride >> 32);
    }
    const fast_divide32 by_count = p.num_dims > 1 ? p.dims[0].by_count : fast_divide32();
    words[order_word::count] = by_count.divisor;
    words[order_word::count_magic] = by_count.magic;
}

bool is_one_block(const layout_view &what) {
    return what.num_blocks == 1 && what.num_dims == 0;
}

// Where the order's first byte lies in contiguous memory.
char *first_of(const gpu::move_order &one, const layout_view &what, const char *base) {
    const auto at = static_cast<uint64_t>(what.first_displacement) + one.packed_offset;
    return reinterpret_cast<char *>(reinterpret_cast<uintptr_t>(base) + at);
}

// The move as a transfer: of two sides laid out alike, or of one with contiguous memory. False: it
// is neither.
bool describe_transfer(const gpu::move_order &one, gpu::transfer *work_p) {
    work_p->packed_offset = one.packed_offset;
    work_p->length = one.length;
    if (one.source == nullptr) {
        work_p->dir = gpu::direction::copy;
        work_p->layout = *one.target;
        work_p->base = const_cast<char *>(one.source_base);
        work_p->packed = one.target_base;
    } else if (is_one_block(*one.source)) {
        work_p->dir = gpu::direction::unpack;
        work_p->layout = *one.target;
        work_p->base = one.target_base;
        work_p->packed = first_of(one, *one.source, one.source_base);
    } else if (is_one_block(*one.target)) {
        work_p->dir = gpu::direction::pack;
        work_p->layout = *one.source;
        work_p->base = const_cast<char *>(one.source_base);
        work_p->packed = first_of(one, *one.target, one.target_base);
    } else {
        return false;
    }
    return true;
}

}  // namespace

bool plan_order(const gpu::move_order &one, uint32_t (*words_p)[gpu::order_words]) noexcept {
    constexpr uint64_t few_bytes = 64 << 10, chunk = 16 << 10;
    gpu::transfer work;
    part all;
    if (!describe_transfer(one, &work) || work.layout.num_blocks != 1 ||
        cut_part(work, 0, &all) != one.length || all.num_dims > most_line_dims) {
        return false;
    }
    const kernel_choice by =
        choose_mover(all, work.layout.align_log2, one.length <= few_bytes ? chunk / 2 : chunk);
    if (by.how != method::words || by.word_log2 < least_line_word_log2) {
        return false;
    }
    (*words_p)[order_word::length] = static_cast<uint32_t>(one.length);
    write_line(by.word_log2, all, *words_p);
    (*words_p)[order_word::header] |= one.into_own_memory ? into_own_memory_bit : 0;
    return true;
}

}  // namespace cuda_nc::exec
