// Which of our receives UCP's rendezvous data is for, told by UCP's own request.
//
// Outside peer-error mode UCP names its request by its address, and the request keeps the state
// that our datatype gave it, in every release at the same place. That is no promise of UCP's: it is
// believed once messages that said otherwise whose they are have confirmed it, and never again
// after one did not.
#pragma once

#include <cstdint>
#include <cstring>

#include "uct/cuda_nc/direct.hpp"

namespace cuda_nc::uct {

class request_finder {
  public:
    // The word where the state of `request` would be; 0: it is not an address.
    static uint64_t read(uint64_t request) noexcept {
        constexpr size_t state_offset = 136;
        constexpr uint64_t least_address = 1 << 16;
        if (request < least_address || request % alignof(uint64_t) != 0 || request >> 47 != 0) {
            return 0;
        }
        uint64_t word;
        std::memcpy(&word, reinterpret_cast<const char *>(request) + state_offset, sizeof(word));
        return word;
    }

    // A request whose word was `word` turned out to belong to the receive known by `state`. Returns
    // whether that is news.
    bool learn(uint64_t word, uint64_t state) noexcept {
        if (state == 0 || belief_ == belief::refuted || (word == state && known())) {
            return false;  // 0: it has none
        }
        belief_ = word == state ? belief::confirmed : belief::refuted;
        return true;
    }

    bool known() const noexcept { return belief_ == belief::confirmed; }

    // The receive; null: not ours, or not known.
    direct_end *find(uint64_t request) const noexcept {
        direct_end *end = known() ? find_any(request) : nullptr;
        return end != nullptr && !end->sends() ? end : nullptr;
    }

    // The same of a send.
    direct_end *find_send(uint64_t request) const noexcept {
        direct_end *end = find_any(request);
        return end != nullptr && end->sends() ? end : nullptr;
    }

  private:
    static direct_end *find_any(uint64_t request) noexcept {
        auto *finder = end_finder.load(std::memory_order_acquire);
        return finder != nullptr ? finder(read(request)) : nullptr;
    }

    enum class belief : uint8_t { none, confirmed, refuted };
    belief belief_ = belief::none;
};

}  // namespace cuda_nc::uct
