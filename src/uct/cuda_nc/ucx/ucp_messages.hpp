// What the transport knows of UCP's own messages and requests: the same in every release that is
// served. test/uct shows whether it holds.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cuda_nc::uct::wire {

// UCP's active message ids.
constexpr uint8_t rndv_data_id = 12;
constexpr uint8_t rts_id = 9, rtr_id = 11;

// UCP's header of rendezvous data.
struct rndv_header {
    uint64_t request;  // the receiver's
    uint64_t offset;   // packed bytes
};

// Bytes from the start of a request to the state that it keeps of a generic datatype.
constexpr size_t request_state_offset = 136;

}  // namespace cuda_nc::uct::wire
