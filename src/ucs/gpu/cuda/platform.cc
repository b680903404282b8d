// The CUDA backend.
#include "ucs/gpu/backends.hpp"

namespace cuda_nc::gpu {

std::unique_ptr<platform> make_cuda_platform(std::string *why_p) noexcept {
    *why_p = "the CUDA backend is not built yet";
    return nullptr;
}

}  // namespace cuda_nc::gpu
