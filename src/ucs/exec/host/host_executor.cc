#include "ucs/exec/host/host_executor.hpp"

#include "ucs/exec/host/host_kernels.hpp"
#include "ucs/exec/host/walk.hpp"

namespace cuda_nc::exec {
namespace {

address to_address(const void *pointer) {
    return reinterpret_cast<address>(pointer);
}

}  // namespace

void host_pack(const layout_view &source, const void *base, uint64_t packed_offset, void *packed,
               uint64_t length) noexcept {
    if (length != 0) {
        walk<way::pack>(source, to_address(base), 0, packed_offset)
            .move(to_address(packed), length);
    }
}

void host_unpack(const layout_view &target, void *base, uint64_t packed_offset, const void *packed,
                 uint64_t length) noexcept {
    if (length != 0) {
        walk<way::unpack>(target, to_address(base), to_address(base), packed_offset)
            .move(to_address(packed), length);
    }
}

void host_copy(const layout_view &both, const void *source_base, void *target_base,
               uint64_t packed_offset, uint64_t length) noexcept {
    if (length != 0) {
        walk<way::copy>(both, to_address(source_base), to_address(target_base), packed_offset)
            .move(0, length);
    }
}

const char *host_simd_name() noexcept {
    return current_kernels().name;
}

}  // namespace cuda_nc::exec
