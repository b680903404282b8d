#include "ucs/exec/kernels/instances/pipe.cuh"

namespace cuda_nc::exec {

const void *pull_short_list_kernel(unsigned word_log2) noexcept {
    switch (word_log2) {
        case 2:
            return reinterpret_cast<const void *>(pull_kernel<short_list_mover<4>>);
        case 3:
            return reinterpret_cast<const void *>(pull_kernel<short_list_mover<8>>);
        case 4:
            return reinterpret_cast<const void *>(pull_kernel<short_list_mover<16>>);
        default:
            return nullptr;
    }
}

}  // namespace cuda_nc::exec
