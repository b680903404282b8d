// Operations that do nothing but the carrier's: each is made from the member of UCX's table.
#pragma once

#include "uct/cuda_nc/ep.hpp"
#include "uct/cuda_nc/md.hpp"

namespace cuda_nc::uct {

template <auto member>
struct ep_forward;

template <typename result, typename... arguments,
          result (*abi::uct_iface_ops::*member)(abi::uct_ep *, arguments...)>
struct ep_forward<member> {
    static result call(abi::uct_ep *ep, arguments... values) {
        abi::uct_ep *carrier = endpoint::of(ep).carrier;
        return (carrier->iface->ops.*member)(carrier, values...);
    }
};

template <auto member>
struct md_forward;

template <typename result, typename... arguments,
          result (*abi::uct_md_ops::*member)(abi::uct_md *, arguments...)>
struct md_forward<member> {
    static result call(abi::uct_md *md, arguments... values) {
        abi::uct_md *carrier = memory_domain::of(md).carrier;
        return (carrier->ops->*member)(carrier, values...);
    }
};

}  // namespace cuda_nc::uct
