// What the transport knows of UCP's own messages and requests: the same in every release that is
// served. test/uct shows whether it holds.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cuda_nc::uct::wire {

// UCP's active message ids.
constexpr uint8_t rndv_data_id = 12;
constexpr uint8_t rts_id = 9, ats_id = 10, rtr_id = 11, atp_id = 16;
// RTS, or an answer to one: something of ours may go with it, ahead of it, or ends with it.
constexpr bool is_announced(uint8_t id) noexcept {
    return id >= rts_id && id <= rtr_id;
}

// The beginning of an RTS; what follows does not count here.
struct rts_head {
    uint64_t header;
    uint64_t endpoint;  // the receiver's
    uint64_t request;   // the sender's
    uint64_t address;   // of contiguous memory; else 0
    uint64_t size;      // bytes
};

// An RTR. Where `address` is not 0 a key follows.
struct rtr_head {
    uint64_t send_request, request;  // the sender's, the receiver's
    uint64_t address;                // of contiguous memory; else 0
    uint64_t size, offset;           // bytes
};

// ATS ends the sender's request, ATP the receiver's.
struct __attribute__((packed)) acknowledgement {
    uint64_t request;
    int8_t status;
    uint64_t size;  // bytes that have been moved
};
static_assert(sizeof(acknowledgement) == 17);
// Bytes of one that says that the request has failed: before 1.22 UCP takes no size for the whole.
constexpr size_t failure_length = offsetof(acknowledgement, size);

// UCP's header of rendezvous data.
struct rndv_header {
    uint64_t request;  // the receiver's
    uint64_t offset;   // packed bytes
};

// Bytes from the start of a request to the state that it keeps of a generic datatype.
constexpr size_t request_state_offset = 136;
// To the endpoint of a request that sends an RTR for instance, and what an endpoint has: first its
// worker, and soon the number of its configuration.
constexpr size_t request_endpoint_offset = 24, endpoint_length = 64;

}  // namespace cuda_nc::uct::wire
