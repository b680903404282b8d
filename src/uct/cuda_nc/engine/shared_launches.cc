#include "uct/cuda_nc/engine/shared_launches.hpp"

#include <algorithm>
#include <new>

#include "ucs/base/log.hpp"
#include "uct/cuda_nc/counters.hpp"
#include "uct/cuda_nc/engine/launch_client.hpp"
#include "uct/cuda_nc/engine/stream_pool.hpp"

namespace cuda_nc::uct {

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
    ready_.erase(std::remove(ready_.begin(), ready_.end(), &stopped), ready_.end());
}

void shared_launches::left(const launch_client &ended) noexcept {
    auto found = std::find(in_flight_.begin(), in_flight_.end(), &ended);
    if (found != in_flight_.end()) {
        *found = in_flight_.back();
        in_flight_.pop_back();
    }
}

// All that can be orders for the GPU's mover, as one set.
size_t shared_launches::give_some(gpu::mover &by, int device,
                                  uint64_t (&messages)[most_clients]) noexcept {
    launch_client *clients[most_clients];
    gpu::move_order orders[most_clients];
    gpu::mover::ticket tickets[most_clients];
    size_t number = 0;
    for (launch_client *one : ready_) {
        if (number < most_clients && one->device() == device && one->describe(&orders[number])) {
            clients[number++] = one;
        }
    }
    const size_t given = number != 0 ? by.give(orders, number, tickets) : 0;
    for (size_t i = 0; i < given; ++i) {
        remove(*clients[i]);
        messages[i] = clients[i]->message();
        in_flight_.push_back(clients[i]);
        clients[i]->ordered(by, tickets[i]);
    }
    counters::all().orders.fetch_add(given, std::memory_order_relaxed);
    return given;
}

size_t shared_launches::flush_some(uint64_t (&messages)[most_clients]) noexcept {
    if (ready_.empty()) {
        return 0;
    }
    // The first, and the others on its GPU that can be launched with it.
    const int device = ready_.front()->device();
    gpu::device *where = gpu::platform::instance().get_device(device);
    gpu::mover *by = where != nullptr ? where->get_mover() : nullptr;
    if (const size_t given = by != nullptr ? give_some(*by, device, messages) : 0) {
        return given;
    }
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
            ready_.erase(ready_.begin() + static_cast<ptrdiff_t>(i));
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
        count(counters::all().launches);
        counters::all().launched_sides.fetch_add(launched, std::memory_order_relaxed);
        if (by != nullptr) {
            by->expect();
        }
    }
    return handled;
}

}  // namespace cuda_nc::uct
