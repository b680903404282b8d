// Sends of derived datatypes: makes UCP choose well between eager and rendezvous for those that the
// transport cuda_nc can move from GPU to GPU (uct/cuda_nc/selection.hpp), and gives it a datatype
// of ours in place of a list of buffers in GPU memory.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cuda_nc::hooks {

// Same contracts as UCP's functions of these names, which they call, of the UCX that `caller` uses:
// an address in the code that calls, or null where it is not known.
void *tag_send_nbx(void *ep, const void *buffer, size_t count, uint64_t tag, const void *param,
                   const void *caller) noexcept;
void *tag_send_sync_nbx(void *ep, const void *buffer, size_t count, uint64_t tag, const void *param,
                        const void *caller) noexcept;
void *am_send_nbx(void *ep, unsigned id, const void *header, size_t header_length,
                  const void *buffer, size_t count, const void *param, const void *caller) noexcept;

}  // namespace cuda_nc::hooks
