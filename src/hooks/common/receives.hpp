// Receives into lists of buffers in GPU memory: UCP is given a datatype of ours in place of the
// list.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cuda_nc::hooks {

// Same contracts as UCP's functions of these names, which they call, of the UCX that `caller` uses:
// an address in the code that calls, or null where it is not known.
void *tag_recv_nbx(void *worker, void *buffer, size_t count, uint64_t tag, uint64_t tag_mask,
                   const void *param, const void *caller) noexcept;
void *tag_msg_recv_nbx(void *worker, void *buffer, size_t count, void *message, const void *param,
                       const void *caller) noexcept;
void *am_recv_data_nbx(void *worker, void *data, void *buffer, size_t count, const void *param,
                       const void *caller) noexcept;

}  // namespace cuda_nc::hooks
