#include "ucs/gpu/presence.hpp"

#include <unistd.h>

#include <cctype>

#include "ucs/base/settings.hpp"

namespace cuda_nc::gpu {
namespace {

#ifdef HAVE_CUDA
constexpr bool built_with_cuda = true;
#else
constexpr bool built_with_cuda = false;
#endif

bool starts_with(const std::string &text, const char *begin) {
    return text.rfind(begin, 0) == 0;
}

// CUDA takes the items before the first that names no GPU.
bool shows_some(const std::string &visible) {
    return !visible.empty() && (std::isdigit(static_cast<unsigned char>(visible[0])) != 0 ||
                                starts_with(visible, "GPU-") || starts_with(visible, "MIG-"));
}

}  // namespace

presence look_for_gpus(const std::string &root) {
    const settings &all = config();
    if (all.gpu == "sim") {
        return {true, "UCX_CUDA_NC_GPU=sim simulates GPUs"};
    }
    if (all.gpu == "none") {
        return {false, "UCX_CUDA_NC_GPU=none"};
    }
    if (!built_with_cuda) {
        return {false, "this ucx-cuda-nc was built without CUDA"};
    }
    if (all.visible_gpus && !shows_some(*all.visible_gpus)) {
        return {false, "CUDA_VISIBLE_DEVICES=" + *all.visible_gpus + " hides all GPUs"};
    }
    // Of the driver; of its kernel module, before the first use makes the former; of WSL.
    for (const char *path : {"/dev/nvidiactl", "/proc/driver/nvidia", "/dev/dxg"}) {
        if (access((root + path).c_str(), F_OK) == 0) {
            return {true, std::string(path) + " tells of an NVIDIA driver"};
        }
    }
    return {false, "there is no NVIDIA driver"};
}

}  // namespace cuda_nc::gpu
