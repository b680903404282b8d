#include "ucs/exec/kernels/plan/order_plan.hpp"

#include "ucs/gpu/mover_desk.hpp"

namespace cuda_nc::exec {
namespace {

static_assert(sizeof(order_body) <= gpu::order_body_size);
static_assert(sizeof(order_body) % sizeof(uint32_t) == 0, "it is copied by words");
static_assert(order_word::dims + 3 * order_word::most_dims <= order_word::number);

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
    constexpr uint8_t least_word_log2 = 2;  // shorter words are rare
    return to->how == method::windows ||
           (to->how == method::words && to->word_log2 >= least_word_log2);
}

void write_address(const char *address, uint32_t *words) {
    const auto number = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(address));
    words[0] = static_cast<uint32_t>(number);
    words[1] = static_cast<uint32_t>(number >> 32);
}

bool fits_line(const part &p) {
    return p.dir == gpu::direction::copy && !p.list && p.num_dims <= order_word::most_dims;
}

void write_line(const order_mover &mover, const part &p, uint32_t *words) {
    words[order_word::header] = order_header(order_kind::in_line, mover, p.num_dims);
    write_address(p.base, words + order_word::base);
    write_address(p.packed, words + order_word::packed);
    words[order_word::first] = p.first;
    words[order_word::block_length] = p.block_length;
    for (uint32_t d = 0; d < p.num_dims; ++d) {
        uint32_t *dim = words + order_word::dims + 3 * d;
        const auto stride = static_cast<uint64_t>(p.dims[d].stride);
        dim[0] = static_cast<uint32_t>(stride);
        dim[1] = static_cast<uint32_t>(stride >> 32);
        dim[2] = p.dims[d].by_count.divisor;
    }
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
    if (parts == 1 && fits_line(entries[0].what)) {
        write_line(mover, entries[0].what, words);
        return true;
    }
    words[order_word::header] = order_header(order_kind::in_body, mover, 0);
    body_p->mover = mover;
    body_p->num_parts = parts;
    for (uint32_t i = 0; i < parts; ++i) {
        body_p->parts[i] = entries[i].what;
        body_p->first[i] = entries[i].what.first;
    }
    return true;
}

}  // namespace cuda_nc::exec
