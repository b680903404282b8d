// What UCX asks of an interface beyond its operations, in the order of each release.
#pragma once

#include "uct/cuda_nc/ucx/ucx.hpp"

namespace cuda_nc::uct {

// UCX weighs transports by latency and overhead; ours must win over its carrier, which it is as
// good as, to be UCP's lane of active messages.
constexpr double preference = 0.9;

// A uct_iface_internal_ops of that release; lives for ever.
const void *internal_ops_of(release which) noexcept;

int is_iface_reachable(const abi::uct_iface *iface,
                       const abi::uct_iface_is_reachable_params *params) noexcept;

}  // namespace cuda_nc::uct
