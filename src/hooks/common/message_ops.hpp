// The operations that are registered with UCX in place of Open MPI's own: message by message they
// choose between our engine and the original operations.
#pragma once

#include <ucp/api/ucp.h>

namespace cuda_nc::hooks {

// Their context is a `const type_record *`.
extern const ucp_generic_dt_ops_t message_operations;

// Makes `operations` the originals; Open MPI has one table for all its types. False where another
// table is in use already.
bool adopt_originals(const ucp_generic_dt_ops_t &operations);

}  // namespace cuda_nc::hooks
