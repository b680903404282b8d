// Whether there is any GPU to think of: the question before every other, so it costs one load.
#pragma once

#include <atomic>

#include "ucs/base/compiler.hpp"
#include "ucs/gpu/device.hpp"

namespace cuda_nc::hooks {

// 0 once it is known that there is none: then there never will be one.
inline std::atomic<int> gpu_presence{1};

inline bool has_gpu() noexcept {
    if (CUDA_NC_LIKELY(gpu_presence.load(std::memory_order_relaxed) == 0)) {
        return false;
    }
    if (gpu::platform::instance().num_devices() != 0) {
        return true;
    }
    gpu_presence.store(0, std::memory_order_relaxed);
    return false;
}

}  // namespace cuda_nc::hooks
