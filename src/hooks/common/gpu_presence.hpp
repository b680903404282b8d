// Whether there is any GPU memory to think of, ours to serve or not: the question before every
// other, so it costs one load where there is none.
#pragma once

#include <atomic>

#include "ucs/base/compiler.hpp"
#include "ucs/gpu/device.hpp"

namespace cuda_nc::hooks {

// 0 once it is known that there is none: then there never will be one.
inline std::atomic<int> gpu_presence{1};

inline bool sees_gpu_memory() noexcept {
    if (CUDA_NC_LIKELY(gpu_presence.load(std::memory_order_relaxed) == 0)) {
        return false;
    }
    if (gpu::platform::instance().sees_gpu_memory()) {
        return true;
    }
    gpu_presence.store(0, std::memory_order_relaxed);
    return false;
}

}  // namespace cuda_nc::hooks
