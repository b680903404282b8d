// The pulse of a process: words in memory that movers' kernels read, which change while the process
// posts messages or waits for them (mover_stay.hpp). Thread safe.
#pragma once

#include <cstdint>

namespace cuda_nc::gpu {

// `word` changes with each beat until remove_pulse(), after which nobody writes to it. Where there
// are too many nothing happens: that kernel waits for its idle time.
void add_pulse(uint64_t *word) noexcept;
void remove_pulse(uint64_t *word) noexcept;

// What the process does. The upper half of the word counts progress, the lower one posts.
enum class beat : uint8_t {
    post,     // posts a message that may become an order; what it does next is not known
    progress  // progresses such messages, and beats again and again until it does so no more
};
// Takes nanoseconds, but for the turns of the bus while a kernel reads.
void beat_pulses(beat which) noexcept;

// In a child process, which may not have the memory.
void forget_pulses() noexcept;

}  // namespace cuda_nc::gpu
