// UCP generic datatypes made from layouts: for the C API and for programs without an MPI.
#pragma once

#include <ucp/api/ucp.h>

#include "ucs/base/ucx_instance.hpp"
#include "ucs/layout/layout.hpp"

namespace cuda_nc::dt {

// A UCP datatype whose element is `element` at `extent` bytes; UCP's count repeats it. Uses only
// ucp_dt_create_generic, of the UCX that `caller` uses: an address in its code. Null, or where that
// does not tell: of the only UCX of the process. A receive of elements in which a byte is covered
// twice is refused: UCP ends it with UCS_ERR_MESSAGE_TRUNCATED.
// Failures: UCS_ERR_INVALID_PARAM, UCS_ERR_NO_MEMORY, UCS_ERR_UNSUPPORTED (no UCX is loaded, or
// several, and nothing tells which one the caller uses).
ucs_status_t create(layout_ref element, int64_t extent, ucp_datatype_t *datatype_p,
                    const void *caller = nullptr) noexcept;

// The same in the UCX `ucx`; nothing may be null. Not `checks_targets`: such a receive is served,
// and one of the bytes that go to one place is there in the end.
ucs_status_t create_in(const ucx_instance &ucx, layout_ref element, int64_t extent,
                       ucp_datatype_t *datatype_p, bool checks_targets = false) noexcept;

// Messages in flight keep what they need. Thread safe, as the other functions.
void destroy(ucp_datatype_t datatype) noexcept;

// The size of a message, and a place in its buffer.
struct message_bytes {
    uint64_t packed;  // bytes
    // Displacement of the lowest byte of an element. Displacement 0 need not be in the buffer.
    int64_t lowest;
};

// Size and place of `count` elements. False: `datatype` was not made here.
bool find_bytes(ucp_datatype_t datatype, uint64_t count, message_bytes *bytes_p) noexcept;

// The operations with which `datatype` is registered; null: it was not made here.
const ucp_generic_dt_ops_t *find_operations(ucp_datatype_t datatype) noexcept;

}  // namespace cuda_nc::dt
