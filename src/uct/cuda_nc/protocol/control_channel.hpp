// Sends control messages: in order for each endpoint, later where the carrier has no room, and to
// peers to which no endpoint leads at the moment. Used with UCX's worker locked.
#pragma once

#include <cstdint>
#include <deque>
#include <map>

#include "uct/cuda_nc/engine/message_owner.hpp"
#include "uct/cuda_nc/engine/progress_hook.hpp"
#include "uct/cuda_nc/protocol/wire.hpp"

namespace cuda_nc::uct {

class control_channel final : public unsent_messages {
  public:
    control_channel(interface &iface, progress_hook &progress) noexcept
        : iface_(iface), progress_(progress) {}

    // Now or later. Null: the endpoint is closed, and nothing is sent.
    void send(endpoint *ep, const wire::control &message) noexcept;
    // False: there is no room, and nothing was sent.
    bool send_now(endpoint &ep, const wire::control &message) noexcept;

    // A message of `kind` without further content about messages `to` (the peer's) and `from`
    // (ours).
    void send(endpoint *ep, wire::control_kind kind, uint64_t to, uint64_t from) noexcept;
    // The same by way of any endpoint to the peer's interface. Where there is none the message is
    // kept until there is one.
    void send_to_interface(uint64_t interface, wire::control_kind kind, uint64_t to,
                           uint64_t from) noexcept;

    // Sends what had no room; says how many.
    unsigned progress() noexcept;
    bool has_unsent(const endpoint *ep) const noexcept override;
    bool empty() const noexcept { return unsent_.empty(); }

    // `ep` leads to its peer from now on: says what was kept for the peer.
    void endpoint_connected(endpoint &ep) noexcept;
    // The endpoint goes away. What its peer cannot do without is kept.
    void endpoint_closed(const endpoint &ep) noexcept;

  private:
    struct unsent {
        endpoint *ep;
        wire::control message;
    };
    // Without it the peer waits for ever, or keeps memory.
    struct kept {
        wire::control_kind kind;
        uint64_t to, from;
    };

    bool try_send(endpoint &ep, const wire::control &message) noexcept;
    void keep(uint64_t interface, const kept &what) noexcept;

    interface &iface_;
    progress_hook &progress_;
    std::deque<unsent> unsent_;
    std::multimap<uint64_t, kept> kept_;  // by the peer's interface
};

}  // namespace cuda_nc::uct
