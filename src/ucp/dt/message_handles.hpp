// Handles: what UCP keeps as the state of a message in GPU memory, instead of an address. No two
// messages of a process have the same handle, and other words are unlikely to look like one.
//
// The transport looks for the handle in UCP's request, at the place where this release of UCX keeps
// the datatype's state. A handle found there proves that the place is right and whose request it
// is. An address would not: memory is used again, and a request may hold that of an earlier
// message.
#pragma once

#include <cstdint>

#include "uct/cuda_nc/user_buffer.hpp"

namespace cuda_nc::dt {

class request_state;

// Set in every handle, and in no address of a request_state.
constexpr uintptr_t message_handle_mark = 4;

// Thread safe. 0: all are in use.
uintptr_t acquire_message_handle(request_state &state, uct::user_buffer &end) noexcept;
void release_message_handle(uintptr_t handle) noexcept;

// `handle` must be in use.
request_state *state_of_message_handle(uintptr_t handle) noexcept;

}  // namespace cuda_nc::dt
