// What the hooks tell themselves through the calling thread, because the MPI library runs in
// between and hands none of our parameters on.
#pragma once

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
// not. Calls of MPI's do not nest. hooks/mpich/local_calls.cc makes it; sends.cc asks.
class buffered_send_scope {
  public:
    explicit buffered_send_scope(bool is_send) noexcept : active_(is_send) {
        if (active_) {
            current_ = true;
        }
    }
    ~buffered_send_scope() {
        if (active_) {
            current_ = false;
        }
    }
    buffered_send_scope(const buffered_send_scope &) = delete;
    buffered_send_scope &operator=(const buffered_send_scope &) = delete;

    static bool is_current() noexcept { return current_; }

  private:
    const bool active_;
    static inline thread_local bool current_ = false;
};

}  // namespace cuda_nc::hooks
