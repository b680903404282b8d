// What stands before the carrier's interface address.
#pragma once

#include <cstdint>
#include <cstring>

#include "uct/cuda_nc/protocol/wire.hpp"

namespace cuda_nc::uct {

// Two sides talk only where version and kind agree: UCX matches transports by their name alone, so
// it asks an interface over posix about one over tcp.
struct address_header {
    uint8_t version;
    uint8_t flags;      // takes_offers, puts_gpu_memory
    uint16_t kind;      // carrier::kind()
    uint32_t host;      // a hash of the machine that runs the process
    uint64_t identity;  // of the interface, at random
};

// The carrier moves GPU memory to other hosts' by itself.
constexpr uint8_t puts_gpu_memory = 1;
// Messages from GPU to GPU may be offered: without the setting UCX_CUDA_NC_DIRECT UCP itself would
// read the offers.
constexpr uint8_t takes_offers = 2;

inline const void *after_header(const void *address) noexcept {
    return static_cast<const char *>(address) + sizeof(address_header);
}

// Addresses come from a peer and lie anywhere.
inline bool header_agrees(const void *address, uint16_t kind) noexcept {
    address_header header;
    std::memcpy(&header, address, sizeof(header));
    return header.version == wire::protocol_version && header.kind == kind;
}

}  // namespace cuda_nc::uct
