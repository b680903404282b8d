// An endpoint: the carrier's, and ours in front of it.
#pragma once

#include <array>

#include "uct/cuda_nc/memory/process_id.hpp"
#include "uct/cuda_nc/memory/retry_pause.hpp"
#include "uct/cuda_nc/ucx/abi_parameters.hpp"

namespace cuda_nc::uct {

// Whether the peer finds by UCP's requests which of its receives an offer is for.
enum class receivers_known : uint8_t {
    yes,      // as is believed at first
    perhaps,  // it has not found one yet: an offer carries first bytes where it can
    no        // it must
};

struct endpoint;

// A message that uses an endpoint. Each endpoint has a list of those that use it, in the order in
// which they came: who closes it meets no others.
class endpoint_user {
  public:
    // The endpoint goes away; `other` leads to the same peer, null: none does. Uses this one no
    // more when it returns, if it exists then.
    virtual void endpoint_closed(endpoint *other) noexcept = 0;

  protected:
    endpoint_user() noexcept = default;
    ~endpoint_user() { use(nullptr); }
    endpoint_user(const endpoint_user &) = delete;
    endpoint_user &operator=(const endpoint_user &) = delete;
    // From now on, in place of the one before; null: none.
    void use(endpoint *ep) noexcept;

  private:
    endpoint *used_ = nullptr;
    endpoint_user *before_ = nullptr, *after_ = nullptr;
};

struct endpoint {
    abi::uct_ep super;
    abi::uct_ep *carrier;        // owned
    uint64_t peer = 0;           // identity of the interface there; 0: the carrier does not say
    bool may_go_direct = false;  // direct messages may be offered
    bool is_loopback = false;    // to this very interface
    bool by_network = false;     // it is on another host, and the carrier moves GPU memory there
    receivers_known known_receivers = receivers_known::yes;
    // Memory there that could not be reached: what it lends on GPUs, and on the host; contiguous
    // memory that it receives into.
    retry_pause no_lent_memory, no_host_slots, no_straight;
    // There is no way to it at the moment, but UCP's.
    bool is_out_of_reach() const noexcept {
        return no_lent_memory.is_on() && no_host_slots.is_on();
    }
    // Offers of contiguous memory: whether the peer wants ours; whether it has been told that we do
    // not want its own; how many were of no use since one was taken, and after how many it is told.
    bool describes = true;
    bool told_not_to_describe = false;
    uint32_t untaken = 0, most_untaken = 64;
    // Those that were, or might have been, offered early while receivers_known::perhaps.
    uint32_t offers_in_doubt = 0;
    // Layouts, by parts of their hashes, of which the peer has pulled a short message; each has a
    // place of its own, by its hash. 0: none.
    std::array<uint64_t, 16> pulled = {};
    uint32_t carrier_pid = 0;  // of the peer, as the carrier knows it, in our numbering; 0: unknown
    process_id process = {};   // of the peer, as it named it first
    process_id process_by_carrier = {};  // process_of_peer()'s
    // peers.hpp: whether its peer was made known; the one that came before it, or those that were
    // connected before it and after it to the same peer.
    bool has_come = false;
    endpoint *older = nullptr, *newer = nullptr;
    endpoint_user *first_user = nullptr, *last_user = nullptr;

    static endpoint &of(abi::uct_ep *ep) { return *reinterpret_cast<endpoint *>(ep); }
};

inline void endpoint_user::use(endpoint *ep) noexcept {
    if (used_ != nullptr) {
        (before_ != nullptr ? before_->after_ : used_->first_user) = after_;
        (after_ != nullptr ? after_->before_ : used_->last_user) = before_;
    }
    used_ = ep;
    before_ = after_ = nullptr;
    if (ep != nullptr) {
        before_ = ep->last_user;
        (before_ != nullptr ? before_->after_ : ep->first_user) = this;
        ep->last_user = this;
    }
}

// Whether the peer may say that it is `process`: it always names the same one, and none but that
// which the carrier sends to. Remembers the first, unless it has ended. All zero, "not known", is
// always right. `own` is our process.
bool agree_on_process(endpoint &ep, const process_id &process, const process_id &own) noexcept;

// As the peer named it, or as the carrier knows it; all zero: unknown.
process_id process_of_peer(endpoint &ep) noexcept;

// Orders the puts to this peer before the messages that follow. UCS_ERR_NO_RESOURCE: later.
ucs_status_t fence_puts(endpoint &ep) noexcept;

// Fills the endpoints' members of an interface's operations.
void set_endpoint_ops(abi::uct_iface_ops &ops) noexcept;

// Members of every release's uct_iface_internal_ops.
ucs_status_t query_ep(abi::uct_ep *ep, void *attr) noexcept;
ucs_status_t invalidate_ep(abi::uct_ep *ep, const void *params) noexcept;
ucs_status_t connect_to_ep(abi::uct_ep *ep, const void *device_address, const void *ep_address,
                           const void *params) noexcept;
int ep_is_connected(abi::uct_ep *ep, const abi::uct_ep_is_connected_params *params) noexcept;

}  // namespace cuda_nc::uct
