#include "ucs/gpu/mover_pulse.hpp"

#include <sched.h>

#include <array>
#include <atomic>
#include <cstddef>

namespace cuda_nc::gpu {
namespace {

struct alignas(64) pulse {
    std::atomic<bool> is_taken{false};
    uint64_t *word = nullptr;  // whoever has taken it may use it
};

std::array<pulse, 32> pulses;
std::atomic<size_t> num_pulses{0};  // those behind have never been used

// Gives `to` the place of `from`. False: nobody has it.
bool replace(const uint64_t *from, uint64_t *to) noexcept {
    for (size_t i = 0; i < pulses.size(); ++i) {
        pulse &one = pulses[i];
        while (one.is_taken.exchange(true, std::memory_order_acquire)) {
            sched_yield();
        }
        const bool is_it = one.word == from;
        one.word = is_it ? to : one.word;
        one.is_taken.store(false, std::memory_order_release);
        if (is_it) {
            size_t number = num_pulses;
            while (number <= i && !num_pulses.compare_exchange_weak(number, i + 1)) {
            }
            return true;
        }
    }
    return false;
}

uint64_t pulse_after(uint64_t word, beat which) noexcept {
    constexpr uint64_t progress = uint64_t{1} << 32;
    return which == beat::progress ? word + progress
                                   : (word & ~(progress - 1)) | static_cast<uint32_t>(word + 1);
}

}  // namespace

void add_pulse(uint64_t *word) noexcept {
    replace(nullptr, word);
}

void remove_pulse(uint64_t *word) noexcept {
    replace(word, nullptr);
}

// One that is taken need not be written: another thread does, or has it next time.
void beat_pulses(beat which) noexcept {
    const size_t number = num_pulses.load(std::memory_order_acquire);
    for (size_t i = 0; i < number; ++i) {
        pulse &one = pulses[i];
        if (one.is_taken.exchange(true, std::memory_order_acquire)) {
            continue;
        }
        if (one.word != nullptr) {
            const uint64_t now = __atomic_load_n(one.word, __ATOMIC_RELAXED);
            __atomic_store_n(one.word, pulse_after(now, which), __ATOMIC_RELAXED);
        }
        one.is_taken.store(false, std::memory_order_release);
    }
}

void forget_pulses() noexcept {
    num_pulses.store(0, std::memory_order_relaxed);
}

}  // namespace cuda_nc::gpu
