// File descriptors that a process offers to others of the same user.
//
// A thread of the owner answers requests at an abstract Unix socket; it starts with the first offer
// and takes no signal. Nothing but sockets is needed: neither the right to trace the owner, nor a
// common process namespace, which containers seldom grant. A common network namespace is needed.
// Each side asks the kernel for the other's user before it reads anything; who is known as 65534,
// as users are that a user namespace does not map, is refused.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "ucs/base/file_descriptor.hpp"
#include "ucs/base/status.hpp"

namespace cuda_nc {

// Linux passes no more in one message.
inline constexpr size_t most_shared_descriptors = 253;
inline constexpr size_t most_shared_bytes = 4096;

// Names an offer to whoever is to take it; goes over any network. Who does not know the random
// number gets nothing.
struct descriptor_ticket {
    uint64_t service;
    uint64_t number[2];
};

// `size` bytes, which tell about the `count` descriptors, go with them. Duplicates are offered, as
// long as *keeper_p lives, with high numbers. One process offers a quarter of what RLIMIT_NOFILE
// allows it, at most. UCS_ERR_EXCEEDS_LIMIT: these are more than that. UCS_ERR_NO_RESOURCE: they
// are with the others. UCS_ERR_IO_ERROR: there is no socket, thread or random number, or a
// descriptor is none.
ucs_status_t offer_descriptors(const void *about, size_t size, const file_descriptor *files,
                               size_t count, descriptor_ticket *ticket_p,
                               std::shared_ptr<void> *keeper_p) noexcept;

// Gets `size` bytes and `most` descriptors at most, *count_p of them. Waits for the owner, as long
// as `longest`, and no more in the ten seconds after it has not answered. UCS_ERR_NO_ELEM: the
// owner offers that no longer, is of another user, or has ended. UCS_ERR_TIMED_OUT: it does not
// answer. UCS_ERR_NO_RESOURCE: it, or we, have no descriptors left.
ucs_status_t take_descriptors(const descriptor_ticket &from, void *about, size_t size,
                              file_descriptor *files, size_t most, size_t *count_p,
                              std::chrono::milliseconds longest = std::chrono::seconds(1)) noexcept;

// Whether this process made the offer.
bool is_own(const descriptor_ticket &ticket) noexcept;

}  // namespace cuda_nc
