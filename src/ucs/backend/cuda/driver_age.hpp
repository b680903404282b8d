// Whether the driver is young enough for this build. A driver runs what was built with CUDA of its
// own major release, and of earlier ones. A later one would not even load the kernels.
#pragma once

#include <algorithm>
#include <string>

namespace cuda_nc::gpu::cuda {

constexpr int first_with_launch = 11080;  // cuLaunchKernelEx

// As cuDriverGetVersion() counts.
inline std::string version_text(int version) {
    return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

// Why a driver for CUDA `served` cannot run a build with CUDA `built`, and what to do; empty: it
// can. `launches`: it has the functions that we launch with.
inline std::string driver_objection(int served, int built, bool launches) {
    const int major = built / 1000;
    if (served / 1000 >= major && launches) {
        return {};
    }
    std::string text = "the driver serves CUDA " + version_text(served) + ", this build needs " +
                       version_text(std::max(major * 1000, first_with_launch));
    if (major >= 13) {
        text += " (driver 580 or later): please update the driver";
        text += served / 1000 == 12 ? ", or build for it by CUDA_NC_CUDA=12 contrib/setup.sh" : "";
    } else {
        text += " (driver 525 or later): please update the driver";
    }
    return text;
}

}  // namespace cuda_nc::gpu::cuda
