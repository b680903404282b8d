#include "ucs/exec/host/host_kernels.hpp"

#include <atomic>
#include <string>

#include "ucs/base/settings.hpp"

namespace cuda_nc::exec {
namespace {

std::atomic<const host_kernels *> chosen{nullptr};

const host_kernels *choose() noexcept {
    const std::string &limit = config().host_simd;
    if (limit == "scalar") {
        return &scalar_kernels;
    }
#ifdef __x86_64__
    if (limit == "sse2") {
        return &sse2_kernels;
    }
    // Not checked: prefetchw, which in long mode does nothing where a processor does not know it.
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2");
    bool wide = limit != "avx2" && avx2 && __builtin_cpu_supports("avx512f") &&
                __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
    if (wide) {
        return &avx512_kernels;
    }
    return avx2 ? &avx2_kernels : &sse2_kernels;
#elif defined(__aarch64__)
    return &neon_kernels;
#else
    return &scalar_kernels;
#endif
}

}  // namespace

const host_kernels &current_kernels() noexcept {
    const host_kernels *known = chosen.load(std::memory_order_relaxed);
    if (CUDA_NC_UNLIKELY(known == nullptr)) {
        known = choose();
        chosen.store(known, std::memory_order_relaxed);
    }
    return *known;
}

void reload_kernels_for_test() noexcept {
    chosen.store(choose(), std::memory_order_relaxed);
}

}  // namespace cuda_nc::exec
