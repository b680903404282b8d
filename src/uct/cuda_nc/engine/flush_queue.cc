#include "uct/cuda_nc/engine/flush_queue.hpp"

#include <algorithm>
#include <new>

#include "uct/cuda_nc/ep.hpp"

namespace cuda_nc::uct {

using namespace abi;

namespace {

ucs_status_t flush_carrier(endpoint &ep, unsigned flags, uct_completion *completion) noexcept {
    return ep.carrier->iface->ops.ep_flush(ep.carrier, flags, completion);
}

void complete(uct_completion *completion, ucs_status_t status) noexcept {
    if (completion->status == UCS_OK) {
        completion->status = status;
    }
    if (--completion->count == 0) {
        completion->func(completion);
    }
}

}  // namespace

bool flush_queue::is_blocked(const endpoint &ep, uint64_t place) const noexcept {
    return unsent_.has_unsent(&ep) || pending_.holds(ep, place);
}

// UCS_ERR_NO_RESOURCE would not do: UCP would then add its flush as a pending request, and nobody
// could tell it from the request of a refused message.
ucs_status_t flush_queue::flush(endpoint &ep, unsigned flags, uct_completion *completion) noexcept
    try {
    if ((flags & flush_flag::cancel) != 0) {
        end(ep, UCS_ERR_CANCELED);
    } else if (is_blocked(ep, pending_.next_place())) {
        if (completion != nullptr) {
            const held_flush one = {flags, completion, pending_.next_place()};
            auto found = all_.find(&ep);
            if (found != all_.end()) {
                found->second.push_back(one);
            } else {
                all_.emplace(&ep, std::deque<held_flush>{one});
            }
            progress_.start();
        }
        return UCS_INPROGRESS;
    }
    return flush_carrier(ep, flags, completion);
} catch (const std::bad_alloc &) {
    return UCS_ERR_NO_MEMORY;
}

flush_queue::held_flush flush_queue::extract(const endpoint &ep) noexcept {
    const auto found = all_.find(&ep);
    const held_flush one = found->second.front();
    found->second.pop_front();
    if (found->second.empty()) {
        all_.erase(found);
    }
    return one;
}

unsigned flush_queue::progress_those_of(endpoint &ep) noexcept {
    unsigned happened = 0;
    for (auto found = all_.find(&ep); found != all_.end(); found = all_.find(&ep)) {
        const held_flush one = found->second.front();
        const ucs_status_t status = is_blocked(ep, one.place)
                                        ? UCS_ERR_NO_RESOURCE
                                        : flush_carrier(ep, one.flags, one.completion);
        if (status == UCS_ERR_NO_RESOURCE) {
            break;
        }
        extract(ep);
        ++happened;
        if (status != UCS_INPROGRESS) {
            complete(one.completion, status);  // which may change the queue
        }
    }
    return happened;
}

// So many endpoints at a time, one after the other.
unsigned flush_queue::progress() noexcept {
    constexpr size_t most = 16;
    unsigned happened = 0;
    for (size_t looks = std::min(most, all_.size()); looks != 0 && !all_.empty(); --looks) {
        auto at = all_.upper_bound(last_visited_);
        at = at != all_.end() ? at : all_.begin();
        last_visited_ = at->first;
        happened += progress_those_of(*at->first);
    }
    return happened;
}

void flush_queue::end(const endpoint &ep, ucs_status_t status) noexcept {
    while (all_.count(&ep) != 0) {
        complete(extract(ep).completion, status);
    }
}

bool flush_queue::has_ready() const noexcept {
    return std::any_of(all_.begin(), all_.end(), [this](const auto &one) {
        return !is_blocked(*one.first, one.second.front().place);
    });
}

}  // namespace cuda_nc::uct
