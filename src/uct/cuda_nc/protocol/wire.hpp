// What two transports say to each other. Machines with GPUs that are served have one byte order,
// and another one would show in the address header.
//
// Offers and the end of a message travel in place of UCP's rendezvous data, under its id, so that
// one call of UCP is one message of the carrier. All else goes under an id that UCP leaves free.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "ucs/gpu/device.hpp"
#include "ucs/layout/layout_view.hpp"
#include "uct/cuda_nc/memory/process_id.hpp"

namespace cuda_nc::uct::wire {

constexpr uint8_t rndv_data_id = 12;  // UCP's, in every release that is served
constexpr uint8_t rts_id = 9, rtr_id = 11;
constexpr uint8_t control_id = 31;

// UCP's header of rendezvous data. An offset never has the highest bit: it marks our messages.
struct rndv_header {
    uint64_t request;
    uint64_t offset;
};

constexpr uint64_t mark = uint64_t(1) << 63;

// Whether a message under UCP's id is ours; it lies anywhere.
inline bool is_marked(const void *data, size_t length) noexcept {
    rndv_header header;
    if (length < sizeof(header)) {
        return false;
    }
    std::memcpy(&header, data, sizeof(header));
    return (header.offset & mark) != 0;
}

enum class data_kind : uint64_t {
    nothing,  // sent where UCP may not be refused any more
    offer,    // then a pipe_offer and UCP's own message with the first bytes, or with none
    rest      // then UCP's header alone
};

struct data_prefix {
    uint64_t unused;
    uint64_t mark_and_kind;
    uint64_t message;   // offer: the sender's; rest: the receiver's
    uint64_t identity;  // the sender's interface
    uint64_t length;    // offer: of the whole message; rest: of all but the first bytes
};

// What a sender brings to a pipe.
struct pipe_offer {
    uint32_t channels;             // at most; 0: no pipe
    uint32_t flags;                // host_slots
    char gpu[16];                  // where it is plugged in, as text
    process_id process;            // the sender
    uint64_t sequence;             // the least that will do
    uint64_t credits;              // bytes from the start of the allocation
    gpu::ipc_handle memory;        // of the credits
    uint64_t hash_low, hash_high;  // of the layout; both 0: not said
};

// Where a sender's bytes lie, for a receiver that pulls them itself.
struct source_terms {
    uint64_t allocation;     // allocation_info::id; 0: they are not to be pulled
    uint64_t address;        // of the allocation, in the sender's process
    int64_t displacement_0;  // bytes from there; it may lie outside
    gpu::ipc_handle memory;
    uint32_t is_list;       // of blocks: the rest does not count
    uint32_t num_dims;      // from here on as in layout_view
    uint64_t block_length;  // bytes
    int64_t first_displacement;
    struct {
        uint64_t count;
        int64_t stride;
    } dims[max_dims];
};

struct early_terms {
    pipe_offer offer;
    source_terms source;
};

// And what the receiver decides.
struct pipe_terms {
    uint32_t channels, chunk_size, depth;
    uint32_t reserved;
    uint64_t sequence;  // of the first segment
    uint64_t segment;   // bytes, at most
    uint64_t flags;     // bytes from the start of their allocation
    gpu::ipc_handle flags_memory;
};

// What a receiver on another host lends: slots one behind the other in its GPU memory, to which the
// sender's carrier has the key.
struct put_terms {
    uint64_t address;  // of the first, in the receiver's process
    uint32_t key_length;
    uint32_t reserved;
    char key[64];  // the first bytes of it
};

enum class control_kind : uint8_t {
    accept,    // to the sender: here are slots
    decline,   // to the sender: by host memory, please
    data,      // to the receiver: a slot is full
    credit,    // to the sender: a slot is empty
    cancel,    // to the receiver: no GPU of the sender writes any more
    stop,      // to the sender: write no more and say cancel
    pipe,      // to the sender, in place of accept: here is a pipe
    awake,     // a kernel of the author's waits in the pipe; offset: its segment
    ended,     // to the sender, after cancel: no GPU of the receiver writes any more
    early,     // to the receiver, before UCP's RTS: an offer, answered before UCP's RTR
    withdraw,  // to the receiver: the early offer is void
    pull,      // to the sender, in place of accept: the receiver's GPU takes the bytes itself
    pulled,    // to the sender: it has
    lend       // to the sender, in place of accept: here are slots for its carrier to put into
};
constexpr uint8_t num_control_kinds = 14;

struct control {
    uint8_t version;
    control_kind kind;
    uint16_t slot;      // accept, lend: how many
    uint32_t flags;     // all answers: known_receivers, unknown_receivers; accept: host_slots;
                        // pipe: memory_order; decline: never
    uint64_t to;        // the addressee's message
    uint64_t from;      // the author's message
    uint64_t identity;  // the author's interface
    uint64_t offset;    // data: of the packed bytes; accept, pipe: of the memory in its allocation;
                        // early, withdraw: UCP's number of the send
    uint64_t length;    // data: bytes; accept, lend: bytes of a slot; early: of the whole message
    // What follows is there for accept, pipe and lend, for pipe, for early, for lend.
    process_id process;  // the receiver
    gpu::ipc_handle handle;
    union {
        pipe_terms terms;
        early_terms early;
        put_terms put;
    };
};

// The receiver finds its messages by UCP's requests: offers need no first bytes. Or it cannot, and
// they do. Without either it has not found one yet.
constexpr uint32_t known_receivers = 1, unknown_receivers = 16;
// Asked for in an offer, given in an answer: slots in host memory.
constexpr uint32_t host_slots = 2;
// The receiver's layout is the sender's: both take it in the order of memory.
constexpr uint32_t memory_order = 4;
// No later offer to this interface will be taken.
constexpr uint32_t never = 8;

constexpr size_t length_of(control_kind kind) noexcept {
    return kind == control_kind::early    ? sizeof(control)
           : kind == control_kind::pipe   ? offsetof(control, terms) + sizeof(pipe_terms)
           : kind == control_kind::lend   ? offsetof(control, put) + sizeof(put_terms)
           : kind == control_kind::accept ? offsetof(control, terms)
                                          : offsetof(control, process);
}

}  // namespace cuda_nc::uct::wire
