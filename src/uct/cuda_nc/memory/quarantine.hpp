// What a process that has fallen silent may still write to. It is kept until that process is gone,
// or says after all that it writes there no more. Thread safe.
#pragma once

#include "uct/cuda_nc/memory/lent_memory.hpp"
#include "uct/cuda_nc/memory/process_id.hpp"

namespace cuda_nc::uct {

// A message of ours, and the identity of the peer's interface: nobody else may end it.
struct message_of_peer {
    uint64_t number, peer;
};

// Releases the region once `writer` is gone; never, where that cannot be told.
void quarantine(const region &memory, const process_id &writer, message_of_peer message) noexcept;
// The same of any object: `release(object)` gives it back.
void quarantine(void *object, void (*release)(void *) noexcept, const process_id &writer,
                message_of_peer message) noexcept;

// The writer is through with the message. False: nothing of it was kept.
bool leave_quarantine(message_of_peer message) noexcept;

// Looks for processes that are gone; a few times a second at most, unless `now`.
void release_quarantined(bool now = false) noexcept;

size_t quarantined() noexcept;  // regions and objects

}  // namespace cuda_nc::uct
