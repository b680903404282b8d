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
struct handle_place;

// Set in every handle, and in no address of a request_state.
constexpr uintptr_t message_handle_mark = 4;

// The handles of messages one after the other. Its place in the table of handles is its own from
// the first of them to its end, so the later ones take no lock. Different threads may use different
// objects at the same time, and one object after each other.
class message_handle {
  public:
    message_handle() = default;
    ~message_handle();
    message_handle(const message_handle &) = delete;
    message_handle &operator=(const message_handle &) = delete;

    // The new message's handle, in use until release(). 0: all are in use, or no memory.
    uintptr_t acquire(request_state &state, uct::user_buffer &end) noexcept;
    // Does nothing where none is in use.
    void release() noexcept;

    // 0: none is in use.
    uintptr_t value() const noexcept { return value_; }

  private:
    handle_place *place_ = nullptr;
    uintptr_t value_ = 0;
};

// `handle` must be in use.
request_state *state_of_message_handle(uintptr_t handle) noexcept;
// `handle` is in use, or was; then null.
request_state *find_state_of_message_handle(uintptr_t handle) noexcept;

}  // namespace cuda_nc::dt
