// The replacements of ucp_dt_create_generic and ucp_dt_destroy.
#pragma once

#include <ucp/api/ucp.h>

#include <cstdint>

#include "ucp/dt/datatype.hpp"

namespace cuda_nc::hooks {

// Same contract as UCX's. Datatypes of an MPI library that we serve are registered with
// message_operations instead of the caller's. `caller`: an address in the code that calls, or null.
// A datatype belongs to the UCX that the object with its operations uses, or else that the caller
// uses; the same UCX destroys it.
int8_t create_generic(const void *operations, void *context, uint64_t *datatype_p,
                      const void *caller);
void destroy_datatype(uint64_t datatype, const void *caller);

// False: `datatype` is not registered with message_operations, or its layout is not known. Else
// *bytes_p is the size and place of `count` elements.
bool find_bytes(uint64_t datatype, uint64_t count, dt::message_bytes *bytes_p) noexcept;

// The operations with which `datatype` is registered; null: not by us.
const ucp_generic_dt_ops_t *find_operations(uint64_t datatype) noexcept;

}  // namespace cuda_nc::hooks
