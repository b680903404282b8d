// The replacements of ucp_dt_create_generic and ucp_dt_destroy.
#pragma once

#include <cstdint>

#include "ucp/dt/datatype.hpp"

namespace cuda_nc::hooks {

// Same contract as UCX's; the registered operations choose, message by message, between our engine
// and the caller's own.
int8_t create_generic(const void *operations, void *context, uint64_t *datatype_p) noexcept;
void destroy_datatype(uint64_t datatype) noexcept;

// Whether `datatype` is served by us; then *bytes_p is what `count` elements have.
bool find_bytes(uint64_t datatype, uint64_t count, dt::message_bytes *bytes_p) noexcept;

}  // namespace cuda_nc::hooks
