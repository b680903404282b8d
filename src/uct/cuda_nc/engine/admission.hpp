// How many channels of pipes are in flight on each GPU: as many as fit on it together, so that none
// waits for another's end, and as many packing as unpacking, so that waiting unpacks never keep
// away the packs that other processes wait for. (Pulls of lists of blocks take a third of a
// multiprocessor for a channel, not a fourth; they wait for nobody.) More are slower, but safe: a
// kernel waits for its peer a while only, and is launched again. Thread safe, free of locks.
#pragma once

#include <cstdint>

#include "ucs/gpu/device.hpp"

namespace cuda_nc::uct {

// Most channels of one direction; 0: no pipes on this GPU.
unsigned channel_limit(int device) noexcept;

// Most channels of one message.
unsigned message_channels(int device) noexcept;

// False: there are too many. Each channel taken is given back when its kernel has left.
bool take_channels(int device, gpu::direction dir, unsigned channels) noexcept;
void take_channels_beyond(int device, gpu::direction dir,
                          unsigned channels) noexcept;  // the limit too
void give_channels(int device, gpu::direction dir, unsigned channels) noexcept;
unsigned channels_taken(int device, gpu::direction dir) noexcept;  // for tests

// Channels of the messages that come to a GPU, from the answer to the sender until the end, whether
// they run or wait.
void promise_channels(int device, unsigned channels) noexcept;
void end_promise(int device, unsigned channels) noexcept;
unsigned channels_promised(int device) noexcept;

// Messages that copy engines bring to a GPU, from the answer to the sender until the end. False: as
// many are under way as pay for one of `bytes`.
bool take_copy(int device, uint64_t bytes) noexcept;
void end_copy(int device) noexcept;
unsigned copies_taken(int device) noexcept;  // for tests

}  // namespace cuda_nc::uct
