#include "uct/cuda_nc/engine/agenda.hpp"

#include <algorithm>
#include <new>

namespace cuda_nc::uct {

void agenda::look_soon(uint64_t message) noexcept try {
    if (messages_.exists(message)) {
        soon_.push_back(message);
        progress_.start();
    }
} catch (const std::bad_alloc &) {
    looks_at_all_ = true;
}

void agenda::look_at(uint64_t message, clock::time_point when) noexcept try {
    forget_time(message);
    times_.emplace(when, message);
    try {
        time_of_.emplace(message, when);
    } catch (...) {
        times_.erase({when, message});
        throw;
    }
    progress_.start();
} catch (const std::bad_alloc &) {
    looks_at_all_ = true;
}

void agenda::forget_time(uint64_t message) noexcept {
    if (time_of_.empty()) {
        return;
    }
    const auto found = time_of_.find(message);
    if (found != time_of_.end()) {
        times_.erase({found->second, message});
        time_of_.erase(found);
    }
}

void agenda::poll(uint64_t message) noexcept try {
    if (!is_listed_.insert(message).second) {
        return;
    }
    try {
        polled_.push_back(message);
    } catch (...) {
        is_listed_.erase(message);
        throw;
    }
    progress_.start();
} catch (const std::bad_alloc &) {
    looks_at_all_ = true;
}

unsigned agenda::look_at_due() noexcept {
    unsigned happened = 0;
    const auto now = clock::now();
    while (!times_.empty() && times_.begin()->first <= now) {
        const uint64_t message = times_.begin()->second;
        forget_time(message);
        happened += messages_.progress_message(message);
    }
    return happened;
}

// So many at a time: a call takes no longer where there are thousands.
unsigned agenda::look_at_polled() noexcept {
    constexpr size_t most = 64;
    unsigned happened = 0;
    for (size_t looks = std::min(most, polled_.size()); looks != 0 && !polled_.empty(); --looks) {
        next_polled_ = next_polled_ < polled_.size() ? next_polled_ : 0;
        const size_t index = next_polled_;
        const uint64_t message = polled_[index];
        happened += messages_.progress_message(message);
        // A user's callback may have progressed, and so changed the list.
        if (index >= polled_.size() || polled_[index] != message) {
            continue;
        }
        if (messages_.is_polled(message)) {
            next_polled_ = index + 1;
        } else {
            is_listed_.erase(message);
            polled_[index] = polled_.back();  // the list may have grown, at its end
            polled_.pop_back();
        }
    }
    return happened;
}

unsigned agenda::progress() noexcept {
    unsigned happened = 0;
    if (looks_at_all_) {
        looks_at_all_ = false;
        happened += messages_.progress_all();
    }
    // A user's callback may progress, and takes the next ones.
    for (size_t left = soon_.size(); left != 0 && !soon_.empty(); --left) {
        const uint64_t message = soon_.front();
        soon_.pop_front();
        happened += messages_.progress_message(message);
    }
    happened += times_.empty() ? 0 : look_at_due();
    happened += polled_.empty() ? 0 : look_at_polled();
    return happened;
}

}  // namespace cuda_nc::uct
