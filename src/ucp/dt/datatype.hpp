// UCP generic datatypes made from layouts: for the C API and for programs without an MPI.
#pragma once

#include <ucp/api/ucp.h>

#include "ucs/layout/layout.hpp"

namespace cuda_nc::dt {

// A UCP datatype whose element is `element` at `extent` bytes; UCP's count repeats it. Uses only
// ucp_dt_create_generic of the UCX that the process has loaded.
// Failures: UCS_ERR_INVALID_PARAM, UCS_ERR_NO_MEMORY, UCS_ERR_UNSUPPORTED (no UCX loaded).
ucs_status_t create(layout_ref element, int64_t extent, ucp_datatype_t *datatype_p) noexcept;

// Messages in flight keep what they need.
void destroy(ucp_datatype_t datatype) noexcept;

struct message_bytes {
    uint64_t packed;  // how many
    int64_t lowest;  // displacement of one that lies in the buffer; it need not hold displacement 0
};

// False: it was not made here. What `count` elements have.
bool find_bytes(ucp_datatype_t datatype, uint64_t count, message_bytes *bytes_p) noexcept;

}  // namespace cuda_nc::dt
