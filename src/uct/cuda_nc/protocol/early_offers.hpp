// Early offers that have arrived and wait for UCP to match their message to a receive.
//
// An early offer comes before UCP's RTS, and is answered before UCP's RTR. UCP uses a send's number
// again, and may answer it in ways that do not pass here: so an offer belongs to the first RTS that
// follows it alone. Used with UCX's worker locked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "ucs/base/compiler.hpp"
#include "uct/cuda_nc/protocol/wire.hpp"

namespace cuda_nc::uct {

class early_offers {
  public:
    struct entry {
        uint64_t message = 0;  // the sender's; 0: its memory is contiguous
        uint64_t total = 0;    // bytes
        bool has_rts = false;
        wire::early_offer offer;
    };

  private:
    // By UCP's number of the send, and the identity of the sender's interface.
    using map = std::map<std::pair<uint64_t, uint64_t>, entry>;

  public:
    // An offer that has been taken out. What it holds is used again after its end.
    class taken {
      public:
        taken() noexcept = default;
        taken(early_offers &from, map::node_type &&node) noexcept
            : from_(&from), node_(std::move(node)) {}
        ~taken() {
            if (!node_.empty()) {
                from_->keep(std::move(node_));
            }
        }
        taken(const taken &) = delete;
        taken &operator=(const taken &) = delete;

        explicit operator bool() const noexcept { return !node_.empty(); }
        const entry &operator*() const noexcept { return node_.mapped(); }
        const entry *operator->() const noexcept { return &node_.mapped(); }

      private:
        early_offers *from_ = nullptr;
        map::node_type node_;
    };

    // What a control message of kind early_offer, which is length_of() it, is about.
    struct place {
        uint64_t request, identity;  // UCP's number of the send, the sender's interface
        uint64_t message, total;     // as of an entry
    };
    static place place_of(const void *control_message) noexcept;
    void add(const place &where, const void *control_message) noexcept;
    void withdraw(const wire::control &message) noexcept;
    // UCP's RTS arrives: `data` is its message.
    void handle_rts(const void *data, size_t length) noexcept {
        if (CUDA_NC_UNLIKELY(!all_.empty())) {
            match_rts(data, length);
        }
    }
    // UCP answers the send `request` of the peer `identity` with its RTR: the offer, if there is
    // one. It is not returned twice.
    taken extract(uint64_t request, uint64_t identity) noexcept;
    bool empty() const noexcept { return all_.empty(); }
    // UCP answers that send by ATS: an offer of contiguous memory was of no use. Whether there was.
    bool forget_plain(uint64_t request, uint64_t identity) noexcept;
    void endpoint_closed(uint64_t identity) noexcept;

  private:
    void match_rts(const void *data, size_t length) noexcept;
    void keep(map::node_type &&unused) noexcept;

    map all_;
    std::vector<map::node_type> unused_;
};

}  // namespace cuda_nc::uct
