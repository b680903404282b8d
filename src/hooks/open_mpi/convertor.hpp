// The replacements of Open MPI's convertor calls, for the operations that do not go through UCX's
// datatypes: MPI_Pack, MPI_Bsend, the local part of collectives.
//
// A convertor whose buffer lies in GPU memory is remembered when it is prepared, and moved by our
// engine. In host memory the original runs, except under an Open MPI that packs wrongly.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>

#include "hooks/common/gpu_presence.hpp"

namespace cuda_nc::hooks {

int32_t prepare_for_send(void *convertor, const void *datatype, size_t count,
                         const void *buffer) noexcept;
int32_t prepare_for_recv(void *convertor, const void *datatype, size_t count,
                         const void *buffer) noexcept;
int32_t convertor_pack(void *convertor, iovec *parts, uint32_t *num_parts_p,
                       size_t *length_p) noexcept;
int32_t convertor_unpack(void *convertor, iovec *parts, uint32_t *num_parts_p,
                         size_t *length_p) noexcept;
int32_t copy_same(const void *datatype, int32_t count, char *destination, char *source) noexcept;

// Convertors that this thread prepares are not remembered while `quiet`.
void set_quiet(bool quiet) noexcept;

class untracked_scope {
  public:
    untracked_scope() noexcept : active_(sees_gpu_memory()) {
        if (CUDA_NC_UNLIKELY(active_)) {
            set_quiet(true);
        }
    }
    ~untracked_scope() {
        if (CUDA_NC_UNLIKELY(active_)) {
            set_quiet(false);
        }
    }
    untracked_scope(const untracked_scope &) = delete;
    untracked_scope &operator=(const untracked_scope &) = delete;

  private:
    bool active_;
};

}  // namespace cuda_nc::hooks
