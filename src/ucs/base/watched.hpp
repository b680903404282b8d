// Whether somebody watches this process's kernels.
#pragma once

namespace cuda_nc {

// A debugger follows this process, or its environment injects a tool into CUDA (profilers and
// compute-sanitizer do so). Asked at the first call.
bool is_watched() noexcept;

}  // namespace cuda_nc
