#include "uct/cuda_nc/pipe/launches.hpp"

#include <algorithm>
#include <new>

#include "ucs/base/log.hpp"
#include "uct/cuda_nc/counters.hpp"
#include "uct/cuda_nc/pipe/drive.hpp"

namespace cuda_nc::uct {

bool pipe_launches::add(pipe_drive &ready) noexcept try {
    const size_t room = in_flight_.size() + ready_.size() + 1;
    if (in_flight_.capacity() < room) {
        in_flight_.reserve(2 * room);
    }
    ready_.push_back(&ready);
    return true;
} catch (const std::bad_alloc &) {
    return false;
}

void pipe_launches::remove(const pipe_drive &stopped) noexcept {
    ready_.erase(std::remove(ready_.begin(), ready_.end(), &stopped), ready_.end());
}

void pipe_launches::left(const pipe_drive &ended) noexcept {
    auto found = std::find(in_flight_.begin(), in_flight_.end(), &ended);
    if (found != in_flight_.end()) {
        *found = in_flight_.back();
        in_flight_.pop_back();
    }
}

size_t pipe_launches::flush_some(uint64_t (&messages)[most_sides]) noexcept {
    if (ready_.empty()) {
        return 0;
    }
    // The first, and those of its GPU that can be launched with it.
    const int device = ready_.front()->device();
    bool later;
    std::shared_ptr<pipe_stream> stream = take_stream(device, &later);
    if (stream == nullptr && later) {
        return 0;  // until one comes back
    }
    pipe_drive *drives[most_sides];
    gpu::pipe_work sides[most_sides];
    size_t number = 0, handled = 0;
    for (size_t i = 0; i < ready_.size() && number + handled < most_sides;) {
        pipe_drive *one = ready_[i];
        if (one->device() != device) {
            ++i;
            continue;
        }
        ucs_status_t status = UCS_ERR_NO_RESOURCE;
        if (stream != nullptr) {
            status = one->prepare(stream->get(), &sides[number]);
        }
        if (status == UCS_OK) {
            drives[number++] = one;
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
    ucs_status_t status = stream->get().launch(sides, number, &launched);
    size_t done = status == UCS_OK ? launched : 1;  // the others are tried without the first
    for (size_t i = 0; i < done; ++i) {
        remove(*drives[i]);
        messages[handled++] = drives[i]->message();
        if (status == UCS_OK) {
            in_flight_.push_back(drives[i]);
            drives[i]->launched(stream);
        } else {
            drives[i]->launch_failed(status);
        }
    }
    if (status == UCS_OK) {
        count(counters::all().launches);
        counters::all().launched_sides.fetch_add(launched, std::memory_order_relaxed);
    }
    return handled;
}

}  // namespace cuda_nc::uct
