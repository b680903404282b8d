// What the hooks tell themselves through the calling thread, because the MPI library runs in
// between and hands none of our parameters on.
#pragma once

#include "hooks/common/gpu_presence.hpp"
#include "ucs/base/compiler.hpp"

namespace cuda_nc::hooks {

// This thread is inside the MPI library's own start_pack or start_unpack. message_ops.cc sets it;
// open_mpi/convertor.cc reads it when Open MPI prepares a convertor there, which it must not track:
// we serve that message by our own operations already.
inline thread_local bool in_original_start = false;

// Costs one load where the process sees no GPU memory: nothing is tracked then.
class original_start_scope {
  public:
    original_start_scope() noexcept : active_(sees_gpu_memory()) {
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

}  // namespace cuda_nc::hooks
