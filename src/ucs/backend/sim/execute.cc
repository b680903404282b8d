#include "ucs/backend/sim/execute.hpp"

#include <algorithm>
#include <array>
#include <cinttypes>
#include <utility>

#include "ucs/base/log.hpp"
#include "ucs/backend/sim/access.hpp"

namespace cuda_nc::gpu::sim {
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

}  // namespace cuda_nc::gpu::sim
