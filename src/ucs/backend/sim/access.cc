#include "ucs/backend/sim/access.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstring>

#include "ucs/base/log.hpp"

namespace cuda_nc::gpu::sim {

char *access_checker::reach(uintptr_t address, uint64_t length, const char *what) noexcept {
    if (!known_.holds(address, length)) {
        if (!space_.find(reinterpret_cast<const void *>(address), length, &known_)) {
            return fail(address, length, what, "not inside one allocation that a GPU knows");
        }
        if (!known_.everywhere && known_.device != ordinal_) {
            known_ = region();
            return fail(address, length, what, "in the memory of another GPU");
        }
        if (own_ && (known_.kind != memory_kind::device || known_.device != ordinal_)) {
            known_ = region();
            return fail(address, length, what, "not in its own memory, as the launch says");
        }
    }
    return known_.at(address);
}

char *access_checker::fail(uintptr_t address, uint64_t length, const char *what,
                           const char *why) noexcept {
    nc_error("simulated GPU %d: illegal access to %s, %" PRIu64 " bytes at 0x%" PRIxPTR ": %s",
             ordinal_, what, length, address, why);
    return nullptr;
}

namespace {

// Replaces a table's address by the simulator's, or null where the device does not reach it.
template <typename T>
void translate(const address_space &space, int ordinal, const T **table_p, uint64_t entries,
               const char *what) noexcept {
    if (*table_p != nullptr) {
        access_checker tables(space, ordinal);
        char *alias =
            tables.reach(reinterpret_cast<uintptr_t>(*table_p), entries * sizeof(T), what);
        *table_p = reinterpret_cast<const T *>(alias);
    }
}

}  // namespace

bool translate_tables(const address_space &space, int ordinal, layout_view *view) noexcept {
    if (view->num_blocks <= 1) {
        return true;  // not used
    }
    block_tables &t = view->tables;
    uint64_t blocks = view->num_blocks, frames = (blocks + frame_blocks - 1) >> frame_blocks_log2;
    const void *before[] = {t.frame_displacement, t.frame_packed, t.displacement, t.packed,
                            t.wide_displacement,  t.wide_packed,  t.unit_block};
    translate(space, ordinal, &t.frame_displacement, frames, "a layout's frame displacements");
    translate(space, ordinal, &t.frame_packed, frames + 1, "a layout's frame offsets");
    translate(space, ordinal, &t.displacement, blocks, "a layout's displacements");
    translate(space, ordinal, &t.packed, blocks, "a layout's packed offsets");
    translate(space, ordinal, &t.wide_displacement, blocks, "a layout's displacements");
    translate(space, ordinal, &t.wide_packed, blocks + 1, "a layout's packed offsets");
    uint64_t units = t.unit_block == nullptr ? 0 : (view->list_size - 1) >> t.unit_log2;
    translate(space, ordinal, &t.unit_block, units + 1, "a work list's units");
    const void *after[] = {t.frame_displacement, t.frame_packed, t.displacement, t.packed,
                           t.wide_displacement,  t.wide_packed,  t.unit_block};
    for (size_t i = 0; i < sizeof(before) / sizeof(before[0]); ++i) {
        if (before[i] != nullptr && after[i] == nullptr) {
            return false;
        }
    }
    return true;
}

namespace {

// Checks the unit index of a work list, which kernels trust.
bool unit_is_right(const layout_view &view, uint64_t packed_offset) noexcept {
    if (view.num_blocks <= 1 || view.tables.unit_block == nullptr) {
        return true;
    }
    uint64_t offset = packed_offset % view.list_size;
    uint64_t said = view.tables.unit_block[offset >> view.tables.unit_log2];
    if (said < view.num_blocks && view.block_packed(said) <= offset) {
        return true;
    }
    nc_error("simulated GPU: a work list says that packed byte %" PRIu64 " lies in block %" PRIu64
             " or later",
             offset, said);
    return false;
}

}  // namespace

bool move_piece(const transfer &work, int ordinal, const address_space &space, uint64_t begin,
                uint64_t end) noexcept {
    const bool unpacks = work.dir == direction::unpack;
    access_checker laid_out(space, ordinal, unpacks && work.into_own_memory),
        target(space, ordinal, !unpacks && work.into_own_memory);
    auto base = reinterpret_cast<uintptr_t>(work.base);
    auto other = reinterpret_cast<uintptr_t>(work.packed);
    while (begin < end) {
        layout_position at = work.layout.locate(begin);
        uint64_t length = std::min(at.remaining, end - begin);
        auto displacement = static_cast<uintptr_t>(at.displacement);
        char *ours = laid_out.reach(base + displacement, length, "laid-out bytes");
        if (ours == nullptr || !unit_is_right(work.layout, begin)) {
            return false;
        }
        char *theirs =
            work.dir == direction::copy
                ? target.reach(other + displacement, length, "laid-out bytes of the destination")
                : target.reach(other + (begin - work.packed_offset), length, "packed bytes");
        if (theirs == nullptr) {
            return false;
        }
        if (unpacks) {
            std::memcpy(ours, theirs, length);
        } else {
            std::memcpy(theirs, ours, length);
        }
        begin += length;
    }
    return true;
}

bool pull_piece(const transfer &source, const transfer &target, int ordinal,
                const address_space &space, uint64_t begin, uint64_t end) noexcept {
    access_checker from(space, ordinal), to(space, ordinal, target.into_own_memory);
    while (begin < end) {
        const layout_position there = source.layout.locate(begin);
        const layout_position here = target.layout.locate(begin);
        const uint64_t length = std::min({there.remaining, here.remaining, end - begin});
        const char *theirs = from.reach(
            reinterpret_cast<uintptr_t>(source.base) + static_cast<uintptr_t>(there.displacement),
            length, "a sender's bytes");
        char *ours = to.reach(
            reinterpret_cast<uintptr_t>(target.base) + static_cast<uintptr_t>(here.displacement),
            length, "laid-out bytes");
        if (theirs == nullptr || ours == nullptr || !unit_is_right(source.layout, begin) ||
            !unit_is_right(target.layout, begin)) {
            return false;
        }
        std::memcpy(ours, theirs, length);
        begin += length;
    }
    return true;
}

}  // namespace cuda_nc::gpu::sim
