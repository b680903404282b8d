#include "hooks/open_mpi/convertor_tracker.hpp"

namespace cuda_nc::hooks {

convertor_tracker &convertor_tracker::instance() noexcept {
    static auto *only = new convertor_tracker;  // used until the process ends
    return *only;
}

void convertor_tracker::remember(const void *convertor, std::unique_ptr<tracked_convertor> entry) {
    std::unique_ptr<tracked_convertor> old;  // finished without the lock
    std::lock_guard<std::mutex> guard(mutex_);
    std::unique_ptr<tracked_convertor> &place = entries_[convertor];
    old = std::move(place);
    place = std::move(entry);
    size_.store(entries_.size(), std::memory_order_relaxed);
}

void convertor_tracker::forget(const void *convertor) noexcept {
    std::unique_ptr<tracked_convertor> old;
    std::lock_guard<std::mutex> guard(mutex_);
    auto found = entries_.find(convertor);
    if (found != entries_.end()) {
        old = std::move(found->second);
        entries_.erase(found);
        size_.store(entries_.size(), std::memory_order_relaxed);
    }
}

tracked_convertor *convertor_tracker::find(const void *convertor) noexcept {
    std::lock_guard<std::mutex> guard(mutex_);
    auto found = entries_.find(convertor);
    return found != entries_.end() ? found->second.get() : nullptr;
}

}  // namespace cuda_nc::hooks
