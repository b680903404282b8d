// Sends of derived datatypes, so that UCP chooses between eager and rendezvous for them as is best
// where the transport cuda_nc moves them from GPU to GPU (uct/cuda_nc/selection.hpp).
#pragma once

#include <cstddef>
#include <cstdint>

namespace cuda_nc::hooks {

// In place of ucp_tag_send_nbx.
void *tag_send_nbx(void *ep, const void *buffer, size_t count, uint64_t tag,
                   const void *param) noexcept;

}  // namespace cuda_nc::hooks
