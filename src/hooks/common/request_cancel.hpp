// Ends the states of receives that UCP cancels. No UCX calls finish() for them: the state, its
// number in GPU memory and the MPI library's own state would leak.
#pragma once

#include <ucp/api/ucp.h>

#include "ucs/base/ucx_instance.hpp"

namespace cuda_nc::hooks {

// Same contract as ucp_request_cancel, which it calls. Then finishes the state of the receive, if
// the receive was cancelled by that and all proofs agree:
//   - UCP's request is of a generic datatype, and keeps, at the place of this release, one that was
//     registered with our operations: so the word at the place of the state is a state of ours. (A
//     receive into contiguous memory leaves both words as an earlier receive set them.)
//   - the request was not complete before, and has the status UCS_ERR_CANCELED and the same words
//     afterwards: a receive that has met its message has not, because UCP does not cancel it;
//   - nobody has finished the state meanwhile.
// In doubt nothing is done, and the state leaks as it does without us. `caller`: an address in the
// code that calls, or null; it tells which UCX of the process is meant. A completion callback may
// throw through it: then the state leaks, too.
void request_cancel(void *worker, void *request, const void *caller);

// Learns from a context how large UCP's requests are: the API hands out the address behind a
// request.
void learn_request_size(const ucx_instance &ucx, ucp_context_h context);

}  // namespace cuda_nc::hooks
