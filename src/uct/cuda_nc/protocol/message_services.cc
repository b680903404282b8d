#include "uct/cuda_nc/protocol/message_services.hpp"

#include "ucs/base/settings.hpp"
#include "uct/cuda_nc/iface.hpp"
#include "uct/cuda_nc/thread_context.hpp"

namespace cuda_nc::uct {

void deliver_rndv_data(interface &iface, void *data, size_t length, unpack_call &call) noexcept {
    const abi::uct_am_handler &handler = iface.super.am[wire::rndv_data_id];
    unpack_call::current_ = &call;
    handler.cb(handler.arg, data, length, 0);
    unpack_call::current_ = nullptr;
}

bool uses_pipes() noexcept {
    return config().pipe && !config().launches_block;
}

}  // namespace cuda_nc::uct
