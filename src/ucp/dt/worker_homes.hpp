// Which UCX a worker belongs to, where a process has several (ucs/base/ucx_instance.hpp). A
// caller's address does not always tell: a function that ends with a call of UCP may leave by a
// jump, and then the call seems to come from whoever called that function. Workers and endpoints do
// tell.
#pragma once

#include <ucp/api/ucp.h>

#include "ucs/base/ucx_instance.hpp"

namespace cuda_nc::dt {

// `worker` has been made by `ucx`: from now on, also where another one had this address. Thread
// safe. The workers of 512 calls and more may drive each other out.
void keep_home(ucp_worker_h worker, const ucx_instance &ucx) noexcept;

// `worker` is what a call of UCP is given. By the handle where its home is known, else
// ucx_of(caller).
caller_ucx ucx_of_worker(ucp_worker_h worker, const void *caller) noexcept;

// The same of an endpoint's worker. UCP's endpoints begin with it, in every release (1.13 to 1.23).
caller_ucx ucx_of_endpoint(ucp_ep_h ep, const void *caller) noexcept;

}  // namespace cuda_nc::dt
