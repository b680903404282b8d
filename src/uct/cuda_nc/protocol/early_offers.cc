#include "uct/cuda_nc/protocol/early_offers.hpp"

#include <cstring>
#include <iterator>
#include <new>

namespace cuda_nc::uct {

void early_offers::add(const wire::control &message) noexcept try {
    constexpr size_t most = 65536;  // beyond, the sender offers again with UCP's data
    if (all_.size() < most) {
        all_[{message.offset, message.identity}] = {message.from, message.length, message.early};
    }
} catch (const std::bad_alloc &) {
    // the sender offers again with UCP's data
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

std::optional<early_offers::entry> early_offers::extract(uint64_t request,
                                                         uint64_t identity) noexcept {
    auto found = all_.find({request, identity});
    if (found == all_.end() || !found->second.has_rts) {
        return std::nullopt;
    }
    entry offer = found->second;
    all_.erase(found);
    return offer;
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
