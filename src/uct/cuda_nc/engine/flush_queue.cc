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
            all_.push_back({&ep, flags, completion, pending_.next_place()});
            progress_.start();
        }
        return UCS_INPROGRESS;
    }
    return flush_carrier(ep, flags, completion);
} catch (const std::bad_alloc &) {
    return UCS_ERR_NO_MEMORY;
}

unsigned flush_queue::progress() noexcept {
    unsigned happened = 0;
    for (size_t i = 0; i < all_.size();) {
        const held_flush one = all_[i];
        ucs_status_t status = is_blocked(*one.ep, one.place)
                                  ? UCS_ERR_NO_RESOURCE
                                  : flush_carrier(*one.ep, one.flags, one.completion);
        if (status == UCS_ERR_NO_RESOURCE) {
            ++i;
            continue;
        }
        all_.erase(all_.begin() + static_cast<ptrdiff_t>(i));
        ++happened;
        if (status != UCS_INPROGRESS) {
            complete(one.completion, status);
            i = 0;  // the completion may have changed the list
        }
    }
    return happened;
}

void flush_queue::end(const endpoint &ep, ucs_status_t status) noexcept {
    for (size_t i = 0; i < all_.size();) {
        const held_flush one = all_[i];
        if (one.ep != &ep) {
            ++i;
            continue;
        }
        all_.erase(all_.begin() + static_cast<ptrdiff_t>(i));
        complete(one.completion, status);
        i = 0;  // likewise
    }
}

bool flush_queue::has_ready() const noexcept {
    return std::any_of(all_.begin(), all_.end(),
                       [this](const held_flush &one) { return !is_blocked(*one.ep, one.place); });
}

}  // namespace cuda_nc::uct
