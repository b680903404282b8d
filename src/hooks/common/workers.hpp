// Workers of UCP: what is learnt when one is made, and whose turn it is to progress it.
#pragma once

#include <cstdint>

namespace cuda_nc::hooks {

// Redirects the calls of ucp_worker_progress in the object around `caller`, and in no other one, to
// the function below. Called where that object makes a worker that several threads may use and that
// has puts and gets between GPUs: other programs, whose every wait is in such calls, do not come
// through a hook. Null: calls are not redirected.
using progress_redirection = void (*)(const void *caller) noexcept;
void set_progress_redirection(progress_redirection redirect) noexcept;

// Same contract as ucp_worker_create, which it calls, of the UCX that `caller` uses: an address in
// the code that calls, or null where it is not known. A thread may be cancelled in it.
int8_t worker_create(void *context, const void *params, void **worker_p, const void *caller);

// Same contract as ucp_worker_progress, which it calls: of the one UCX for whose users calls are
// redirected, the first one that has such a worker. Waits before the call while another thread has
// its turn (uct/cuda_nc/turns.hpp). Not noexcept: a thread may be cancelled in UCX's call, and a
// program's callback may throw through it.
unsigned worker_progress(void *worker);

}  // namespace cuda_nc::hooks
