// How many channels of pipes and pulls, and how many copies, this process has in flight on each
// GPU. Process-wide counts, thread safe and free of locks.
//
// As many channels are admitted as fit on a GPU together, so that no kernel waits for another's
// end, and as many packing as unpacking, so that unpacking kernels that wait never keep out the
// packing kernels that other processes wait for. (Pulls of lists of blocks take a third of a
// multiprocessor for a channel, not a fourth; they wait for nobody.) More channels are slower but
// safe: a kernel waits for its peer for a bounded time only and is launched again.
#pragma once

#include <cstdint>

#include "ucs/gpu/device.hpp"

namespace cuda_nc::uct {

constexpr int max_devices = 64;  // GPUs with higher ordinals have no pipes and no pulls
constexpr unsigned max_message_channels = gpu::max_pipe_channels;

// Most channels in flight in one direction on `device`; 0: no pipes on this GPU.
unsigned channel_limit(int device) noexcept;

// Most channels of one message, MAX_SMS counted in.
unsigned message_channels(int device) noexcept;

// False: the limit is reached, and nothing was counted. The caller releases the channels when their
// kernel has left.
bool acquire_channels(int device, gpu::direction dir, unsigned channels) noexcept;
void acquire_channels_beyond_limit(int device, gpu::direction dir, unsigned channels) noexcept;
void release_channels(int device, gpu::direction dir, unsigned channels) noexcept;
unsigned channels_in_flight(int device, gpu::direction dir) noexcept;  // for tests

// Channels of the messages that a GPU receives, whether their kernel runs or waits: of pipes from
// the answer to the sender until the message ends, of pulls from when they are to be launched until
// their kernel is through. New messages are cut by what is left.
void promise_channels(int device, unsigned channels) noexcept;
void end_promise(int device, unsigned channels) noexcept;
unsigned channels_promised(int device) noexcept;

// Channels of a new message of `bytes`, at most `most`: half of those that are not promised, so
// that some are left for messages that come before its end.
unsigned share_of_channels(int device, uint64_t bytes, unsigned most) noexcept;

// Messages that copy engines bring to a GPU, from the answer to the sender until the end. False: so
// many are under way that one more of `bytes` would be slower than a kernel.
bool acquire_copy(int device, uint64_t bytes) noexcept;
void release_copy(int device) noexcept;
unsigned copies_in_flight(int device) noexcept;  // for tests

}  // namespace cuda_nc::uct
