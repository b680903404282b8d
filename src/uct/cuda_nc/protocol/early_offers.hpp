// Early offers that have arrived and wait for UCP to match their message to a receive.
//
// An early offer comes with UCP's RTS, and is answered before UCP's RTR. Where the receive is
// posted already, UCP asks for its RTR while it is given the RTS: then the offer is not kept at
// all. UCP uses a send's number again, and may answer it in ways that do not pass here: so an offer
// is void when another RTS has its number. Used with UCX's worker locked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "ucs/base/compiler.hpp"
#include "uct/cuda_nc/protocol/announcement.hpp"

namespace cuda_nc::uct {

class early_offers {
  public:
    struct entry {
        announcement what;
        uint64_t total = 0;  // bytes of the message
    };

  private:
    // By UCP's number of the send, and the identity of the sender's interface.
    using key = std::pair<uint64_t, uint64_t>;
    using map = std::map<key, entry>;

  public:
    // An offer that has been taken out. What it holds is used again after its end.
    class taken {
      public:
        taken() noexcept = default;
        explicit taken(const entry *arriving) noexcept : entry_(arriving) {}
        taken(early_offers &from, map::node_type &&node) noexcept
            : from_(&from), node_(std::move(node)), entry_(&node_.mapped()) {}
        ~taken() {
            if (!node_.empty()) {
                from_->keep(std::move(node_));
            }
        }
        taken(const taken &) = delete;
        taken &operator=(const taken &) = delete;

        explicit operator bool() const noexcept { return entry_ != nullptr; }
        const entry &operator*() const noexcept { return *entry_; }
        const entry *operator->() const noexcept { return entry_; }

      private:
        early_offers *from_ = nullptr;
        map::node_type node_;
        const entry *entry_ = nullptr;
    };

    // One that UCP is being given the RTS of. What UCP has not taken by its end is kept.
    class arriving {
      public:
        // `request`: UCP's number of the send. `offer`: null, there is none.
        arriving(early_offers &at, uint64_t request, const entry *offer) noexcept;
        ~arriving();
        void forget() noexcept { offer_ = nullptr; }
        arriving(const arriving &) = delete;
        arriving &operator=(const arriving &) = delete;

      private:
        friend class early_offers;
        early_offers &at_;
        const key key_;
        const entry *offer_;     // null: taken, or void
        arriving *const outer_;  // UCP is being given that one's RTS
    };

    void withdraw(const wire::control &message) noexcept;
    // An RTS without an offer arrives: `data` is its message.
    void handle_rts(const void *data, size_t length) noexcept {
        if (CUDA_NC_UNLIKELY(!all_.empty())) {
            forget_number(data, length);
        }
    }
    // UCP answers the send `request` of the peer `identity` with its RTR: the offer, if there is
    // one. It is not returned twice, and holds as long as what is arriving.
    taken extract(uint64_t request, uint64_t identity) noexcept;
    bool empty() const noexcept { return all_.empty() && arriving_ == nullptr; }
    // UCP answers that send by ATS: an offer of contiguous memory was of no use. Whether there was.
    bool forget_plain(uint64_t request, uint64_t identity) noexcept;
    // What waits of that interface is void. It goes with the next change: who closes thousands of
    // endpoints one after the other has all offers looked at once.
    void endpoint_closed(uint64_t identity) noexcept;
    // How many offers were looked at because endpoints had been closed.
    uint64_t swept() const noexcept { return swept_; }

  private:
    void sweep() noexcept;
    template <typename function>
    void erase_if(function is_void) noexcept;
    void forget_number(const void *data, size_t length) noexcept;
    // Null: no such offer is arriving.
    arriving *find_arriving(const key &where) const noexcept;
    void add(const key &where, const entry &offer) noexcept;
    void keep(map::node_type &&unused) noexcept;

    map all_;
    std::vector<map::node_type> unused_;
    std::unordered_set<uint64_t> closed_;  // interfaces whose offers are void
    uint64_t swept_ = 0;
    arriving *arriving_ = nullptr;
};

}  // namespace cuda_nc::uct
