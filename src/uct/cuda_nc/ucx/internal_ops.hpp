// What UCX asks of an interface beyond its operations, in the order of each release.
#pragma once

#include "uct/cuda_nc/ucx/ucx.hpp"

namespace cuda_nc::uct {

// A uct_iface_internal_ops of that release, of interfaces in front of a carrier's; lives for ever.
const void *internal_ops_of(release which) noexcept;

// A table of functions that say "unsupported", and behind it what a later UCX would find there.
template <typename table>
struct with_later_members : table {
    abi::function later[8];

    with_later_members() noexcept {
        auto *all = reinterpret_cast<abi::function *>(this);
        for (size_t i = 0; i < sizeof(*this) / sizeof(abi::function); ++i) {
            all[i] = reinterpret_cast<abi::function>(unsupported);
        }
    }
    static ucs_status_t unsupported() { return UCS_ERR_UNSUPPORTED; }
};

int is_iface_reachable(const abi::uct_iface *iface,
                       const abi::uct_iface_is_reachable_params *params) noexcept;

}  // namespace cuda_nc::uct
