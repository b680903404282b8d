#include "uct/cuda_nc/protocol/early_offers.hpp"

#include <cstddef>
#include <cstring>
#include <iterator>
#include <new>

namespace cuda_nc::uct {

namespace {

template <typename number>
number read(const void *message, size_t offset) noexcept {
    number value;
    std::memcpy(&value, static_cast<const char *>(message) + offset, sizeof(value));
    return value;
}

}  // namespace

early_offers::place early_offers::place_of(const void *message) noexcept {
    return {read<uint64_t>(message, offsetof(wire::control, offset)),
            read<uint64_t>(message, offsetof(wire::control, identity)),
            read<uint64_t>(message, offsetof(wire::control, from)),
            read<uint64_t>(message, offsetof(wire::control, length))};
}

void early_offers::add(const place &where, const void *message) noexcept try {
    constexpr size_t most = 65536;  // beyond, the sender offers again with UCP's data
    const std::pair<uint64_t, uint64_t> key = {where.request, where.identity};
    if (all_.size() >= most) {
        return;
    }
    map::iterator at;
    if (unused_.empty()) {
        at = all_.try_emplace(key).first;
    } else {
        map::node_type node = std::move(unused_.back());
        unused_.pop_back();
        node.key() = key;
        map::insert_return_type inserted = all_.insert(std::move(node));
        at = inserted.position;
        if (!inserted.inserted) {
            keep(std::move(inserted.node));
        }
    }
    entry &one = at->second;
    one.message = where.message;
    one.total = where.total;
    one.has_rts = false;
    one.offer = read<wire::early_offer>(message, offsetof(wire::control, early));
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

void early_offers::withdraw(const wire::control &message) noexcept {
    auto found = all_.find({message.offset, message.identity});
    if (found != all_.end() && found->second.message == message.from) {
        all_.erase(found);
    }
}

void early_offers::match_rts(const void *data, size_t length) noexcept {
    uint64_t words[3];  // the third is UCP's number of the send
    if (length < sizeof(words)) {
        return;
    }
    std::memcpy(words, data, sizeof(words));
    for (auto at = all_.lower_bound({words[2], 0});
         at != all_.end() && at->first.first == words[2];) {
        at = std::exchange(at->second.has_rts, true) ? all_.erase(at) : std::next(at);
    }
}

early_offers::taken early_offers::extract(uint64_t request, uint64_t identity) noexcept {
    auto found = all_.find({request, identity});
    if (found == all_.end() || !found->second.has_rts) {
        return {};
    }
    return {*this, all_.extract(found)};
}

bool early_offers::forget_plain(uint64_t request, uint64_t identity) noexcept {
    auto found = all_.find({request, identity});
    if (found == all_.end() || found->second.message != 0 || !found->second.has_rts) {
        return false;
    }
    all_.erase(found);
    return true;
}

void early_offers::endpoint_closed(uint64_t identity) noexcept {
    for (auto at = all_.begin(); at != all_.end();) {
        at = at->first.second == identity ? all_.erase(at) : std::next(at);
    }
}

}  // namespace cuda_nc::uct
