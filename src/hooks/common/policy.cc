#include "hooks/common/policy.hpp"

#include <atomic>
#include <cstring>
#include <string>

#include "ucs/base/loaded_objects.hpp"
#include "ucs/base/log.hpp"
#include "ucs/base/settings.hpp"

namespace cuda_nc::hooks {
namespace {

enum class host_policy { automatic, always, never };

host_policy configured_host_policy() noexcept {
    const std::string &text = config().host_engine;
    return text == "always"  ? host_policy::always
           : text == "never" ? host_policy::never
                             : host_policy::automatic;
}

// ", " and the reason why no GPU is used; empty where GPUs are used.
std::string why_unserved() noexcept try {
    const gpu::platform &platform = gpu::platform::instance();
    return platform.num_devices() == 0 ? ", " + platform.why() : "";
} catch (...) {
    return "";
}

}  // namespace

choice choose_for_host(const layout &what, const mpi_library &library) noexcept {
    if (what.packed_size() == 0) {
        return {false, "no bytes"};
    }
    switch (configured_host_policy()) {
        case host_policy::always:
            return {true, "HOST_ENGINE=always"};
        case host_policy::never:
            return {false, "HOST_ENGINE=never"};
        case host_policy::automatic:
            break;
    }
    if (const char *fault = library.packing_fault()) {
        return {true, fault};
    }
    // Measured against Open MPI 4.1.4: our start costs as much as packing 16 small blocks, and from
    // 512 bytes a block on the memory bounds both.
    constexpr uint64_t few_blocks = 16;
    constexpr uint64_t large_block = 512;  // bytes
    uint64_t blocks = what.total_blocks();
    if (blocks < few_blocks) {
        return {false, "few blocks in host memory"};
    }
    if (what.packed_size() / blocks >= large_block) {
        return {false, "large blocks in host memory"};
    }
    return {true, "host memory"};
}

choice choose_path(const gpu::memory_info &info, const choice &on_host) noexcept {
    switch (info.kind) {
        case gpu::memory_kind::device:
            check_gpu_detection();
            return {true, "GPU memory"};
        case gpu::memory_kind::managed:
            return {true, "managed memory"};
        case gpu::memory_kind::pinned:
        case gpu::memory_kind::host:
            return on_host;
        case gpu::memory_kind::unknown:
            break;
    }
    nc_warn_once(
        "a message lies in GPU memory of an unknown kind (device %d%s): this and all such messages "
        "are left to the MPI library's own operations",
        info.device, why_unserved().c_str());
    return {false, "GPU memory of an unknown kind"};
}

const char *missing_for_detection() noexcept {
    if (!is_library_loaded("libuct_cuda")) {  // our own libuct_cudanc.so is another
        return "libuct_cuda.so";
    }
    return is_loaded("libucm_cuda") ? nullptr : "libucm_cuda.so";
}

void check_gpu_detection() noexcept {
    static std::atomic<bool> checked{false};
    if (checked.load(std::memory_order_relaxed) || checked.exchange(true)) {
        return;
    }
    if (std::strcmp(gpu::platform::instance().name(), "cuda") != 0) {
        return;  // UCX knows nothing of simulated memory
    }
    const char *missing = missing_for_detection();
    if (missing != nullptr) {
        nc_warn(
            "this job sends GPU memory, but its UCX cannot recognise such memory (%s is not "
            "loaded): messages of contiguous datatypes may crash. Use a UCX built with CUDA, "
            "and check with `ldd` that the libraries %s needs are found",
            missing, missing);
    }
}

}  // namespace cuda_nc::hooks
