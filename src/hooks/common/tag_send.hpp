// Makes UCP choose well between eager and rendezvous for derived datatypes that the transport
// cuda_nc can move from GPU to GPU (uct/cuda_nc/selection.hpp).
#pragma once

#include <cstddef>
#include <cstdint>

namespace cuda_nc::hooks {

// Same contract as ucp_tag_send_nbx, which it calls, of the UCX that `caller` uses: an address in
// the code that calls, or null where it is not known.
void *tag_send_nbx(void *ep, const void *buffer, size_t count, uint64_t tag, const void *param,
                   const void *caller) noexcept;

}  // namespace cuda_nc::hooks
