#include "ucs/backend/sim/execute.hpp"

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstring>
#include <new>
#include <numeric>
#include <utility>
#include <vector>

#include "ucs/base/bits.hpp"
#include "ucs/base/log.hpp"
#include "ucs/gpu/layout_pairs.hpp"
#include "ucs/backend/sim/access.hpp"

namespace cuda_nc::gpu::sim {
namespace {

// The pairs of a list, in memory or made by layouts.
class pair_source {
  public:
    explicit pair_source(const pair_list &list) : list_(list) {}

    // False, logged: the device cannot.
    bool reach(const address_space &space, int ordinal) {
        if (list_.made != nullptr) {
            made_ = *list_.made;
            return translate_tables(space, ordinal, &made_.source) &&
                   translate_tables(space, ordinal, &made_.target);
        }
        const auto at = reinterpret_cast<uintptr_t>(list_.pairs);
        if (list_.count > SIZE_MAX / sizeof(block_pair) || at % alignof(block_pair) != 0) {
            nc_error("simulated GPU %d: %zu pairs at 0x%" PRIxPTR, ordinal, list_.count, at);
            return false;
        }
        pairs_ = access_checker(space, ordinal)
                     .reach(at, list_.count * sizeof(block_pair), "a pair list");
        return pairs_ != nullptr;
    }
    block_pair at(size_t number) const {
        if (list_.made != nullptr) {
            return made_.at(number);
        }
        block_pair one;
        std::memcpy(&one, pairs_ + number * sizeof(one), sizeof(one));
        return one;
    }

  private:
    const pair_list &list_;
    const char *pairs_ = nullptr;
    layout_pairs made_;
};

}  // namespace

ucs_status_t execute(const transfer &work, int ordinal, const address_space &space,
                     random_source &random, const std::function<void()> &pause) noexcept {
    if (work.length == 0) {
        return UCS_OK;
    }
    if (work.packed_offset > work.layout.packed_size ||
        work.length > work.layout.packed_size - work.packed_offset) {
        nc_error("simulated GPU %d: %" PRIu64 " bytes from %" PRIu64 " of a layout of %" PRIu64,
                 ordinal, work.length, work.packed_offset, work.layout.packed_size);
        return UCS_ERR_IO_ERROR;
    }
    transfer seen = work;
    if (!translate_tables(space, ordinal, &seen.layout)) {
        return UCS_ERR_IO_ERROR;
    }
    constexpr size_t most = 4;
    std::array<uint64_t, most + 1> cuts;
    size_t pieces = 1 + random.up_to(most - 1);
    cuts[0] = work.packed_offset;
    cuts[pieces] = work.packed_offset + work.length;
    for (size_t i = 1; i < pieces; ++i) {
        cuts[i] = work.packed_offset + random.up_to(work.length);
    }
    std::sort(cuts.begin(), cuts.begin() + pieces + 1);
    std::array<size_t, most> order = {0, 1, 2, 3};
    for (size_t i = pieces; i > 1; --i) {
        std::swap(order[i - 1], order[random.up_to(i - 1)]);
    }
    for (size_t i = 0; i < pieces; ++i) {
        if (i != 0) {
            pause();
        }
        if (!move_piece(seen, ordinal, space, cuts[order[i]], cuts[order[i] + 1])) {
            return UCS_ERR_IO_ERROR;
        }
    }
    return UCS_OK;
}

ucs_status_t execute(const pair_list &list, int ordinal, const address_space &space,
                     random_source &random, const std::function<void()> &pause) noexcept try {
    access_checker sources(space, ordinal), targets(space, ordinal);
    pair_source pairs(list);
    if (!pairs.reach(space, ordinal)) {
        return UCS_ERR_IO_ERROR;
    }
    std::vector<size_t> order(list.count);
    std::iota(order.begin(), order.end(), size_t{0});
    for (size_t i = order.size(); i > 1; --i) {
        std::swap(order[i - 1], order[random.up_to(i - 1)]);
    }
    const size_t between_pauses = divide_up(list.count, size_t{4});
    for (size_t i = 0; i < order.size(); ++i) {
        if (i != 0 && i % between_pauses == 0) {
            pause();
        }
        const block_pair one = pairs.at(order[i]);
        if (one.length == 0) {
            continue;
        }
        const char *from =
            sources.reach(reinterpret_cast<uintptr_t>(one.from), one.length, "a pair's source");
        char *to =
            targets.reach(reinterpret_cast<uintptr_t>(one.to), one.length, "a pair's target");
        if (from == nullptr || to == nullptr) {
            return UCS_ERR_IO_ERROR;
        }
        std::memmove(to, from, one.length);
    }
    return UCS_OK;
} catch (const std::bad_alloc &) {
    return UCS_ERR_NO_MEMORY;
}

}  // namespace cuda_nc::gpu::sim
