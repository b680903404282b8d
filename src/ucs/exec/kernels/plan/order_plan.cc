#include "ucs/exec/kernels/plan/order_plan.hpp"

#include <algorithm>
#include <limits>

#include "ucs/gpu/mover_desk.hpp"

namespace cuda_nc::exec {
namespace {

static_assert(sizeof(order_body) <= gpu::order_body_size);
static_assert(sizeof(order_body) % sizeof(uint32_t) == 0, "it is copied by words");
static_assert(order_word::next_stride + 2 <= order_word::number);

// False: no code of the kernel serves it.
bool choose_order_mover(const kernel_choice &from, order_mover *to) {
    *to = {from.how, from.locator, from.word_log2};
    if (from.locator == locator_kind::mixed) {
        return false;
    }
    if (from.how == method::blocks || from.locator == locator_kind::varying ||
        from.locator == locator_kind::progression) {
        to->how = method::units;
        to->locator = locator_kind::varying;
        return true;
    }
    const bool own = to->how == method::words &&
                     (to->locator == locator_kind::dims1 || to->locator == locator_kind::dims2);
    if (to->locator != locator_kind::uniform && !own) {
        to->locator = locator_kind::any_dims;
    }
    return to->how == method::windows || to->how == method::words;
}

void write_address(const char *address, uint32_t *words) {
    const auto number = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(address));
    words[0] = static_cast<uint32_t>(number);
    words[1] = static_cast<uint32_t>(number >> 32);
}

bool fits_line(const order_mover &mover, const part &p) {
    return p.dir == gpu::direction::copy && !p.list && p.num_dims <= most_line_dims &&
           mover.how == method::words && mover.word_log2 >= least_line_word_log2;
}

void write_line(const order_mover &mover, const part &p, uint32_t *words) {
    // A part within one block is a block whose end no offset reaches.
    const fast_divide32 by_block =
        p.num_dims == 0 ? fast_divide32(std::numeric_limits<int32_t>::max()) : p.by_block;
    words[order_word::header] =
        order_header(order_kind::in_line, std::max(1u, p.num_dims), mover.word_log2);
    write_address(p.base, words + order_word::base);
    write_address(p.packed, words + order_word::packed);
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

}  // namespace

bool plan_order(const gpu::move_order &one, pipe_plan *scratch, uint32_t (&words)[gpu::order_words],
                order_body *body_p) noexcept {
    constexpr uint64_t few_bytes = 64 << 10;
    gpu::pipe_work work;
    work.dir = gpu::direction::unpack;
    work.pulls = true;
    work.layout = one.target;
    work.base = one.target_base;
    work.source = one.source;
    work.source_base = const_cast<char *>(one.source_base);
    work.packed_offset = one.packed_offset;
    work.length = one.length;
    work.geometry.channels = work.geometry.depth = 1;
    work.geometry.chunk_size = one.length <= few_bytes ? order_slot / 2 : order_slot;
    scratch->num_thread_blocks = scratch->slot_size = scratch->batch.num_entries = 0;
    order_mover mover;
    if (!add_pipe(work, scratch) || !choose_order_mover(scratch->mover, &mover)) {
        return false;
    }
    const pipe_arguments *entries = scratch->batch.entries;
    const uint32_t parts = entries[0].num_parts;
    if (parts != (one.source == nullptr ? 1u : 2u)) {
        return false;  // one side leaves the range of 32-bit offsets
    }
    words[order_word::length] = static_cast<uint32_t>(one.length);
    if (parts == 1 && fits_line(mover, entries[0].what)) {
        write_line(mover, entries[0].what, words);
        return true;
    }
    words[order_word::header] = order_header(order_kind::in_body, 0, 0);
    body_p->mover = mover;
    body_p->num_parts = parts;
    for (uint32_t i = 0; i < parts; ++i) {
        body_p->parts[i] = entries[i].what;
        body_p->first[i] = entries[i].what.first;
    }
    return true;
}

}  // namespace cuda_nc::exec
