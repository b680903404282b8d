// An interface: the carrier's, opened on the same worker, and ours in front of it.
//
// Sends go from our endpoint to the carrier's. Active messages arrive at the carrier's handlers;
// while UCX lets the interface progress these are UCX's own, so nothing stands between. Before and
// after, when UCX may set others at any time, they lead through our table.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "uct/cuda_nc/address.hpp"
#include "uct/cuda_nc/ep.hpp"
#include "uct/cuda_nc/md.hpp"
#include "uct/cuda_nc/memory/lent_memory.hpp"

namespace cuda_nc::uct {

class direct_messages;
class put_slots;

// A record that the rooms of the transport read. It is made and destroyed in iface.cc, which knows
// the classes that are only named here.
struct interface {
    abi::uct_base_iface super;
    const ucx_api *ucx;
    abi::uct_iface *carrier;  // owned
    address_header address;
    // Other threads than that which has the worker touch these: peers.hpp.
    std::mutex endpoints_mutex;
    std::unordered_map<abi::uct_ep *, endpoint *> endpoints;  // by the carrier's, which errors name
    endpoint *last_newcomer = nullptr;                        // not among `peers` yet
    std::atomic<bool> has_newcomers{false};
    int newcomers_call = -1;  // UCX's number of a callback; -1: none

    // Null: the carrier has no room for their control messages, or DIRECT=n.
    std::unique_ptr<direct_messages> messages;
    std::unordered_map<uint64_t, endpoint *> peers;  // by identity: that connected last

    double datatype_slowness = 1;  // selection.hpp

    bool is_progressed = false;  // UCX has endpoints of ours, and calls the carrier's progress

    bool to_endpoints;           // the carrier connects endpoints, and no endpoint to an interface
    bool within_machine;         // it leads nowhere else, and copies what it is given
    carrier_memory *gpu_memory;  // null: the carrier moves none to other hosts
    size_t longest_put;          // bytes
    size_t longest_bcopy;        // bytes, of an am_bcopy
    size_t longest_short;        // bytes, of an am_short, its header among them; 0: there is none

    // Until the carrier is closed its network may touch these, for peers that fell silent.
    std::vector<region> open_to_peers;
    std::vector<std::unique_ptr<put_slots>> unfinished_puts;

    // The argument of a handler that leads through our table.
    struct detour {
        const abi::uct_am_handler *handler;
    } detours[abi::max_am_ids];

    static interface &of(abi::uct_iface *iface) { return *reinterpret_cast<interface *>(iface); }
};

// Member of uct_tl.
ucs_status_t open_iface(abi::uct_md *md, void *worker, const abi::uct_iface_params *params,
                        const abi::uct_iface_config *config, abi::uct_iface **iface_p) noexcept;

}  // namespace cuda_nc::uct
