// Early offers that have arrived and wait for UCP to match their message to a receive.
//
// An early offer comes before UCP's RTS, and is answered before UCP's RTR. UCP uses a send's number
// again, and may answer it in ways that do not pass here: so an offer belongs to the first RTS that
// follows it alone. Used with UCX's worker locked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "ucs/base/compiler.hpp"
#include "uct/cuda_nc/protocol/wire.hpp"

namespace cuda_nc::uct {

class early_offers {
  public:
    struct entry {
        uint64_t message;  // the sender's; 0: its memory is contiguous
        uint64_t total;    // bytes
        wire::early_offer offer;
        bool has_rts = false;
    };

    void add(const wire::control &message) noexcept;
    void withdraw(const wire::control &message) noexcept;
    // UCP's RTS arrives: `data` is its message.
    void handle_rts(const void *data, size_t length) noexcept {
        if (CUDA_NC_UNLIKELY(!all_.empty())) {
            match_rts(data, length);
        }
    }
    // UCP answers the send `request` of the peer `identity` with its RTR: the offer, if there is
    // one. It is not returned twice.
    std::optional<entry> extract(uint64_t request, uint64_t identity) noexcept;
    bool empty() const noexcept { return all_.empty(); }
    // UCP answers that send by ATS: an offer of contiguous memory was of no use. Whether there was.
    bool forget_plain(uint64_t request, uint64_t identity) noexcept;
    void endpoint_closed(uint64_t identity) noexcept;

  private:
    void match_rts(const void *data, size_t length) noexcept;

    // By UCP's number of the send, and the identity of the sender's interface.
    std::map<std::pair<uint64_t, uint64_t>, entry> all_;
};

}  // namespace cuda_nc::uct
