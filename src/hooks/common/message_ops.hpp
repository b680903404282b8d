// The operations that are registered with UCX in place of an MPI library's own. For each message
// they choose between us (ucp/dt/request_state.hpp) and the library's original operations.
#pragma once

#include <ucp/api/ucp.h>

namespace cuda_nc::hooks {

// Their context is a `const type_record *`.
extern const ucp_generic_dt_ops_t message_operations;

// Makes `operations` the originals: an MPI library registers one table with all its types. False
// where a different table was adopted before. Thread safe.
bool adopt_originals(const ucp_generic_dt_ops_t &operations);

}  // namespace cuda_nc::hooks
