#include "uct/cuda_nc/protocol/message_services.hpp"

#include "ucs/base/settings.hpp"
#include "uct/cuda_nc/iface.hpp"
#include "uct/cuda_nc/thread_context.hpp"

namespace cuda_nc::uct {

message_services::message_services(interface &its_iface, progress_hook::callback function,
                                   void *argument) noexcept
    : iface(its_iface), progress(*its_iface.ucx, its_iface.super.worker, function, argument) {}

ucs_status_t deliver_to_ucp(interface &iface, uint8_t id, void *data, size_t length) noexcept {
    const abi::uct_am_handler &handler = iface.super.am[id];
    return handler.cb(handler.arg, data, length, 0);
}

void deliver_rndv_data(interface &iface, void *data, size_t length, unpack_call &call) noexcept {
    unpack_call::current_ = &call;
    deliver_to_ucp(iface, wire::rndv_data_id, data, length);
    unpack_call::current_ = nullptr;
}

bool uses_pipes() noexcept {
    return config().pipe && !config().launches_block;
}

}  // namespace cuda_nc::uct
