// Endpoints that are made: on those with error handling UCX may abort sends
// (ucp/dt/followed_send.hpp).
//
// Same contract as UCP's function of this name, which it calls, of the UCX that the worker belongs
// to, or that `caller` uses where that is not known (ucp/dt/worker_homes.hpp): an address in the
// code that calls, or null.
#pragma once

#include <cstdint>

namespace cuda_nc::hooks {

int8_t ep_create(void *worker, const void *params, void **ep_p, const void *caller);

}  // namespace cuda_nc::hooks
