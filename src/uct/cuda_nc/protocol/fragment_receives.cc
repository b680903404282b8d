#include "uct/cuda_nc/protocol/fragment_receives.hpp"

#include <utility>

#include "ucs/base/log.hpp"
#include "uct/cuda_nc/protocol/message_services.hpp"
#include "uct/cuda_nc/protocol/request_endpoints.hpp"
#include "uct/cuda_nc/thread_context.hpp"

namespace cuda_nc::uct {

fragment_receives::fragment_receives(interface &iface, request_endpoints &endpoints) noexcept
    : iface_(iface), endpoints_(endpoints) {
    awaited_.before = awaited_.after = &awaited_;
    lost_.before = lost_.after = &lost_;
}

// The users' buffers may outlive us.
fragment_receives::~fragment_receives() {
    for (list *all : {&awaited_, &lost_}) {
        while (!is_empty(*all)) {
            all->after->end();
        }
    }
}

void fragment_receives::append(list &to, awaited_fragments &one) noexcept {
    one.end();
    one.before = std::exchange(to.before, &one);
    one.after = &to;
    one.before->after = &one;
}

void fragment_receives::add(user_buffer &buffer, const process_id &sender, uint64_t request,
                            uint64_t total) noexcept {
    if (!can_be_seen(sender)) {
        return;
    }
    awaited_fragments &one = buffer.fragments;
    append(awaited_, one);
    one.buffer = &buffer;
    one.sender = sender;
    one.request = request;
    one.total = total;
    one.looks = 0;
}

void fragment_receives::look() noexcept {
    process_id asked = {};
    bool asked_is_gone = false;
    awaited_fragments *one = awaited_.after;
    while (one != &awaited_) {
        awaited_fragments &now = *std::exchange(one, one->after);
        if (now.looks++ == 0) {
            continue;  // most receives end before the next look
        }
        if (asked != now.sender) {
            asked = now.sender;
            asked_is_gone = is_gone(asked);
        }
        if (asked_is_gone) {
            now.looks = 0;
            now.received = now.buffer->received_bytes();
            append(lost_, now);
        }
    }
}

// A fragment that is still on its way would find a request that UCP has freed: there must be none
// for many looks, and none since the last.
unsigned fragment_receives::progress(unsigned call) noexcept {
    const auto now = agenda::clock::now();
    if (is_empty(lost_) || !looks_.are_due(now, call)) {
        return 0;
    }
    for (awaited_fragments *one = lost_.after; one != &lost_; one = one->after) {
        if (patient_looks::are_enough(one->looks) &&
            one->received == one->buffer->received_bytes()) {
            fail(*one);
            return 1;  // the next one in the next call
        }
    }
    looks_.note(now, call);
    for (awaited_fragments *one = lost_.after; one != &lost_; one = one->after) {
        const uint64_t before = std::exchange(one->received, one->buffer->received_bytes());
        one->looks = one->received == before ? one->looks + 1 : 0;
    }
    return 0;
}

void fragment_receives::fail(awaited_fragments &one) noexcept {
    nc_debug("a sender has left in the middle of its fragments");
    one.end();
    unpack_call call;
    call.fin = true;
    call.buffer = one.buffer;
    call.status = UCS_ERR_CONNECTION_RESET;
    wire::rndv_header header = {one.request, one.received};
    endpoints_.prepare(one.request);
    deliver_rndv_data(iface_, &header, sizeof(header) + one.total - one.received, call);
}

}  // namespace cuda_nc::uct
