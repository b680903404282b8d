// The replacements of Open MPI's convertor calls, for the operations that do not go through UCX's
// datatypes: MPI_Pack, MPI_Bsend, the local part of collectives.
//
// Where the process has no GPU, or a convertor's buffer lies in host memory, the original alone
// runs. Else the convertor is remembered when it is prepared, and moved by our engine.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>

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

// While one lives on this thread, convertors are prepared without being remembered.
class untracked_scope {
  public:
    untracked_scope() noexcept;
    ~untracked_scope();
    untracked_scope(const untracked_scope &) = delete;
    untracked_scope &operator=(const untracked_scope &) = delete;

  private:
    bool active_;
};

}  // namespace cuda_nc::hooks
