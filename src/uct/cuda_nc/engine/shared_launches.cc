#include "uct/cuda_nc/engine/shared_launches.hpp"

#include <algorithm>
#include <new>

#include "ucs/base/log.hpp"
#include "ucs/gpu/mover_pulse.hpp"
#include "uct/cuda_nc/counters.hpp"
#include "uct/cuda_nc/engine/launch_client.hpp"
#include "uct/cuda_nc/engine/stream_pool.hpp"

namespace cuda_nc::uct {
namespace {

// Null: that GPU has none.
gpu::mover *mover_of(int device) noexcept {
    gpu::device *where = gpu::platform::instance().get_device(device);
    return where != nullptr ? where->get_mover() : nullptr;
}

}  // namespace

bool shared_launches::add(launch_client &ready) noexcept try {
    const size_t room = in_flight_.size() + ready_.size() + 1;
    if (in_flight_.capacity() < room) {
        in_flight_.reserve(2 * room);
    }
    ready_.push_back(&ready);
    return true;
} catch (const std::bad_alloc &) {
    return false;
}

void shared_launches::remove(const launch_client &stopped) noexcept {
    const auto found = std::find(ready_.begin(), ready_.end(), &stopped);
    if (found != ready_.end()) {
        tried_ -= found - ready_.begin() < static_cast<ptrdiff_t>(tried_) ? 1 : 0;
        ready_.erase(found);
    }
}

void shared_launches::left(const launch_client &ended) noexcept {
    auto found = std::find(in_flight_.begin(), in_flight_.end(), &ended);
    if (found != in_flight_.end()) {
        *found = in_flight_.back();
        in_flight_.pop_back();
    }
}

// Those that follow each other on one GPU are one set.
void shared_launches::give_orders() noexcept {
    constexpr size_t most = 32;
    while (tried_ < ready_.size()) {
        const int device = ready_[tried_]->device();
        gpu::mover *by = mover_of(device);
        launch_client *clients[most];
        gpu::move_order orders[most];
        gpu::mover::ticket tickets[most];
        size_t number = 0, end = tried_;
        for (; end < ready_.size() && number < most && ready_[end]->device() == device; ++end) {
            if (by != nullptr && ready_[end]->describe(&orders[number])) {
                clients[number++] = ready_[end];
            }
        }
        tried_ = end;
        const size_t given = number != 0 ? by->give(orders, number, tickets) : 0;
        for (size_t i = 0; given != 0 && i < number; ++i) {
            if (tickets[i] == 0) {
                continue;
            }
            remove(*clients[i]);
            in_flight_.push_back(clients[i]);
            clients[i]->ordered(*by, tickets[i]);
        }
        counters::all().orders.fetch_add(given, std::memory_order_relaxed);
    }
}

size_t shared_launches::launch_some(uint64_t (&messages)[gpu::max_pipe_sides]) noexcept {
    if (ready_.empty()) {
        return 0;
    }
    // The first, and the others on its GPU that can be launched with it.
    const int device = ready_.front()->device();
    bool later;
    std::shared_ptr<pooled_stream> stream = acquire_stream(device, &later);
    if (stream == nullptr && later) {
        return 0;  // until a stream returns
    }
    launch_client *clients[gpu::max_pipe_sides];
    gpu::pipe_work work[gpu::max_pipe_sides];
    size_t number = 0, handled = 0;
    for (size_t i = 0; i < ready_.size() && number + handled < gpu::max_pipe_sides;) {
        launch_client *one = ready_[i];
        if (one->device() != device) {
            ++i;
            continue;
        }
        ucs_status_t status = UCS_ERR_NO_RESOURCE;
        if (stream != nullptr) {
            status = one->prepare(stream->get(), &work[number]);
        }
        if (status == UCS_OK) {
            clients[number++] = one;
            ++i;
        } else {
            remove(*one);
            messages[handled++] = one->message();
            one->launch_failed(status);
        }
    }
    if (number == 0) {
        return handled;
    }
    size_t launched = 0;
    ucs_status_t status = stream->get().launch(work, number, &launched);
    size_t done = status == UCS_OK ? launched : 1;  // then the others are tried without the first
    for (size_t i = 0; i < done; ++i) {
        remove(*clients[i]);
        messages[handled++] = clients[i]->message();
        if (status == UCS_OK) {
            in_flight_.push_back(clients[i]);
            clients[i]->launched(stream);
        } else {
            clients[i]->launch_failed(status);
        }
    }
    if (status == UCS_OK) {
        gpu::beat_pulses();  // a launch takes microseconds
        count(counters::all().launches);
        counters::all().launched_sides.fetch_add(launched, std::memory_order_relaxed);
        if (gpu::mover *by = mover_of(device)) {
            by->expect();
        }
    }
    return handled;
}

}  // namespace cuda_nc::uct
