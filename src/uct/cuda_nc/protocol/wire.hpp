// What two transports say to each other (docs/protocol.md). Machines with GPUs that are served have
// one byte order; another one would show in the address header.
//
// Offers and FINs travel in place of UCP's rendezvous data, under its active message id, so that
// one call of UCP is one message of the carrier. Control messages have an id that UCP leaves free.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "ucs/gpu/device.hpp"
#include "ucs/layout/layout_view.hpp"
#include "uct/cuda_nc/memory/process_id.hpp"
#include "uct/cuda_nc/ucx/ucp_messages.hpp"

namespace cuda_nc::uct::wire {

// Of all that is said here; in addresses, and in each control message.
constexpr uint8_t protocol_version = 11;

// An active message id that UCP leaves free.
constexpr uint8_t control_id = 31;

// ---- under UCP's id of rendezvous data (ucx/ucp_messages.hpp)

// The offset in UCP's header never has the highest bit: it marks messages of ours.
constexpr uint64_t mark = uint64_t(1) << 63;

// Whether a message under UCP's id is ours. `data` may have any alignment.
inline bool is_marked(const void *data, size_t length) noexcept {
    rndv_header header;
    if (length < sizeof(header)) {
        return false;
    }
    std::memcpy(&header, data, sizeof(header));
    return (header.offset & mark) != 0;
}

enum class data_kind : uint64_t {
    nothing,  // empty: UCP has to ask again, but a carrier that called pack() sends a message
    offer,    // followed by a sender_offer and UCP's own message with the first bytes, or with none
    fin       // all bytes are at the receiver; followed by UCP's header alone
};

struct data_prefix {
    uint64_t unused;
    uint64_t mark_and_kind;
    uint64_t message;   // offer: the sender's; FIN: the receiver's
    uint64_t identity;  // the sender's interface
    uint64_t length;    // offer: of the whole message; FIN: of all but the first bytes
};

// UCP's ATS as we send it to one of our messages: UCP reads its own record, and nothing behind it.
struct __attribute__((packed)) end_of_pull {
    acknowledgement ats;
    uint64_t message;  // the sender's
};

// ---- offers

// What a sender brings: where its bytes are, and its port for a pipe.
struct sender_offer {
    uint32_t channels;             // of a pipe, at most; 0: no pipe
    uint32_t flags;                // host_slots, not_straight
    char gpu[16];                  // PCI bus id of the sender's GPU, as text
    process_id process;            // the sender
    uint64_t sequence;             // the least that its port takes
    uint64_t credits;              // of its port: bytes from the start of their allocation
    gpu::ipc_handle memory;        // of the credits
    uint64_t hash_low, hash_high;  // of the layout; both 0: not said
};

struct source_dim {
    uint64_t count;
    int64_t stride;
};

// Where a sender's bytes lie, for a receiver that pulls them.
struct source_descriptor {
    uint64_t allocation;     // allocation_info::id; 0: they cannot be pulled
    uint64_t address;        // of the allocation, in the sender's process
    int64_t displacement_0;  // bytes from there; it may lie outside
    gpu::ipc_handle memory;
    uint32_t is_list;       // of blocks: the fields below do not count
    uint32_t num_dims;      // from here on as in layout_view
    uint64_t block_length;  // bytes
    int64_t first_displacement;
    source_dim dims[max_dims];
};

struct early_offer {
    sender_offer offer;
    source_descriptor source;
};

// ---- answers

// The receiver's ring and port for a pipe.
struct pipe_answer {
    uint32_t channels, chunk_size, depth;
    uint32_t reserved;
    uint64_t sequence;  // of the first segment
    uint64_t segment;   // bytes, at most
    uint64_t flags;     // of its port: bytes from the start of their allocation
    gpu::ipc_handle flags_memory;
};

// Slots that a receiver on another host lends: one behind the other in its GPU memory. The sender's
// carrier writes there with the key.
struct network_answer {
    uint64_t address;  // of the first slot, in the receiver's process
    uint32_t key_length;
    uint32_t reserved;
    char key[64];  // its first key_length bytes
};

// The receiver's contiguous memory, which a kernel of the sender's packs straight into.
struct memory_answer {
    uint64_t allocation;  // allocation_info::id
    uint64_t address;     // of the allocation, in the receiver's process
};

// ---- control messages

enum class control_kind : uint8_t {
    accept_slots,     // to the sender: write into these slots
    decline,          // to the sender: send fragments
    slot_full,        // to the receiver: a slot has been filled
    slot_empty,       // to the sender: a slot may be filled again
    cancel,           // to the receiver: no GPU of the sender writes any more
    stop,             // to the sender: write no more, and answer with cancel
    accept_pipe,      // to the sender: here is my end of a pipe
    wake,             // a kernel of the author's waits in the pipe; offset: its segment
    ended,            // to the sender, after its cancel: no GPU of the receiver writes any more
    early_offer,      // to the receiver, with UCP's RTS; the answer comes before UCP's RTR
    withdraw,         // to the receiver: the early offer is void
    accept_pull,      // to the sender: the receiver's GPU reads your memory
    pulled,           // to the sender: it has read all bytes
    accept_network,   // to the sender: let your carrier put into these slots
    accept_straight,  // to the sender: pack straight into my memory
    describe,         // to a sender of contiguous memory; slot: whether its offers are wanted
};
constexpr uint8_t num_control_kinds = 16;

struct control {
    uint8_t version;
    control_kind kind;
    uint16_t slot;   // accept_slots, accept_network: how many; describe: 1 or 0
    uint32_t flags;  // all answers: known_receivers, unknown_receivers; accept_slots: host_slots;
                     // accept_pipe: memory_order; decline: never
    uint64_t to;     // the addressee's message
    uint64_t from;   // the author's message
    uint64_t identity;  // the author's interface
    uint64_t offset;    // slot_full: of the packed bytes; accept_slots, accept_pipe,
                        // accept_straight: of the memory in its allocation; withdraw: UCP's
                        // number of the send
    uint64_t length;    // slot_full: bytes; accept_slots, accept_network: bytes of a slot
    // What follows is sent with accept_slots, accept_pipe, accept_network and accept_straight
    // alone.
    process_id process;  // the receiver
    gpu::ipc_handle handle;
    union {
        pipe_answer pipe;
        network_answer network;
        memory_answer memory;
    };
};

// Flags of answers. The receiver finds its messages by UCP's requests, and offers need no first
// bytes; or it cannot, and they do. Without either flag it has not found one yet.
constexpr uint32_t known_receivers = 1, unknown_receivers = 16;
// Asked for in an offer, given in an answer: slots in host memory.
constexpr uint32_t host_slots = 2;
// Of an offer: the sender could not reach the receiver's contiguous memory. (Who does not know the
// flag answers as ever.)
constexpr uint32_t not_straight = 32;
// The receiver's layout is the sender's: both move the bytes in the order of memory.
constexpr uint32_t memory_order = 4;
// No later offer to this interface will be accepted.
constexpr uint32_t never = 8;

// One of kind early_offer is written otherwise (announcement.hpp): this, a port_part, a source_part
// and its dims where there are any, and UCP's RTS.
struct announcement_head {
    uint8_t version;
    control_kind kind;
    uint8_t parts;     // which of them follow, and whether the source is a list
    uint8_t num_dims;  // of the source
    uint32_t flags;    // as of a sender_offer, like all that has no remark
    uint64_t hash_low;
    uint64_t message;   // the author's; 0: contiguous memory, of which UCP alone knows
    uint64_t identity;  // the author's interface
    uint64_t hash_high;
    char gpu[16];
    process_id process;
};
struct port_part {
    uint32_t channels;
    uint32_t reserved;
    uint64_t sequence;
    uint64_t credits;
    gpu::ipc_handle memory;
};
struct source_part {
    uint64_t allocation;
    uint64_t address;
    int64_t displacement_0;
    gpu::ipc_handle memory;
    uint64_t block_length;
    int64_t first_displacement;
};

// Bytes of any other control message on the wire.
constexpr size_t length_of(control_kind kind) noexcept {
    return kind == control_kind::accept_pipe ? offsetof(control, pipe) + sizeof(pipe_answer)
           : kind == control_kind::accept_network
               ? offsetof(control, network) + sizeof(network_answer)
           : kind == control_kind::accept_straight
               ? offsetof(control, memory) + sizeof(memory_answer)
           : kind == control_kind::accept_slots ? offsetof(control, pipe)
                                                : offsetof(control, process);
}

}  // namespace cuda_nc::uct::wire
