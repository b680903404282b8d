#include "ucs/exec/kernels/move/short_list.hpp"

#include <algorithm>
#include <cstring>

namespace cuda_nc::exec {
namespace {

constexpr uint64_t most_packed = uint64_t{1} << 30;  // sums of offsets stay below 2^31
// For longer messages the tables hardly count, and other kernels have more loads in flight.
constexpr uint64_t most_pulled = 1 << 20;
constexpr uint8_t least_word_log2 = 2;  // words of 1 and 2 bytes are rare

// Copies the tables that the CPU has. False: the list is too long, its blocks lie too far apart, or
// they have one length and need no search.
bool copy_tables(const layout_view &from, short_list *to) {
    const block_tables &tables = from.tables;
    if (from.num_blocks > short_list_blocks || from.num_dims != 0 ||
        tables.displacement == nullptr || tables.packed == nullptr) {
        return false;
    }
    const size_t blocks = from.num_blocks;
    std::memset(to->packed, 0xff, sizeof(to->packed));
    for (size_t i = 0; i < blocks; ++i) {
        to->packed[i] = static_cast<uint32_t>(std::min<uint64_t>(from.block_packed(i), UINT32_MAX));
    }
    std::memcpy(to->displacement, tables.displacement, blocks * sizeof(*to->displacement));
    return true;
}

}  // namespace

bool make_short_pull(const gpu::pipe_work &pull, const pipe_plan &plan,
                     short_pull *made_p) noexcept {
    const layout_view *view = pull.on_host;
    const uint8_t word_log2 = plan.mover.word_log2;
    const uint64_t end = pull.packed_offset + pull.length, word = uint64_t{1} << word_log2;
    if (view == nullptr || !pull.pulls || pull.source != nullptr ||
        (plan.mover.how != method::units && plan.mover.how != method::blocks) ||
        word_log2 < least_word_log2 || pull.length > most_pulled || end > most_packed ||
        (pull.packed_offset | pull.length) % word != 0 || !copy_tables(*view, &made_p->list)) {
        return false;
    }
    made_p->entries[0] = plan.batch.entries[0];
    const auto frame = static_cast<uintptr_t>(view->tables.frame_displacement[0]);
    made_p->source = reinterpret_cast<uintptr_t>(pull.source_base) + frame;
    made_p->target = reinterpret_cast<uintptr_t>(pull.base) + frame;
    made_p->first = static_cast<uint32_t>(pull.packed_offset);
    made_p->first_step = 1u << (log2_ceil(view->num_blocks) - 1);
    made_p->granule_log2 = view->granule_log2;
    made_p->word_log2 = word_log2;
    return true;
}

}  // namespace cuda_nc::exec
