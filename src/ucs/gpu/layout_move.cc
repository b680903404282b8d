#include "ucs/gpu/layout_move.hpp"

#include <algorithm>
#include <numeric>

#include "ucs/base/bits.hpp"
#include "ucs/gpu/layout_pairs.hpp"

namespace cuda_nc::gpu {
namespace {

bool is_contiguous(const layout_view &view) noexcept {
    return view.kind == shape::contiguous;
}

// Of a contiguous layout: where its bytes begin.
const char *begin_of(const layout_view &view, const char *base) noexcept {
    return reinterpret_cast<const char *>(reinterpret_cast<uintptr_t>(base) +
                                          static_cast<uintptr_t>(view.first_displacement));
}

ucs_status_t transfer_all(stream &on, direction dir, const layout_view &view, char *base,
                          char *other, unsigned max_sms) noexcept {
    transfer work;
    work.dir = dir;
    work.layout = view;
    work.base = base;
    work.packed = other;
    work.length = view.packed_size;
    work.max_sms = max_sms;
    return on.launch(work);
}

// Whether these bytes of GPU memory lie in several allocations.
bool spans_several(const char *begin, uint64_t bytes) noexcept {
    const memory_info first = platform::instance().query(begin);
    return first.kind == memory_kind::device && first.allocation.id != 0 &&
           !first.allocation.holds(reinterpret_cast<uintptr_t>(begin), bytes) &&
           platform::instance().query(begin + bytes - 1).kind == memory_kind::device;
}

// A layout joins blocks that touch, whatever they lie in. The driver refuses to copy over several
// allocations; kernels do not care.
ucs_status_t copy_all(stream &on, const layout_move &move) noexcept {
    const layout_view &target = *move.target, &source = move.alike ? target : *move.source;
    const uint64_t bytes = target.packed_size;
    char *const to = const_cast<char *>(begin_of(target, move.target_base));
    const char *const from = begin_of(source, move.source_base);
    const ucs_status_t copied = on.copy(to, from, bytes);
    return copied != UCS_OK && (spans_several(to, bytes) || spans_several(from, bytes))
               ? transfer_all(on, direction::pack, source, const_cast<char *>(move.source_base), to,
                              move.max_sms)
               : copied;
}

bool has_list(const layout_move &move) noexcept {
    return move.source->num_blocks > 1 || move.target->num_blocks > 1;
}

// For each chunk a block reads the tables of a list, one after the other: longer ones pay there. In
// a launch with others each block would take as much shared memory, and fewer fit on some GPUs.
uint64_t usual_chunk(bool of_lone_list) noexcept {
    return of_lone_list ? max_pull_chunk : 16 << 10;
}

pipe_geometry cut(uint64_t bytes, unsigned channels, uint64_t usual_chunk) noexcept {
    constexpr uint64_t least_chunk = 4 << 10;
    const uint64_t rounds = divide_up(bytes, channels * usual_chunk);
    const uint64_t chunk = round_up(divide_up(bytes, channels * rounds), least_chunk);
    pipe_geometry g;
    g.channels = static_cast<uint32_t>(std::min<uint64_t>(channels, divide_up(bytes, chunk)));
    g.chunk_size = static_cast<uint32_t>(chunk);
    g.depth = 1;
    return g;
}

// By kernels that hold a chunk at a time in a thread block's shared memory. Within a GPU a thread
// block's loads and stores take turns with those of others: more of them keep its memory busy.
ucs_status_t pull_all(stream &on, const layout_move &move) noexcept {
    const uint64_t total = move.target->packed_size;
    const unsigned most =
        move.max_sms != 0 ? std::min(move.max_sms, max_pipe_channels) : max_pipe_channels;
    pipe_work work;
    work.dir = direction::unpack;
    work.pulls = true;
    work.source = move.source;
    work.source_base = const_cast<char *>(move.source_base);
    work.layout = move.target;
    work.base = move.target_base;
    work.sequence = pipe_sequence_step;
    work.launch_number = 1;
    for (uint64_t done = 0; done < total; done += work.length) {
        work.packed_offset = done;
        work.length = std::min(total - done, max_pipe_length);
        work.geometry = move.is_local ? cut(work.length, most, usual_chunk(has_list(move)))
                                      : choose_pull_geometry(work.length, most, has_list(move));
        size_t launched = 0;
        const ucs_status_t status = on.launch(&work, 1, &launched);
        if (status != UCS_OK) {
            return status;
        }
    }
    return UCS_OK;
}

// No pairs where a stay in shared memory is quicker: of short blocks, in lists of shorter ones.
layout_pairs pairs_between(const layout_move &move) noexcept {
    layout_pairs pairs;
    const uint64_t least_step = has_list(move) ? 64 : 256;  // measured on an H200
    const uint64_t step = std::gcd(move.source->block_length, move.target->block_length);
    if (move.source->block_length == 0 || move.target->block_length == 0 || step < least_step) {
        return pairs;
    }
    pairs.source = *move.source;
    pairs.target = *move.target;
    pairs.source_base = move.source_base;
    pairs.target_base = move.target_base;
    constexpr uint64_t line = 128;
    const uint64_t number = divide_up(step, block_pair::best_length);
    pairs.step = step;
    pairs.piece = number == 1 ? step : round_up(divide_up(step, number), line);
    pairs.pairs_of_step = fast_divide(divide_up(step, pairs.piece));
    return pairs;
}

ucs_status_t move_pairs(stream &on, const layout_pairs &pairs, unsigned max_sms) noexcept {
    pair_list list;
    list.made = &pairs;
    list.count = pairs.count();
    list.max_sms = max_sms;
    return on.launch(list);
}

}  // namespace

pipe_geometry choose_pull_geometry(uint64_t bytes, unsigned channels, bool lone_list) noexcept {
    constexpr unsigned most_channels = 128;
    channels = std::min(std::max(channels, 1u), most_channels);
    return cut(bytes, channels, usual_chunk(lone_list && channels >= many_pipe_channels));
}

ucs_status_t launch(stream &on, const layout_move &move) noexcept {
    const layout_view &target = *move.target, &source = move.alike ? target : *move.source;
    auto *from = const_cast<char *>(move.source_base);
    if (target.packed_size == 0) {
        return UCS_OK;
    }
    if (is_contiguous(source) && is_contiguous(target)) {
        return copy_all(on, move);
    }
    if (move.alike) {
        return transfer_all(on, direction::copy, target, from, move.target_base, move.max_sms);
    }
    if (is_contiguous(source)) {
        return transfer_all(on, direction::unpack, target, move.target_base,
                            const_cast<char *>(begin_of(source, from)), move.max_sms);
    }
    if (is_contiguous(target)) {
        return transfer_all(on, direction::pack, source, from,
                            const_cast<char *>(begin_of(target, move.target_base)), move.max_sms);
    }
    if (move.is_local) {
        const layout_pairs pairs = pairs_between(move);
        if (pairs.count() != 0) {
            return move_pairs(on, pairs, move.max_sms);
        }
    }
    return pull_all(on, move);
}

}  // namespace cuda_nc::gpu
