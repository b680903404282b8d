#include "ucs/gpu/span.hpp"

#include "ucs/base/shared_descriptors.hpp"

namespace cuda_nc::gpu {
namespace {

// Each has a descriptor of its own.
constexpr size_t most_pieces = most_shared_descriptors;

// The finalizer of splitmix64.
uint64_t scramble(uint64_t x) noexcept {
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

// Ids of pieces are small numbers in turn; one of several has the highest bit.
uint64_t combine(uint64_t ids, uint64_t next) noexcept {
    return scramble(ids + scramble(next)) | uint64_t{1} << 63;
}

}  // namespace

allocation_info find_span(int device, const allocation_info &first, uintptr_t begin,
                          uintptr_t end) noexcept {
    if (first.holds(begin, end - begin)) {
        return first;
    }
    allocation_info all;
    if (first.id == 0 || first.shared != sharing::by_descriptor || end <= begin) {
        return all;
    }
    uintptr_t at = begin;
    for (unsigned pieces = 0; at < end; ++pieces) {
        const memory_info here = platform::instance().query(reinterpret_cast<const void *>(at));
        const allocation_info &piece = here.allocation;
        const auto start = reinterpret_cast<uintptr_t>(piece.base);
        if (pieces == most_pieces || here.kind != memory_kind::device || here.device != device ||
            piece.id == 0 || piece.shared != sharing::by_descriptor ||
            (pieces != 0 && start != at)) {
            return {};
        }
        if (pieces == 0) {
            all = piece;
        } else {
            all.size += piece.size;
            all.id = combine(all.id, piece.id);
        }
        at = start + piece.size;
    }
    return all;
}

bool reaches_end(const memory_info &first, uintptr_t begin, uintptr_t end) noexcept {
    return first.allocation.holds(begin, end - begin) ||
           are_alike(first, platform::instance().query(reinterpret_cast<const void *>(end - 1)));
}

}  // namespace cuda_nc::gpu
