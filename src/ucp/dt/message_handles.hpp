// Numbers under which UCX knows messages of GPU memory: never two messages by the same one, and
// none that anything else is likely to be.
//
// The transport finds in a request of UCP the state that our datatype gave it, and that it is there
// shows that it looks at the right place. A request that holds no such state may still hold the
// address of an earlier one; an address is used again, a number is not.
#pragma once

#include <cstdint>

#include "uct/cuda_nc/user_buffer.hpp"

namespace cuda_nc::dt {

class request_state;

// Set in every number, and in no address of a state.
constexpr uintptr_t message_handle_mark = 4;

// 0: all are in use.
uintptr_t take_message_handle(request_state &state, uct::user_buffer &end) noexcept;
void give_message_handle(uintptr_t handle) noexcept;

// A number that is in use.
request_state *state_of_message_handle(uintptr_t handle) noexcept;

}  // namespace cuda_nc::dt
