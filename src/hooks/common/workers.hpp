// Workers of UCP: what is learnt when one is made, and whose turn it is to progress it.
#pragma once

#include <cstdint>

#include "ucs/base/ucx_instance.hpp"

namespace cuda_nc::hooks {

// Redirects calls of ucp_worker_progress of that UCX to the one below. Called for each worker that
// several threads may use and that has puts and gets between GPUs: other programs, whose every wait
// is in such calls, do not come through a hook. Null: calls are not redirected.
using progress_redirection = void (*)(const ucx_instance &ucx) noexcept;
void set_progress_redirection(progress_redirection redirect) noexcept;

// Same contracts as UCP's functions of these names, which they call, of the UCX that `caller` uses:
// an address in the code that calls, or null where it is not known.
int8_t worker_create(void *context, const void *params, void **worker_p,
                     const void *caller) noexcept;
// Waits before the call while another thread has its turn (uct/cuda_nc/turns.hpp).
unsigned worker_progress(void *worker, const void *caller) noexcept;

}  // namespace cuda_nc::hooks
