#include "hooks/common/receives.hpp"

#include "hooks/common/iov_message.hpp"
#include "hooks/common/passed_call.hpp"

namespace cuda_nc::hooks {
namespace {

template <typename receiving>
void *receive_list(const ucx_instance &ucx, void *buffer, size_t count,
                   const ucp_request_param_t &param, const receiving &pass) {
    const iov_message list(ucx, buffer, count, param, iov_message::use::receive);
    const dt::ucp_api &ucp = dt::ucp_of(ucx);
    return list.is_served() ? pass(ucp, list.buffer(), list.count, &list.param())
                            : pass(ucp, buffer, count, &param);
}

// pass(ucp, buffer, count, param) is the call of UCP.
template <typename receiving>
void *receive(const void *caller, void *worker, void *buffer, size_t count, const void *param,
              const receiving &pass) {
    const auto *given = static_cast<const ucp_request_param_t *>(param);
    auto unchanged = [&](const dt::ucp_api &ucp) -> void * {
        return pass(ucp, buffer, count, given);
    };
    auto serve = [&](const ucx_instance &ucx) -> void * {
        return has_datatype(*given, UCP_DATATYPE_IOV)
                   ? receive_list(ucx, buffer, count, *given, pass)
                   : unchanged(dt::ucp_of(ucx));
    };
    return call_by(dt::ucx_of_worker(static_cast<ucp_worker_h>(worker), caller), serve, unchanged);
}

}  // namespace

namespace looked_at {

void *tag_recv_nbx(void *worker, void *buffer, size_t count, uint64_t tag, uint64_t tag_mask,
                   const void *param, const void *caller) {
    return receive(
        caller, worker, buffer, count, param,
        [=](const dt::ucp_api &ucp, void *into, size_t number, const ucp_request_param_t *chosen) {
            return ucp.tag_recv_nbx(static_cast<ucp_worker_h>(worker), into, number, tag, tag_mask,
                                    chosen);
        });
}

void *tag_msg_recv_nbx(void *worker, void *buffer, size_t count, void *message, const void *param,
                       const void *caller) {
    return receive(
        caller, worker, buffer, count, param,
        [=](const dt::ucp_api &ucp, void *into, size_t number, const ucp_request_param_t *chosen) {
            return ucp.tag_msg_recv_nbx(static_cast<ucp_worker_h>(worker), into, number,
                                        static_cast<ucp_tag_message_h>(message), chosen);
        });
}

void *am_recv_data_nbx(void *worker, void *data, void *buffer, size_t count, const void *param,
                       const void *caller) {
    return receive(
        caller, worker, buffer, count, param,
        [=](const dt::ucp_api &ucp, void *into, size_t number, const ucp_request_param_t *chosen) {
            return ucp.am_recv_data_nbx(static_cast<ucp_worker_h>(worker), data, into, number,
                                        chosen);
        });
}

}  // namespace looked_at
}  // namespace cuda_nc::hooks
