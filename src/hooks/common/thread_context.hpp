// What the hooks tell themselves through the calling thread, because the MPI library runs in
// between and hands none of our parameters on.
#pragma once

#include <atomic>

#include "ucs/base/compiler.hpp"

namespace cuda_nc::hooks {

// This thread is inside the MPI library's own start_pack or start_unpack. message_ops.cc sets it;
// open_mpi/convertor.cc reads it when Open MPI prepares a convertor there, which it must not track:
// we serve that message by our own operations already.
inline thread_local bool in_original_start = false;

// `sees_gpu`: what sees_gpu_memory() says; nothing is tracked where it is false.
class original_start_scope {
  public:
    explicit original_start_scope(bool sees_gpu) noexcept : active_(sees_gpu) {
        if (CUDA_NC_UNLIKELY(active_)) {
            in_original_start = true;
        }
    }
    ~original_start_scope() {
        if (CUDA_NC_UNLIKELY(active_)) {
            in_original_start = false;
        }
    }
    original_start_scope(const original_start_scope &) = delete;
    original_start_scope &operator=(const original_start_scope &) = delete;

  private:
    bool active_;
};

// There while this thread is inside MPI_Send of an MPI that does not tell UCX so, as MPICH does
// not. hooks/mpich/local_calls.cc makes it; sends.cc asks.
class buffered_send_scope {
  public:
    explicit buffered_send_scope(bool is_send) noexcept
        : is_send_(is_send), before_(is_send && current_) {
        if (is_send_) {
            used_.store(true, std::memory_order_relaxed);
            current_ = true;
        }
    }
    ~buffered_send_scope() {
        if (is_send_) {
            current_ = before_;  // an error handler may send, too
        }
    }
    buffered_send_scope(const buffered_send_scope &) = delete;
    buffered_send_scope &operator=(const buffered_send_scope &) = delete;

    static bool is_current() noexcept { return used_.load(std::memory_order_relaxed) && current_; }

  private:
    const bool is_send_, before_;
    static inline std::atomic<bool> used_{false};  // by any thread: others need not ask theirs
    static inline thread_local bool current_ = false;
};

}  // namespace cuda_nc::hooks
