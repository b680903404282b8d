// The primary context of a device, made at first use, and a scope in which it is current.
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
        : calls_(calls), ordinal_(ordinal), kernels_(calls.launch) {}

    // Makes the context and loads the kernels at the first call, which may synchronise the device;
    // later calls cost a load. A failure is final, except for a lack of memory. Succeeds where only
    // the kernels lack memory.
    ucs_status_t ready() noexcept;

    // False once the context was destroyed, as cudaDeviceReset does: everything made in it is gone,
    // even if a new context has the same handle. Asks the driver (CUDA 12 and later can tell).
    bool alive() noexcept;
    // Whether alive() or note_primary() has found that out; does not ask the driver.
    bool gone() const noexcept { return gone_.load(std::memory_order_relaxed); }
    // `primary` is the device's primary context now, which may be another one.
    void note_primary(CUcontext primary) noexcept;
    // After that, where nothing made in it is left: ready() makes all anew.
    void begin_again() noexcept;

    // The failure of ready() that is final, or UCS_OK.
    ucs_status_t failure() const noexcept { return failure_.load(std::memory_order_relaxed); }

    // Null before ready() has succeeded.
    CUcontext get() const noexcept {
        return ready_.load(std::memory_order_acquire) ? context_.load(std::memory_order_relaxed)
                                                      : nullptr;
    }
    const driver &calls() const noexcept { return calls_; }
    exec::loaded_kernels &kernels() noexcept { return kernels_; }
    int ordinal() const noexcept { return ordinal_; }

  private:
    ucs_status_t make() noexcept;
    // Unless another one was made since: then what was found out is of no account.
    void lose(CUcontext context, unsigned long long id) noexcept;
    bool find_id(CUcontext context, unsigned long long *id_p) const noexcept;

    const driver &calls_;
    const int ordinal_;
    std::mutex mutex_;
    std::atomic<bool> ready_{false};
    std::atomic<ucs_status_t> failure_{UCS_OK};
    std::atomic<bool> gone_{false};
    std::atomic<CUcontext> context_{nullptr};
    std::atomic<unsigned long long> id_{0};  // of the context, unique in this process; 0: unknown
    exec::loaded_kernels kernels_;
};

// Makes a context current on this thread; the destructor restores the one before, or none. Not by
// cudaSetDevice, which would make a context on the device that it restores. In between, calls of
// this thread do not disturb stream captures of the application.
class current_scope {
  public:
    // A null `context`: it was lost a moment ago, and nothing is made current.
    current_scope(const driver &calls, CUcontext context) noexcept;
    ~current_scope();
    // Whether this thread is in one: what it allocates is ours then, not the program's.
    static bool surrounds_this_thread() noexcept;
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
