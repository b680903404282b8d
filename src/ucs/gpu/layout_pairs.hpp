// The pairs that two layouts make whose blocks all have one length each: pages of a list to pages
// of another, rows to rows of another pitch. They are computed where they are moved.
#pragma once

#include <cstdint>

#include "ucs/base/compiler.hpp"
#include "ucs/base/fast_divide.hpp"
#include "ucs/gpu/block_pair.hpp"
#include "ucs/layout/layout_view.hpp"

namespace cuda_nc::gpu {

struct layout_pairs {
    layout_view source, target;  // of one packed size; tables in memory that the device reaches
    const char *source_base = nullptr;  // displacement 0
    char *target_base = nullptr;
    // Packed bytes that lie in one block on either side, wherever a multiple of it begins; cut into
    // so many pairs of `piece` bytes, the last one shorter.
    uint64_t step = 0;
    uint64_t piece = 0;
    fast_divide pairs_of_step;

    // How many; 0: these layouts make none that are worth it.
    uint64_t count() const noexcept {
        return step == 0 ? 0 : source.packed_size / step * pairs_of_step.divisor;
    }
    // number < count()
    CUDA_NC_HD block_pair at(uint64_t number) const {
        const uint64_t whole = pairs_of_step.quotient(number);
        const uint64_t begin = pairs_of_step.remainder(number, whole) * piece;
        const uint64_t offset = whole * step + begin;
        block_pair one;
        one.from = place(source_base, source.locate(offset).displacement);
        one.to = const_cast<char *>(place(target_base, target.locate(offset).displacement));
        one.length = step - begin < piece ? step - begin : piece;
        return one;
    }

  private:
    // By numbers: a base may be null, or lie outside of its object.
    CUDA_NC_HD static const char *place(const char *base, int64_t displacement) {
        return reinterpret_cast<const char *>(reinterpret_cast<uintptr_t>(base) +
                                              static_cast<uint64_t>(displacement));
    }
};

}  // namespace cuda_nc::gpu
