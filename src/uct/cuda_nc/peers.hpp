// The endpoints of an interface, and which of them leads to which peer.
//
// UCX's async thread connects endpoints too, while another thread progresses the worker: a request
// for a connection that came over InfiniBand's UD, for one. UCX creates all of a worker's endpoints
// with its async block held, but does not hold it while it progresses or sends. So a new endpoint
// waits among the newcomers, and the thread that has the worker makes its peer known, when it next
// looks for a peer or progresses.
#pragma once

#include <cstdint>

#include "uct/cuda_nc/iface.hpp"

namespace cuda_nc::uct {

// ---- while UCX creates or connects an endpoint

// Throws std::bad_alloc.
void add_endpoint(interface &iface, endpoint &ep);
// `ep.peer` is known from now on.
void add_peer(interface &iface, endpoint &ep) noexcept;

// ---- by any thread

// Null: not one of ours.
endpoint *endpoint_on(interface &iface, const abi::uct_ep *carrier) noexcept;

// ---- by who has the worker

// The endpoint to interface `identity` that was connected last; null: there is none.
endpoint *find_peer(interface &iface, uint64_t identity) noexcept;
// Says to the newcomers what was kept for their peers.
void admit_newcomers(interface &iface) noexcept;
// `ep` is none of the newcomers.
void remove_endpoint(interface &iface, endpoint &ep) noexcept;
// The interface is to be closed.
void end_newcomers(interface &iface) noexcept;

}  // namespace cuda_nc::uct
