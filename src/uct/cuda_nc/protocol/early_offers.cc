#include "uct/cuda_nc/protocol/early_offers.hpp"

#include <cstring>
#include <iterator>
#include <new>

#include "ucs/base/compiler.hpp"

namespace cuda_nc::uct {

early_offers::arriving::arriving(early_offers &at, uint64_t request, const entry *offer) noexcept
    : at_(at),
      key_(request, offer != nullptr ? offer->what.identity : 0),
      offer_(offer),
      outer_(at.arriving_) {
    if (offer != nullptr && !at_.all_.empty()) {
        at_.all_.erase(key_);
    }
    at_.arriving_ = this;
}

early_offers::arriving::~arriving() {
    at_.arriving_ = outer_;
    if (offer_ != nullptr) {
        at_.add(key_, *offer_);
    }
}

void early_offers::add(const key &where, const entry &offer) noexcept try {
    sweep();
    constexpr size_t most = 65536;  // beyond, the sender offers again with UCP's data
    if (all_.size() >= most) {
        return;
    }
    if (unused_.empty()) {
        all_.insert_or_assign(where, offer);
        return;
    }
    map::node_type node = std::move(unused_.back());
    unused_.pop_back();
    node.key() = where;
    node.mapped() = offer;
    map::insert_return_type inserted = all_.insert(std::move(node));
    if (!inserted.inserted) {
        inserted.position->second = offer;
        keep(std::move(inserted.node));
    }
} catch (const std::bad_alloc &) {
    // the sender offers again with UCP's data
}

void early_offers::keep(map::node_type &&unused) noexcept try {
    constexpr size_t most = 256;
    if (unused_.size() < most) {
        unused_.push_back(std::move(unused));
    }
} catch (const std::bad_alloc &) {
    // it is freed
}

early_offers::arriving *early_offers::find_arriving(const key &where) const noexcept {
    arriving *one = arriving_;
    while (one != nullptr && (one->offer_ == nullptr || one->key_ != where)) {
        one = one->outer_;
    }
    return one;
}

void early_offers::withdraw(const wire::control &message) noexcept {
    sweep();
    auto found = all_.find({message.offset, message.identity});
    if (found != all_.end() && found->second.what.message == message.from) {
        all_.erase(found);
    }
}

// Whose it is cannot be told: the offers of all peers that have used that number are void.
void early_offers::forget_number(const void *data, size_t length) noexcept {
    wire::rts_head rts;
    if (length < offsetof(wire::rts_head, address)) {
        return;
    }
    std::memcpy(&rts, data, offsetof(wire::rts_head, address));
    for (auto at = all_.lower_bound({rts.request, 0});
         at != all_.end() && at->first.first == rts.request;) {
        at = all_.erase(at);
    }
}

early_offers::taken early_offers::extract(uint64_t request, uint64_t identity) noexcept {
    sweep();
    const key where = {request, identity};
    if (arriving *now = find_arriving(where)) {
        return taken(std::exchange(now->offer_, nullptr));
    }
    auto found = all_.find(where);
    if (found == all_.end()) {
        return {};
    }
    return {*this, all_.extract(found)};
}

bool early_offers::forget_plain(uint64_t request, uint64_t identity) noexcept {
    sweep();
    const key where = {request, identity};
    if (arriving *now = find_arriving(where)) {
        const bool is_plain = now->offer_->what.message == 0;
        now->offer_ = is_plain ? nullptr : now->offer_;
        return is_plain;
    }
    auto found = all_.find(where);
    if (found == all_.end() || found->second.what.message != 0) {
        return false;
    }
    all_.erase(found);
    return true;
}

void early_offers::endpoint_closed(uint64_t identity) noexcept {
    for (arriving *one = arriving_; one != nullptr; one = one->outer_) {
        one->offer_ = one->key_.second == identity ? nullptr : one->offer_;
    }
    if (all_.empty()) {
        return;
    }
    try {
        closed_.insert(identity);
    } catch (const std::bad_alloc &) {
        sweep();
        erase_if([identity](uint64_t of) { return of == identity; });
    }
}

void early_offers::sweep() noexcept {
    if (CUDA_NC_LIKELY(closed_.empty())) {
        return;
    }
    erase_if([this](uint64_t of) { return closed_.count(of) != 0; });
    closed_.clear();
}

template <typename function>
void early_offers::erase_if(function is_void) noexcept {
    swept_ += all_.size();
    for (auto at = all_.begin(); at != all_.end();) {
        at = is_void(at->first.second) ? all_.erase(at) : std::next(at);
    }
}

}  // namespace cuda_nc::uct
