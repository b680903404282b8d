#include "ucs/exec/kernels/plan/order_plan.hpp"

#include <algorithm>
#include <limits>

#include "ucs/exec/kernels/plan/policy.hpp"

namespace cuda_nc::exec {
namespace {

static_assert(order_word::next_stride + 2 <= order_word::number &&
              order_word::unit_block + 2 <= order_word::number &&
              order_word::list_first < gpu::order_words);

// The address `back` bytes before: it may lie outside every object.
void write_address(const char *address, uint64_t back, uint32_t *words) {
    const auto number = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(address) - back);
    words[0] = static_cast<uint32_t>(number);
    words[1] = static_cast<uint32_t>(number >> 32);
}

void write_table(const void *table, uint32_t *words) {
    write_address(static_cast<const char *>(table), 0, words);
}

void write_number(int64_t number, uint32_t *words) {
    words[0] = static_cast<uint32_t>(number);
    words[1] = static_cast<uint32_t>(static_cast<uint64_t>(number) >> 32);
}

// All but what the line's layout has of its own. `displacement`: of all blocks.
void write_sides(line_layout what, uint32_t word_log2, const part &p, int64_t displacement,
                 uint32_t *words) {
    const packed_side packed = p.dir == gpu::direction::pack     ? packed_side::target
                               : p.dir == gpu::direction::unpack ? packed_side::source
                                                                 : packed_side::none;
    words[order_word::header] = order_header(order_kind::move, what, word_log2, packed);
    // A copy's base is the source's. Of contiguous memory p.packed is where offset p.first lies.
    const uint64_t moved = static_cast<uint64_t>(displacement);
    write_address(packed == packed_side::source ? p.packed : p.base,
                  packed == packed_side::source ? p.first : -moved, words + order_word::source);
    write_address(packed == packed_side::source ? p.base : p.packed,
                  packed == packed_side::target ? p.first : -moved, words + order_word::target);
    words[order_word::first] = p.first;
}

// False: no line holds it, or words are not the best.
bool write_rows(const part &p, unsigned align_log2, uint32_t *words) {
    constexpr uint64_t few_bytes = 64 << 10, chunk = 16 << 10;
    const kernel_choice by = choose_mover(p, align_log2, p.length <= few_bytes ? chunk / 2 : chunk);
    if (p.num_dims > most_line_dims || by.how != method::words ||
        by.word_log2 < least_line_word_log2) {
        return false;
    }
    // A part within one block is a block whose end no offset reaches.
    const fast_divide32 by_block =
        p.num_dims == 0 ? fast_divide32(std::numeric_limits<int32_t>::max()) : p.by_block;
    write_sides(p.num_dims < 2 ? line_layout::dims1 : line_layout::dims2, by.word_log2, p, 0,
                words);
    words[order_word::block_length] = by_block.divisor;
    words[order_word::block_magic] = by_block.magic;
    constexpr uint32_t at[] = {order_word::stride, order_word::next_stride};
    for (uint32_t d = 0; d < p.num_dims; ++d) {
        write_number(p.dims[d].stride, words + at[d]);
    }
    const fast_divide32 by_count = p.num_dims > 1 ? p.dims[0].by_count : fast_divide32();
    words[order_word::count] = by_count.divisor;
    words[order_word::count_magic] = by_count.magic;
    return true;
}

void write_uniform_list(uint32_t word_log2, const part &p, uint32_t *words) {
    using namespace order_word;
    write_sides(line_layout::uniform_list, word_log2, p, 0, words);
    words[block_length] = p.by_block.divisor;
    words[block_magic] = p.by_block.magic;
    write_table(p.tables.displacement, words + displacement_at);
    write_table(p.tables.frame_displacement, words + frame_displacement);
    words[block_first] = p.block_first;
}

void write_varying_list(uint32_t word_log2, const part &p, uint32_t *words) {
    using namespace order_word;
    write_sides(line_layout::varying_list, word_log2, p, 0, words);
    write_table(p.tables.displacement, words + its_displacement);
    write_table(p.tables.frame_displacement, words + its_frame_displacement);
    write_table(p.tables.packed, words + packed_table);
    write_table(p.tables.frame_packed, words + frame_packed);
    write_table(p.tables.unit_block, words + unit_block);
    words[header] |= p.tables.unit_log2 << unit_at;
    words[num_blocks] = p.num_blocks;
    words[list_first] = static_cast<uint32_t>(p.list_first) | p.first;
}

void write_progression(uint32_t word_log2, const part &p, uint32_t *words) {
    using namespace order_word;
    write_sides(line_layout::progression, word_log2, p, p.first_displacement, words);
    words[first_length] = p.progression.first_length;
    words[length_step] = static_cast<uint32_t>(p.progression.length_step);
    write_number(p.progression.stride, words + block_stride);
    words[list_first] = static_cast<uint32_t>(p.list_first);
}

// False: no line holds it, or a launch is better.
bool write_list(const part &p, unsigned align_log2, uint32_t *words) {
    const unsigned word_log2 = common_align_log2(p, align_log2);
    const bool is_wide = p.tables.wide_displacement != nullptr || p.tables.wide_packed != nullptr;
    if (p.num_dims != 0 || is_wide || word_log2 < least_line_word_log2 ||
        p.length > longest_list_order || p.granule_log2 > 31 || p.tables.unit_log2 > 63 ||
        p.list_first > uint64_t{std::numeric_limits<int32_t>::max()}) {
        return false;
    }
    if (p.block_length != 0) {
        write_uniform_list(word_log2, p, words);
    } else if (p.progression.first_length != 0) {
        write_progression(word_log2, p, words);
    } else {
        write_varying_list(word_log2, p, words);
    }
    words[order_word::header] |= uint32_t{p.granule_log2} << granule_at;
    return true;
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
    gpu::transfer work;
    part all;
    if (!describe_transfer(one, &work) || cut_part(work, 0, &all) != one.length) {
        return false;
    }
    const unsigned align_log2 = work.layout.align_log2;
    if (all.list ? !write_list(all, align_log2, *words_p)
                 : !write_rows(all, align_log2, *words_p)) {
        return false;
    }
    (*words_p)[order_word::length] = static_cast<uint32_t>(one.length);
    (*words_p)[order_word::header] |= one.into_own_memory ? into_own_memory_bit : 0;
    return true;
}

}  // namespace cuda_nc::exec
