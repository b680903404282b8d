// Which of our receives UCP's rendezvous data is for, told by UCP's own request.
//
// Outside peer-error mode UCP names its request by its address, and the request keeps the state
// that our datatype gave it, in every release at the same place. That is no promise of UCP's, so
// what is found there is believed because nothing else has it: a state in use is a number that
// nobody guesses. Messages that say otherwise whose they are confirm it or not, and once one did
// not nothing is believed any more.
#pragma once

#include <cstdint>
#include <cstring>

#include "ucs/base/log.hpp"
#include "uct/cuda_nc/user_buffer.hpp"
#include "uct/cuda_nc/protocol/wire.hpp"

namespace cuda_nc::uct {

// Of the addresses that a program gets without asking for higher ones.
#ifdef __x86_64__
constexpr unsigned address_bits = 47;
#else
constexpr unsigned address_bits = 48;
#endif

class request_finder {
  public:
    static bool is_address(uint64_t request) noexcept {
        constexpr uint64_t least_address = 1 << 16;
        return request >= least_address && request % alignof(uint64_t) == 0 &&
               request >> address_bits == 0;
    }

    // The word where the state of `request` would be; 0: it is not an address.
    static uint64_t read(uint64_t request) noexcept {
        uint64_t word = 0;
        if (is_address(request)) {
            std::memcpy(&word, reinterpret_cast<const char *>(request) + wire::request_state_offset,
                        sizeof(word));
        }
        return word;
    }

    // A request by address, whose word was `word`, turned out to belong to the receive known by
    // `state`.
    void learn(uint64_t word, uint64_t state) noexcept {
        if (state != 0 && belief_ != belief::refuted) {  // 0: it has none
            believe(word == state ? belief::confirmed : belief::refuted);
        }
    }

    // The end whose ucx_state() is `state`; null: it has ended, or there never was one.
    static user_buffer *find_state(uint64_t state) noexcept {
        auto *finder = buffer_finder.load(std::memory_order_acquire);
        return finder != nullptr ? finder(state) : nullptr;
    }

    // The receive; null: not ours, or not known.
    user_buffer *find(uint64_t request) noexcept {
        user_buffer *end = belief_ != belief::refuted ? find_any(request) : nullptr;
        if (end == nullptr || end->sends()) {
            return nullptr;
        }
        believe(belief::confirmed);
        return end;
    }

    // The same of a send.
    user_buffer *find_send(uint64_t request) const noexcept {
        user_buffer *end = find_any(request);
        return end != nullptr && end->sends() ? end : nullptr;
    }

    // What the sender of a message for `request` is told: whether its offers can do without first
    // bytes.
    uint32_t answer_flags(uint64_t request) const noexcept {
        return belief_ == belief::refuted || !is_address(request) ? wire::unknown_receivers
               : belief_ == belief::confirmed                     ? wire::known_receivers
                                                                  : 0;
    }

  private:
    static user_buffer *find_any(uint64_t request) noexcept { return find_state(read(request)); }

    enum class belief : uint8_t { none, confirmed, refuted };

    void believe(belief what) noexcept {
        if (belief_ != what) {
            belief_ = what;
            nc_debug("messages for GPU memory are %s by UCP's requests",
                     what == belief::confirmed ? "known" : "not known");
        }
    }

    belief belief_ = belief::none;
};

}  // namespace cuda_nc::uct
