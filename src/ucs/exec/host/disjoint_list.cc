// disjoint.hpp: find_disjoint_span()
#include <algorithm>
#include <cstdlib>
#include <memory>

#include "ucs/exec/host/disjoint.hpp"

namespace cuda_nc::exec {
namespace {

struct list_bounds {
    uint64_t low, span;     // bytes
    unsigned granule_log2;  // of the distances between blocks
    bool ascending;         // each block begins where the one before ends, or later
};

uint64_t length_of(const layout_view &view, uint64_t block) noexcept {
    return view.block_packed(block + 1) - view.block_packed(block);
}

list_bounds find_bounds(const layout_view &view) noexcept {
    const int64_t first = view.block_displacement(0);
    int64_t low = first, high = first;
    uint64_t bits = 0;
    bool ascending = true;
    for (uint64_t b = 0; b < view.num_blocks; ++b) {
        const int64_t begin = view.block_displacement(b);
        ascending = ascending && begin >= high;
        low = std::min(low, begin);
        high = std::max(high, begin + static_cast<int64_t>(length_of(view, b)));
        bits |= static_cast<uint64_t>(begin) - static_cast<uint64_t>(first);
    }
    const unsigned granule_log2 = bits == 0 ? 0 : static_cast<unsigned>(__builtin_ctzll(bits));
    return {static_cast<uint64_t>(low), static_cast<uint64_t>(high) - static_cast<uint64_t>(low),
            granule_log2, ascending};
}

// A bit for each granule of memory, set where a block lies.
class granule_map {
  public:
    explicit granule_map(uint64_t granules)
        : words_(static_cast<uint64_t *>(std::calloc(granules / 64 + 1, sizeof(uint64_t))),
                 &std::free) {}

    bool exists() const noexcept { return words_ != nullptr; }

    // Sets the bits of [begin, end). False: one was set already.
    bool add(uint64_t begin, uint64_t end) noexcept {
        while (begin < end) {
            const uint64_t count = std::min(end - begin, 64 - begin % 64);
            const uint64_t mask = (~uint64_t(0) >> (64 - count)) << begin % 64;
            uint64_t &word = words_.get()[begin / 64];
            if ((word & mask) != 0) {
                return false;
            }
            word |= mask;
            begin += count;
        }
        return true;
    }

  private:
    std::unique_ptr<uint64_t, decltype(&std::free)> words_;
};

}  // namespace

uint64_t find_disjoint_span(const layout_view &view) noexcept {
    const list_bounds bounds = find_bounds(view);
    if (bounds.ascending) {
        return bounds.span;
    }
    const uint64_t granules = (bounds.span >> bounds.granule_log2) + 1;
    if (granules / 8 > view.list_size) {
        return 0;
    }
    granule_map used(granules);
    if (!used.exists()) {
        return 0;
    }
    for (uint64_t b = 0; b < view.num_blocks; ++b) {
        const uint64_t begin = static_cast<uint64_t>(view.block_displacement(b)) - bounds.low;
        const uint64_t last = begin + length_of(view, b) - 1;
        if (!used.add(begin >> bounds.granule_log2, (last >> bounds.granule_log2) + 1)) {
            return 0;
        }
    }
    return bounds.span;
}

}  // namespace cuda_nc::exec
