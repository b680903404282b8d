// The primary context of a device, made at first use, and its being current for a while.
#pragma once

#include <cuda.h>

#include <atomic>
#include <mutex>

#include "ucs/base/status.hpp"
#include "ucs/exec/kernels/loaded_kernels.hpp"
#include "ucs/backend/cuda/driver.hpp"

namespace cuda_nc::gpu::cuda {

class primary_context {
  public:
    primary_context(const driver &calls, int ordinal) noexcept
        : calls_(calls), ordinal_(ordinal), kernels_(calls.launch), pipe_kernels_(calls.launch) {}

    // Makes the context and loads the kernels, which may synchronise the device, at the first call;
    // then costs a load. What failed once is not tried again, a lack of memory excepted. Succeeds
    // where there is no memory for kernels alone.
    ucs_status_t ready() noexcept;

    // False for ever once the context was destroyed, which an application does by cudaDeviceReset:
    // what was made in it is gone, although the next context may have its handle. Asks the driver,
    // where that can tell (CUDA 12).
    bool alive() noexcept;
    // That is known.
    bool gone() const noexcept { return gone_.load(std::memory_order_relaxed); }
    void lose() noexcept { gone_.store(true, std::memory_order_relaxed); }

    // Loads kernels for which there was no memory when the context was made; the context is
    // current. Then costs a load.
    ucs_status_t load_kernels() noexcept {
        return kernels_loaded_.load(std::memory_order_acquire) ? UCS_OK : load_again();
    }

    // Loads the kernels of pipes, once; the context is current.
    ucs_status_t load_pipes() noexcept;

    // UCS_OK while not yet made.
    ucs_status_t failure() const noexcept { return failure_.load(std::memory_order_relaxed); }

    // Null before ready() has succeeded.
    CUcontext get() const noexcept {
        return ready_.load(std::memory_order_acquire) ? context_ : nullptr;
    }
    const driver &calls() const noexcept { return calls_; }
    // After load_kernels(), and after load_pipes().
    const exec::loaded_kernels &kernels() const noexcept { return kernels_; }
    const exec::loaded_kernels &pipe_kernels() const noexcept { return pipe_kernels_; }
    int ordinal() const noexcept { return ordinal_; }

  private:
    ucs_status_t make() noexcept;
    bool find_id(unsigned long long *id_p) const noexcept;
    ucs_status_t load() noexcept;  // with mutex_ held
    ucs_status_t load_again() noexcept;

    const driver &calls_;
    const int ordinal_;
    std::mutex mutex_;
    std::atomic<bool> ready_{false};
    std::atomic<ucs_status_t> failure_{UCS_OK};
    std::atomic<bool> gone_{false};
    CUcontext context_ = nullptr;
    unsigned long long id_ = 0;  // of the context, among all that the process ever has; 0: unknown
    exec::loaded_kernels kernels_, pipe_kernels_;
    std::atomic<bool> kernels_loaded_{false};
    bool pipes_loaded_ = false;
};

// Makes a context current, and what was current before, or nothing, afterwards. Not by
// cudaSetDevice: restoring the "current" device of a thread without a context would make a context
// on it. Meanwhile the thread's calls do not disturb captures of the application.
class current_scope {
  public:
    current_scope(const driver &calls, CUcontext context) noexcept;
    ~current_scope();
    current_scope(const current_scope &) = delete;
    current_scope &operator=(const current_scope &) = delete;

    CUresult result() const noexcept { return result_; }  // not CUDA_SUCCESS: nothing was changed
    explicit operator bool() const noexcept { return result_ == CUDA_SUCCESS; }
    ucs_status_t status() const noexcept;

  private:
    const driver &calls_;
    CUresult result_;
    bool pushed_ = false;
    CUstreamCaptureMode capture_mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

}  // namespace cuda_nc::gpu::cuda
