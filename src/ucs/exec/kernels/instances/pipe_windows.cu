#include "ucs/exec/kernels/instances/pipe.cuh"

namespace cuda_nc::exec {

const void *pipe_windows_kernel(locator_kind kind) noexcept {
    auto kernel_of = [](auto locator) {
        return reinterpret_cast<const void *>(
            pipe_kernel<windows_mover<typename decltype(locator)::type>>);
    };
    return with_window_locator(kind, kernel_of);
}

}  // namespace cuda_nc::exec
