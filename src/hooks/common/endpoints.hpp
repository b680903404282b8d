// Endpoints that are made and closed: what UCX leaves of the sends that a forced close aborts is
// finished (ucp/dt/endpoint_sends.hpp).
//
// Same contracts as UCP's functions of these names, which they call, of the UCX that the worker or
// the endpoint belongs to, or that `caller` uses where that is not known (ucp/dt/worker_homes.hpp):
// an address in the code that calls, or null.
#pragma once

#include <cstdint>

namespace cuda_nc::hooks {

int8_t ep_create(void *worker, const void *params, void **ep_p, const void *caller);
void *ep_close_nbx(void *ep, const void *param, const void *caller);
void *ep_close_nb(void *ep, unsigned mode, const void *caller);

}  // namespace cuda_nc::hooks
