// The latest sends that have ended without an answer, and so without a FIN. An answer that was lost
// with its endpoint leaves the receiver waiting for a cancel, for which it asks by "stop".
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "uct/cuda_nc/memory/quarantine.hpp"

namespace cuda_nc::uct {

class unanswered_sends {
  public:
    void add(message_of_peer ended) noexcept { latest_[next_++ % latest_.size()] = ended; }
    bool has(message_of_peer message) const noexcept {
        return message.number != 0 &&
               std::any_of(latest_.begin(), latest_.end(), [&](const message_of_peer &one) {
                   return one.number == message.number && one.peer == message.peer;
               });
    }

  private:
    std::array<message_of_peer, 256> latest_ = {};
    size_t next_ = 0;
};

}  // namespace cuda_nc::uct
