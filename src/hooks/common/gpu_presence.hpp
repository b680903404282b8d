// Whether this process can have GPU memory at all, served by us or not. Every hook asks this first,
// so the answer "no" costs one load.
#pragma once

#include <atomic>

#include "ucs/base/compiler.hpp"
#include "ucs/gpu/device.hpp"

namespace cuda_nc::hooks {

// 0: there is no GPU memory and never will be; 1: ask the platform.
inline std::atomic<int> gpu_presence{1};

// True once sees_gpu_memory() has found that there is none: a load, and no question.
inline bool never_sees_gpu_memory() noexcept {
    return gpu_presence.load(std::memory_order_relaxed) == 0;
}

inline bool sees_gpu_memory() noexcept {
    if (CUDA_NC_LIKELY(never_sees_gpu_memory())) {
        return false;
    }
    if (gpu::platform::instance().sees_gpu_memory()) {
        return true;
    }
    gpu_presence.store(0, std::memory_order_relaxed);
    return false;
}

}  // namespace cuda_nc::hooks
