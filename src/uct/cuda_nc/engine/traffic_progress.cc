// What goes on while UCX progresses its worker.
#include <algorithm>
#include <utility>

#include "uct/cuda_nc/iface.hpp"
#include "uct/cuda_nc/engine/message_map.hpp"
#include "uct/cuda_nc/pipe/drive.hpp"
#include "uct/cuda_nc/protocol/receiving.hpp"
#include "uct/cuda_nc/protocol/sending.hpp"
#include "uct/cuda_nc/engine/traffic.hpp"

namespace cuda_nc::uct {

void traffic::start_progress() noexcept {
    idle_rounds_ = 0;
    if (progress_id_ == -1) {
        iface_.ucx->uct_worker_progress_register_safe(iface_.super.worker, progress_all, this, 0,
                                                      &progress_id_);
    }
}

void traffic::stop_progress() noexcept {
    if (progress_id_ != -1) {
        iface_.ucx->uct_worker_progress_unregister_safe(iface_.super.worker, &progress_id_);
        progress_id_ = -1;
    }
}

unsigned traffic::progress_all(void *self) noexcept {
    return static_cast<traffic *>(self)->progress();
}

unsigned traffic::progress_one(uint64_t message) noexcept {
    if (sending *send = find(sends_, message)) {
        return send->progress();
    }
    receiving *receive = find(receives_, message);
    return receive != nullptr ? receive->progress() : 0;
}

unsigned traffic::progress_every() noexcept {
    unsigned happened = 0;
    polled_ = false;
    for_each(sends_, [&](sending &one) {
        polled_ |= one.is_polled();
        happened += one.progress();
    });
    for_each(receives_, [&](receiving &one) {
        polled_ |= one.is_polled();
        happened += one.progress();
    });
    return happened;
}

// Those whose kernel has left.
unsigned traffic::progress_in_flight() noexcept {
    unsigned happened = 0;
    const std::vector<pipe_drive *> &all = launches_.in_flight();
    for (size_t i = 0; i < all.size();) {
        const pipe_drive *one = all[i];
        if (one->has_left()) {
            happened += progress_one(one->message());
        }
        if (i < all.size() && all[i] == one) {  // else another one has taken its place
            ++i;
        }
    }
    return happened;
}

// Those that wait for channels, in their order.
unsigned traffic::progress_waiting() noexcept {
    unsigned happened = 0;
    for (auto &[where, queue] : channels_) {
        while (!queue.waiting.empty()) {
            const uint64_t first = *queue.waiting.begin();
            happened += progress_one(first);
            if (!queue.waiting.empty() && *queue.waiting.begin() == first) {
                break;
            }
        }
    }
    return happened;
}

void traffic::await_puts(std::unique_ptr<put_slots> slots, endpoint *ep, uint64_t to,
                         uint64_t from) noexcept try {
    if (slots->is_idle() && (ep == nullptr || to == 0)) {
        return;  // nobody is to be told
    }
    puts_.reserve(puts_.size() + 1);
    puts_.push_back({std::move(slots), ep, to, from});
    start_progress();  // nothing is sent from here: the carrier may be in the middle of a message
} catch (const std::bad_alloc &) {
    static_cast<void>(slots.release());  // the network may still read there
}

// The receiver lends its slots to others once it hears of the end: no put may come later. After one
// that has failed nobody knows that, and no end is said; nor is there a way to, mostly.
unsigned traffic::progress_puts() noexcept {
    unsigned happened = 0;
    for (size_t i = 0; i < puts_.size();) {
        leaving_puts &one = puts_[i];
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
        leaving_puts ended = std::move(one);
        puts_.erase(puts_.begin() + static_cast<ptrdiff_t>(i));
        if (says && status == UCS_OK) {
            say_cancel(ended.ep, ended.to, ended.from);
        }
        ++happened;
    }
    return happened;
}

// Nobody progresses them any more.
void traffic::keep_puts() noexcept try {
    std::vector<std::unique_ptr<put_slots>> &kept = iface_.unfinished_puts;
    kept.reserve(kept.size() + puts_.size());
    for (leaving_puts &one : puts_) {
        kept.push_back(std::move(one.slots));
    }
    puts_.clear();
} catch (const std::bad_alloc &) {
    for (leaving_puts &one : puts_) {
        static_cast<void>(one.slots.release());
    }
}

void traffic::keep_until_closed(const region &memory) noexcept try {
    iface_.open_to_peers.push_back(memory);
} catch (const std::bad_alloc &) {
    // never used again
}

// Among many messages most wait for others, whose calls progress them; looking at each in every
// round took as long as all else. Rounds that look at everyone are for what nobody tells of: time,
// slots, and channels that another worker gives back.
unsigned traffic::progress() noexcept {
    constexpr unsigned rounds_until_rest = 1000;  // coming and going is not free
    constexpr unsigned rounds_between_all = 64;
    constexpr size_t few = 4;
    if (sends_.empty() && receives_.empty() && puts_.empty() && !holds_back()) {
        if (++idle_rounds_ == rounds_until_rest) {
            stop_progress();
        }
        return 0;
    }
    idle_rounds_ = 0;
    unsigned happened = unsent_.empty() ? 0 : send_unsent();
    happened += puts_.empty() ? 0 : progress_puts();
    const bool all = sends_.size() + receives_.size() <= few || ++rounds_ % rounds_between_all == 0;
    const bool every = all || happened != 0 || polled_;
    happened += every ? progress_every() : progress_in_flight();
    if (std::exchange(channels_are_free_, false)) {
        happened += progress_waiting();
    }
    launch_all();
    if (!held_.empty()) {
        happened += release_held(std::exchange(looks_at_all_held_, false) || all);
    } else {
        settled_.clear();
    }
    happened += flushes_.empty() ? 0 : progress_flushes();
    return happened;
}

bool traffic::has_settled(uint64_t message) const noexcept {
    const sending *one = find(sends_, message);
    return one == nullptr || one->is_settled();
}

bool traffic::is_busy() const noexcept {
    if (!unsent_.empty() || !puts_.empty()) {
        return true;
    }
    for (const auto &[id, one] : sends_) {
        if (one->is_busy()) {
            return true;
        }
    }
    for (const auto &[id, one] : receives_) {
        if (one->is_busy()) {
            return true;
        }
    }
    return std::any_of(held_.begin(), held_.end(),
                       [this](const held_request &one) { return has_settled(one.message); }) ||
           std::any_of(flushes_.begin(), flushes_.end(),
                       [this](const held_flush &one) { return !holds_back(*one.ep, one.place); });
}

}  // namespace cuda_nc::uct
