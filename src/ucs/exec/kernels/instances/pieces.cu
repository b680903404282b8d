#include "ucs/exec/kernels/instances/kernels.cuh"

namespace cuda_nc::exec {

const void *pieces_kernel(locator_kind kind) noexcept {
    return with_uniform_locator(kind, [](auto locator) {
        return reinterpret_cast<const void *>(move_pieces_kernel<typename decltype(locator)::type>);
    });
}

}  // namespace cuda_nc::exec
