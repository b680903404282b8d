// The calls of UCP by which a message of the matrix is sent and received.
#pragma once

#include <ucp/api/ucp.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>

#include "test/uct/endpoints.hpp"
#include "test/uct/messages.hpp"

namespace matrix::calls {

inline bool is_active(const message &one) {
    return one.call == 'a' || one.call == 'e' || one.call == 'r';
}

// Half of the messages may end at once; half of those that may be told so are told their memory.
inline ucp_request_param_t parameters(const message &one, const buffer &of) {
    ucp_request_param_t made = {};
    made.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE;
    made.datatype = of.datatype();
    // UCX passes over the datatype of an active message that has this flag.
    const bool loses_type =
        is_active(one) && (one.call == 'e' || made.datatype == UCP_DATATYPE_IOV);
    if (one.id % 2 == 0 && (!loses_type || (of.is_list_on_gpu() && one.call != 'e'))) {
        made.op_attr_mask |= UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
    }
    if (of.is_list_on_gpu() && one.id % 4 < 2) {
        made.op_attr_mask |= UCP_OP_ATTR_FIELD_MEMORY_TYPE;
        made.memory_type = UCS_MEMORY_TYPE_CUDA;
    }
    return made;
}

// ---- active messages. Their header is the message's number and as many more bytes as it says.

constexpr unsigned active_id = 3;
struct header {
    int id;
    char more[97];
    size_t length() const { return sizeof(id) + static_cast<size_t>(id) % sizeof(more); }
};

struct expected_message {
    const message *what;
    buffer *target;
    void *handle;
    bool begun;
};
inline std::map<int, expected_message> expected;
inline std::map<int, void *> arrived;  // data, kept
inline std::map<int, header> headers;  // until the send has ended
inline int last_abandoned = -1;

inline void *receive_data(const message &one, buffer &target, void *data) {
    ucp_request_param_t how = parameters(one, target);
    return ucp_am_recv_data_nbx(worker, data, target.address(), target.count(), &how);
}

inline ucs_status_t on_active_message(void *, const void *start, size_t length, void *data, size_t,
                                      const ucp_am_recv_param_t *param) {
    header got;
    std::memcpy(&got, start, std::min(length, sizeof(got)));
    if (length != got.length() ||
        (param->recv_attr & (UCP_AM_RECV_ATTR_FLAG_RNDV | UCP_AM_RECV_ATTR_FLAG_DATA)) == 0) {
        fail("an active message with another header, or data that does not stay");
    }
    for (size_t i = sizeof(got.id); i < length; ++i) {
        if (got.more[i - sizeof(got.id)] != static_cast<char>(got.id + static_cast<int>(i))) {
            fail("an active message with a wrong header");
        }
    }
    if (got.id <= last_abandoned) {
        return UCS_OK;
    }
    auto found = expected.find(got.id);
    if (found == expected.end()) {
        arrived[got.id] = data;
        return UCS_INPROGRESS;
    }
    expected_message &one = found->second;
    one.handle = receive_data(*one.what, *one.target, data);
    one.begun = true;
    return UCS_PTR_IS_PTR(one.handle) ? UCS_INPROGRESS : UCS_OK;
}

inline void expect_active_messages() {
    ucp_am_handler_param_t param = {};
    param.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                       UCP_AM_HANDLER_PARAM_FIELD_CB;
    param.id = active_id;
    param.flags = UCP_AM_FLAG_WHOLE_MSG | UCP_AM_FLAG_PERSISTENT_DATA;
    param.cb = on_active_message;
    check(ucp_worker_set_am_recv_handler(worker, &param), "ucp_worker_set_am_recv_handler");
}

inline void *send_active(const message &one, buffer &source, ucp_ep_h ep,
                         ucp_request_param_t &how) {
    header &sent = headers[one.id];
    sent.id = one.id;
    for (size_t i = sizeof(sent.id); i < sent.length(); ++i) {
        sent.more[i - sizeof(sent.id)] = static_cast<char>(sent.id + static_cast<int>(i));
    }
    if (one.call != 'a') {
        how.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
        how.flags = one.call == 'e' ? UCP_AM_SEND_FLAG_EAGER : UCP_AM_SEND_FLAG_RNDV;
    }
    return ucp_am_send_nbx(ep, active_id, &sent, sent.length(), source.address(), source.count(),
                           &how);
}

// ---- all of them

inline void *send(const message &one, buffer &source, ucp_ep_h ep) {
    ucp_request_param_t how = parameters(one, source);
    const auto tag = static_cast<ucp_tag_t>(one.id);
    if (is_active(one)) {
        return send_active(one, source, ep, how);
    }
    return one.call == 's' ? ucp_tag_send_sync_nbx(ep, source.address(), source.count(), tag, &how)
                           : ucp_tag_send_nbx(ep, source.address(), source.count(), tag, &how);
}

// False: it cannot begin before the message is there.
inline bool receive(const message &one, buffer &target, void **handle_p) {
    if (is_active(one)) {
        auto found = arrived.find(one.id);
        if (found == arrived.end()) {
            expected[one.id] = {&one, &target, nullptr, false};
            return false;
        }
        *handle_p = receive_data(one, target, found->second);
        arrived.erase(found);
        return true;
    }
    if (one.call == 'm') {
        return false;
    }
    ucp_request_param_t how = parameters(one, target);
    *handle_p = ucp_tag_recv_nbx(worker, target.address(), target.count(),
                                 static_cast<ucp_tag_t>(one.id), ~ucp_tag_t(0), &how);
    return true;
}

// Of a receive that could not begin before. False: it still cannot.
inline bool begin(const message &one, buffer &target, void **handle_p) {
    if (is_active(one)) {
        auto found = expected.find(one.id);
        if (found == expected.end() || !found->second.begun) {
            return false;
        }
        *handle_p = found->second.handle;
        expected.erase(found);
        return true;
    }
    ucp_tag_recv_info_t info = {};
    ucp_tag_message_h there =
        ucp_tag_probe_nb(worker, static_cast<ucp_tag_t>(one.id), ~ucp_tag_t(0), 1, &info);
    if (there == nullptr) {
        return false;
    }
    if (info.length != one.bytes) {
        fail("a probed message of another length");
    }
    ucp_request_param_t how = parameters(one, target);
    *handle_p = ucp_tag_msg_recv_nbx(worker, target.address(), target.count(), there, &how);
    return true;
}

// What has not been received by now never will be.
inline void abandon_all_up_to(int last) {
    last_abandoned = std::max(last_abandoned, last);
    while (!arrived.empty() && arrived.begin()->first <= last) {
        ucp_am_data_release(worker, arrived.begin()->second);
        arrived.erase(arrived.begin());
    }
    for (auto one = expected.begin(); one != expected.end() && one->first <= last;) {
        one = one->second.begun ? std::next(one) : expected.erase(one);
    }
}

}  // namespace matrix::calls
