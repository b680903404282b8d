// How many lanes of pipes are in flight on each GPU: as many as fit on it together, so that none
// waits for another's end, and as many packing as unpacking, so that waiting unpacks never keep
// away the packs that other processes wait for. (Pulls of lists of blocks take a third of a
// multiprocessor for a lane, not a fourth; they wait for nobody.) More are slower, but safe: a
// kernel waits for its peer a while only, and is launched again. Thread safe, free of locks.
#pragma once

#include <cstdint>

#include "ucs/gpu/device.hpp"

namespace cuda_nc::uct {

// Most lanes of one direction; 0: no pipes on this GPU.
unsigned lane_limit(int device) noexcept;

// Most lanes of one message.
unsigned message_lanes(int device) noexcept;

// False: there are too many. Each lane taken is given back when its kernel has left.
bool take_lanes(int device, gpu::direction dir, unsigned lanes) noexcept;
void take_lanes_beyond(int device, gpu::direction dir, unsigned lanes) noexcept;  // the limit too
void give_lanes(int device, gpu::direction dir, unsigned lanes) noexcept;
unsigned lanes_taken(int device, gpu::direction dir) noexcept;  // for tests

// Lanes of the messages that come to a GPU, from the answer to the sender until the end, whether
// they run or wait.
void promise_lanes(int device, unsigned lanes) noexcept;
void end_promise(int device, unsigned lanes) noexcept;
unsigned lanes_promised(int device) noexcept;

// Messages that copy engines bring to a GPU, from the answer to the sender until the end. False: as
// many are under way as pay for one of `bytes`.
bool take_copy(int device, uint64_t bytes) noexcept;
void end_copy(int device) noexcept;
unsigned copies_taken(int device) noexcept;  // for tests

}  // namespace cuda_nc::uct
