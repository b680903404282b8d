#include "uct/cuda_nc/engine/scheduler.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "uct/cuda_nc/engine/admission.hpp"
#include "uct/cuda_nc/engine/launch_client.hpp"

namespace cuda_nc::uct {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// How long the first in line has been refused.
nanoseconds scheduler::queue::waited(uint64_t first) noexcept {
    const auto now = tick_clock::now();
    if (refused != first) {
        refused = first;
        since = now;
    }
    return now - since;
}

// Another worker releases its channels when somebody progresses it. Kernels of this one leave by
// themselves.
bool scheduler::acquire(queue &line, launch_client &client, gpu::direction dir, unsigned channels,
                        nanoseconds *waited_p) noexcept {
    const int device = client.device();
    const uint64_t message = client.message();
    *waited_p = nanoseconds(0);
    if (!acquire_channels(device, dir, channels)) {
        constexpr auto for_others = milliseconds(10), for_own = 100 * for_others;
        if (line.waited(message) < (line.own == 0 ? for_others : for_own)) {
            return false;
        }
        acquire_channels_beyond_limit(device, dir, channels);
    }
    if (!client.acquire_resources()) {
        release_channels(device, dir, channels);
        *waited_p = line.waited(message);
        return false;
    }
    return true;
}

scheduler::admission scheduler::admit(launch_client &client, gpu::direction dir,
                                      unsigned channels) noexcept try {
    constexpr auto for_resources = milliseconds(1000);
    const uint64_t message = client.message();
    queue &line = queues_[{client.device(), room_for(dir)}];
    nanoseconds waited(0);
    if (!line.comes_first(message) || !acquire(line, client, dir, channels, &waited)) {
        if (waited < for_resources) {
            line.waiting.insert(message);
            progress_.start();
            return admission::waits;
        }
        line.waiting.erase(message);
        room_came_free_ = true;  // for the messages behind it
        return admission::refused;
    }
    line.waiting.erase(message);
    line.refused = line.refused == message ? 0 : line.refused;
    line.own += channels;
    return admission::admitted;
} catch (const std::bad_alloc &) {
    return admission::refused;
}

void scheduler::end_admission(int device, gpu::direction dir, unsigned channels) noexcept {
    release_channels(device, dir, channels);
    queues_[{device, room_for(dir)}].own -= channels;
    room_came_free_ = true;
}

void scheduler::stop_waiting(uint64_t message) noexcept {
    for (auto &[where, line] : queues_) {
        if (!line.waiting.empty()) {
            room_came_free_ |= line.waiting.erase(message) != 0;  // for the messages behind it
        }
    }
}

scheduler::admission scheduler::order(launch_client &ready) noexcept try {
    const uint64_t message = ready.message();
    queue &line = queues_[{ready.device(), room::to_order}];
    progress_.start();
    if (line.own >= most_orders || !line.comes_first(message)) {
        line.waiting.insert(message);
        return admission::waits;
    }
    room_came_free_ |= line.waiting.erase(message) != 0;  // perhaps for the messages behind it
    if (!launches_.add_order(ready)) {
        return admission::refused;
    }
    ++line.own;
    return admission::admitted;
} catch (const std::bad_alloc &) {
    return admission::refused;
}

void scheduler::end_order(int device) noexcept {
    --queues_[{device, room::to_order}].own;
    room_came_free_ = true;
}

bool scheduler::launch(launch_client &admitted) noexcept {
    progress_.start();
    return launches_.add(admitted);
}

void scheduler::launch_all() noexcept {
    for (launches_.give_orders(); !launches_.empty(); launches_.give_orders()) {
        uint64_t messages[gpu::max_pipe_sides];
        const size_t number = launches_.launch_some(messages);
        if (number == 0) {
            break;  // no stream is free: later
        }
        // The messages tell their peers of the launch, or of its failure.
        for (size_t i = 0; i < number; ++i) {
            messages_.progress_message(messages[i]);
        }
    }
    launches_.all_were_tried();
}

unsigned scheduler::progress_in_flight(bool look_at_all) noexcept {
    unsigned happened = 0;
    const std::vector<shared_launches::running> &all = launches_.in_flight();
    for (size_t i = 0; i < all.size();) {
        if (!look_at_all && !all[i].may_have_left()) {
            ++i;
            continue;
        }
        const launch_client *one = all[i].client;
        happened += messages_.progress_message(one->message());
        if (i < all.size() && all[i].client == one) {  // else another one has taken its place
            ++i;
        }
    }
    return happened;
}

unsigned scheduler::progress_waiting(bool all) noexcept {
    if (!std::exchange(room_came_free_, false) && !all) {
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

bool scheduler::empty() const noexcept {
    return launches_.empty() && launches_.in_flight().empty() &&
           std::all_of(queues_.begin(), queues_.end(),
                       [](const auto &one) { return one.second.waiting.empty(); });
}

}  // namespace cuda_nc::uct
