#include "uct/cuda_nc/engine/scheduler.hpp"

#include <new>

#include "uct/cuda_nc/engine/admission.hpp"
#include "uct/cuda_nc/engine/launch_client.hpp"

namespace cuda_nc::uct {

// Another worker releases its channels when somebody progresses it. Kernels of this one leave by
// themselves.
bool scheduler::queue::is_overdue(uint64_t first) noexcept {
    constexpr auto for_others = std::chrono::milliseconds(10), for_own = 100 * for_others;
    const auto now = std::chrono::steady_clock::now();
    if (refused != first) {
        refused = first;
        since = now;
    }
    return now - since >= (own == 0 ? for_others : for_own);
}

bool scheduler::admit(uint64_t message, int device, gpu::direction dir, unsigned channels) noexcept
    try {
    queue &line = queues_[{device, dir}];
    const bool first = line.waiting.empty() || *line.waiting.begin() >= message;
    if (!first || !acquire_channels(device, dir, channels)) {
        if (!first || !line.is_overdue(message)) {
            line.waiting.insert(message);
            return false;
        }
        acquire_channels_beyond_limit(device, dir, channels);
    }
    line.waiting.erase(message);
    line.refused = line.refused == message ? 0 : line.refused;
    line.own += channels;
    return true;
} catch (const std::bad_alloc &) {
    return false;
}

void scheduler::end_admission(int device, gpu::direction dir, unsigned channels) noexcept {
    release_channels(device, dir, channels);
    queues_[{device, dir}].own -= channels;
    channels_came_free_ = true;
}

void scheduler::stop_waiting(uint64_t message) noexcept {
    for (auto &[where, line] : queues_) {
        channels_came_free_ |= line.waiting.erase(message) != 0;  // for the messages behind it
    }
}

bool scheduler::launch(launch_client &admitted) noexcept {
    progress_.start();
    return launches_.add(admitted);
}

void scheduler::launch_all() noexcept {
    while (!launches_.empty()) {
        uint64_t messages[shared_launches::most_clients];
        const size_t number = launches_.flush_some(messages);
        if (number == 0) {
            break;  // no stream is free: later
        }
        // The messages tell their peers of the launch, or of its failure.
        for (size_t i = 0; i < number; ++i) {
            messages_.progress_message(messages[i]);
        }
    }
}

unsigned scheduler::progress_in_flight() noexcept {
    unsigned happened = 0;
    const std::vector<launch_client *> &all = launches_.in_flight();
    for (size_t i = 0; i < all.size();) {
        const launch_client *one = all[i];
        if (one->has_left()) {
            happened += messages_.progress_message(one->message());
        }
        if (i < all.size() && all[i] == one) {  // else another one has taken its place
            ++i;
        }
    }
    return happened;
}

unsigned scheduler::progress_waiting() noexcept {
    if (!std::exchange(channels_came_free_, false)) {
        return 0;
    }
    unsigned happened = 0;
    for (auto &[where, line] : queues_) {
        while (!line.waiting.empty()) {
            const uint64_t first = *line.waiting.begin();
            happened += messages_.progress_message(first);
            if (!line.waiting.empty() && *line.waiting.begin() == first) {
                break;  // still no room for the first: none for those behind it
            }
        }
    }
    return happened;
}

}  // namespace cuda_nc::uct
