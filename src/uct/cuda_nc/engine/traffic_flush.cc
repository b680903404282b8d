// Flushes: the carrier knows nothing of what waits here.
#include "uct/cuda_nc/engine/traffic.hpp"

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

bool traffic::holds_back(const endpoint &ep, uint64_t place) const noexcept {
    return has_unsent(&ep) ||
           std::any_of(held_.begin(), held_.end(), [&ep, place](const held_request &one) {
               return one.ep == &ep && one.place < place;
           });
}

// UCS_ERR_NO_RESOURCE would not do: UCP asks again while its request waits, so that nobody could
// tell which of its requests an add_pending() would be for.
ucs_status_t traffic::flush(endpoint &ep, unsigned flags, uct_completion *completion) noexcept try {
    if ((flags & flush_flag::cancel) != 0) {
        end_flushes(ep, UCS_ERR_CANCELED);
    } else if (holds_back(ep, next_place_)) {
        if (completion != nullptr) {
            flushes_.push_back({&ep, flags, completion, next_place_});
            start_progress();
        }
        return UCS_INPROGRESS;
    }
    return flush_carrier(ep, flags, completion);
} catch (const std::bad_alloc &) {
    return UCS_ERR_NO_MEMORY;
}

unsigned traffic::progress_flushes() noexcept {
    unsigned happened = 0;
    for (size_t i = 0; i < flushes_.size();) {
        const held_flush one = flushes_[i];
        ucs_status_t status = holds_back(*one.ep, one.place)
                                  ? UCS_ERR_NO_RESOURCE
                                  : flush_carrier(*one.ep, one.flags, one.completion);
        if (status == UCS_ERR_NO_RESOURCE) {
            ++i;
            continue;
        }
        flushes_.erase(flushes_.begin() + static_cast<ptrdiff_t>(i));
        ++happened;
        if (status != UCS_INPROGRESS) {
            complete(one.completion, status);
            i = 0;  // whatever that has changed
        }
    }
    return happened;
}

void traffic::end_flushes(const endpoint &ep, ucs_status_t status) noexcept {
    for (size_t i = 0; i < flushes_.size();) {
        const held_flush one = flushes_[i];
        if (one.ep != &ep) {
            ++i;
            continue;
        }
        flushes_.erase(flushes_.begin() + static_cast<ptrdiff_t>(i));
        complete(one.completion, status);
        i = 0;  // likewise
    }
}

}  // namespace cuda_nc::uct
