#include "uct/cuda_nc/engine/admission.hpp"

#include <algorithm>
#include <atomic>

#include "ucs/base/settings.hpp"

namespace cuda_nc::uct {
namespace {

// A multiprocessor holds four blocks of a pipe's kernel: two of each direction.
constexpr unsigned channels_of_multiprocessor = 2;

std::atomic<unsigned> in_flight[max_devices][2];
std::atomic<unsigned> promised[max_devices];
std::atomic<unsigned> copies[max_devices];

std::atomic<unsigned> &count_of(int device, gpu::direction dir) noexcept {
    return in_flight[device][dir == gpu::direction::pack ? 0 : 1];
}

}  // namespace

unsigned channel_limit(int device) noexcept {
    gpu::device *where =
        device < max_devices ? gpu::platform::instance().get_device(device) : nullptr;
    return where != nullptr ? where->properties().num_sms * channels_of_multiprocessor : 0;
}

unsigned message_channels(int device) noexcept {
    unsigned most = std::min(channel_limit(device), max_message_channels);
    return config().max_sms != 0 ? std::min(most, config().max_sms) : most;
}

bool acquire_channels(int device, gpu::direction dir, unsigned channels) noexcept {
    std::atomic<unsigned> &count = count_of(device, dir);
    if (count.fetch_add(channels, std::memory_order_relaxed) + channels <= channel_limit(device)) {
        return true;
    }
    count.fetch_sub(channels, std::memory_order_relaxed);
    return false;
}

void acquire_channels_beyond_limit(int device, gpu::direction dir, unsigned channels) noexcept {
    count_of(device, dir).fetch_add(channels, std::memory_order_relaxed);
}

void release_channels(int device, gpu::direction dir, unsigned channels) noexcept {
    count_of(device, dir).fetch_sub(channels, std::memory_order_relaxed);
}

unsigned channels_in_flight(int device, gpu::direction dir) noexcept {
    return count_of(device, dir).load(std::memory_order_relaxed);
}

void promise_channels(int device, unsigned channels) noexcept {
    promised[device].fetch_add(channels, std::memory_order_relaxed);
}

void end_promise(int device, unsigned channels) noexcept {
    promised[device].fetch_sub(channels, std::memory_order_relaxed);
}

unsigned channels_promised(int device) noexcept {
    return promised[device].load(std::memory_order_relaxed);
}

// Among many messages each gets so few that about 16 of a megabyte are under way at a time: a
// launch and the flags take longer than the bytes.
unsigned share_of_channels(int device, uint64_t bytes, unsigned most) noexcept {
    const unsigned limit = channel_limit(device), others = channels_promised(device);
    unsigned least = std::max(1u, std::min(16u, limit / 8));
    if (bytes > (uint64_t{2} << 20)) {
        least *= 2;  // it would be the last to end
    }
    return std::min(most, std::max(limit > others ? (limit - others) / 2 : 0, least));
}

// A copy engine runs one copy after the other and spends a microsecond or two between them; kernels
// move the other messages meanwhile. Measured on two H200 (bench/results, copy engines).
bool acquire_copy(int device, uint64_t bytes) noexcept {
    const unsigned most = bytes > (uint64_t{2} << 20) ? 1 : 3;
    if (copies[device].fetch_add(1, std::memory_order_relaxed) < most) {
        return true;
    }
    release_copy(device);
    return false;
}

void release_copy(int device) noexcept {
    copies[device].fetch_sub(1, std::memory_order_relaxed);
}

unsigned copies_in_flight(int device) noexcept {
    return copies[device].load(std::memory_order_relaxed);
}

}  // namespace cuda_nc::uct
