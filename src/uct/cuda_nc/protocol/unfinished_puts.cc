#include "uct/cuda_nc/protocol/unfinished_puts.hpp"

#include <new>
#include <utility>

#include "uct/cuda_nc/ep.hpp"

namespace cuda_nc::uct {

void unfinished_puts::add(std::unique_ptr<put_slots> slots, endpoint *ep, uint64_t to,
                          uint64_t from) noexcept try {
    if (slots->is_idle() && (ep == nullptr || to == 0)) {
        return;  // nobody is to be told
    }
    all_.reserve(all_.size() + 1);
    all_.push_back({std::move(slots), ep, to, from});
    progress_.start();  // nothing is sent from here: the carrier may be in the middle of a message
} catch (const std::bad_alloc &) {
    static_cast<void>(slots.release());  // the network may still read there
}

// The receiver lends its slots to others once it hears of the cancel: no put may come later. After
// a put that has failed nobody knows whether it still writes: no cancel is said.
unsigned unfinished_puts::progress() noexcept {
    unsigned happened = 0;
    for (size_t i = 0; i < all_.size();) {
        unfinished &one = all_[i];
        ucs_status_t status = one.slots->is_idle() ? UCS_OK : UCS_INPROGRESS;
        const bool says =
            status == UCS_OK && one.ep != nullptr && one.to != 0 && !one.slots->has_failed();
        if (says) {
            status = fence_puts(*one.ep);
        }
        if (status == UCS_INPROGRESS || status == UCS_ERR_NO_RESOURCE) {
            ++i;
            continue;
        }
        unfinished ended = std::move(one);
        all_.erase(all_.begin() + static_cast<ptrdiff_t>(i));
        if (says && status == UCS_OK) {
            control_.send(ended.ep, wire::control_kind::cancel, ended.to, ended.from);
        }
        ++happened;
    }
    return happened;
}

void unfinished_puts::endpoint_closed(const endpoint &ep) noexcept {
    for (unfinished &one : all_) {
        one.ep = one.ep == &ep ? nullptr : one.ep;
    }
}

void unfinished_puts::keep_all(std::vector<std::unique_ptr<put_slots>> &to) noexcept try {
    to.reserve(to.size() + all_.size());
    for (unfinished &one : all_) {
        to.push_back(std::move(one.slots));
    }
    all_.clear();
} catch (const std::bad_alloc &) {
    for (unfinished &one : all_) {
        static_cast<void>(one.slots.release());
    }
}

}  // namespace cuda_nc::uct
