// UCP's RTS with an early offer in front of it, as one message: what is not said takes no room, so
// that few cache lines go from one process to the other.
#pragma once

#include <cstddef>
#include <cstdint>

#include "uct/cuda_nc/protocol/wire.hpp"

namespace cuda_nc::uct {

struct announcement {
    uint64_t message;   // the sender's; 0: its memory is contiguous
    uint64_t identity;  // the sender's interface
    wire::early_offer offer;
};

// What stands before the RTS, at most: bytes.
constexpr size_t longest_announcement = sizeof(wire::announcement_head) + sizeof(wire::port_part) +
                                        sizeof(wire::source_part) +
                                        max_dims * sizeof(wire::source_dim);

// Writes what stands before the RTS, at most longest_announcement bytes, and returns how many.
size_t write_announcement(const announcement &what, void *to) noexcept;

// Reads a control message of kind early_offer. Returns where the RTS begins; 0: it is none.
size_t read_announcement(const void *message, size_t length, announcement *what_p) noexcept;

}  // namespace cuda_nc::uct
