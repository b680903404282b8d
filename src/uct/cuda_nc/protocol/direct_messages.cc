#include "uct/cuda_nc/protocol/direct_messages.hpp"

#include <cstddef>
#include <cstring>
#include <type_traits>
#include <utility>

#include "ucs/base/compiler.hpp"
#include "ucs/gpu/mover_pulse.hpp"
#include "uct/cuda_nc/counters.hpp"
#include "uct/cuda_nc/peers.hpp"
#include "uct/cuda_nc/memory/peer_memory.hpp"
#include "uct/cuda_nc/memory/quarantine.hpp"
#include "uct/cuda_nc/protocol/data_call.hpp"
#include "uct/cuda_nc/protocol/receive_message.hpp"
#include "uct/cuda_nc/protocol/send_message.hpp"

namespace cuda_nc::uct {

using namespace wire;

namespace {

bool is_announcement(const void *message, size_t length) noexcept {
    static_assert(offsetof(control, kind) == offsetof(announcement_head, kind));
    return length >= sizeof(announcement_head) &&
           static_cast<const uint8_t *>(message)[offsetof(control, kind)] ==
               static_cast<uint8_t>(control_kind::early_offer);
}

}  // namespace

direct_messages::direct_messages(interface &iface) noexcept : services_(iface, progress, this) {
    counters::report_at_exit();
}

direct_messages::~direct_messages() {
    services_.progress.stop();
    // The users' buffers may outlive us: the messages' destructors wait for the GPUs and tell them.
    services_.messages.clear();
    services_.puts.keep_all(services_.iface.unfinished_puts);
    services_.progress.stop();
}

ssize_t direct_messages::send_rndv_data(endpoint &ep, abi::uct_pack_callback pack, void *arg,
                                        unsigned flags) noexcept {
    // What this side has said of the message, that it does not come from the GPU for one, arrives
    // before its fragments do.
    if (!ep.is_loopback && !services_.control.send_unsent(ep)) {
        services_.pending.refused(ep, pending_requests::by_carrier);
        return UCS_ERR_NO_RESOURCE;
    }
    data_call call(services_, ep, pack, arg);
    ssize_t sent = ep.carrier->iface->ops.ep_am_bcopy(ep.carrier, rndv_data_id, data_call::compose,
                                                      &call, flags);
    if (sent == UCS_ERR_NO_RESOURCE) {
        services_.pending.refused(ep, pending_requests::by_carrier);
        return sent;
    }
    if (CUDA_NC_LIKELY(call.answer() == pack_answer::fragment)) {
        services_.pending.accepted();
        return sent;
    }
    services_.progress.start();
    return call.conclude(sent);
}

// To a sender. `send` is null where the message has gone another way, or is of another peer.
void direct_messages::handle_sender_control(send_message *send, const control &message) noexcept {
    switch (message.kind) {
        case control_kind::accept_slots:
        case control_kind::accept_network:
        case control_kind::accept_pipe:
        case control_kind::accept_pull:
        case control_kind::accept_straight:
            // An answer to what was never offered is a stranger's, and perhaps in another's name.
            if (send != nullptr ? !send->handle_answer(message) : is_message_id(message.to)) {
                services_.control.refuse(message.identity, message.from, message.to);
            }
            services_.launch_early();
            break;
        case control_kind::decline:
            if (send != nullptr) {
                send->handle_decline(message);
            }
            break;
        case control_kind::stop:
            if (send != nullptr) {
                send->handle_stop(message);
            } else if (services_.unanswered.has({message.to, message.identity})) {
                services_.control.refuse(message.identity, message.from, message.to);
            }
            break;
        default:
            if (send != nullptr) {
                send->handle(message);
            }
            break;
    }
}

void direct_messages::handle_control(void *data, size_t length) noexcept {
    if (is_announcement(data, length)) {
        handle_announcement(static_cast<char *>(data), length);
        return;
    }
    control message = {};
    if (length < length_of(control_kind::slot_full) || length > sizeof(message)) {
        return;
    }
    std::memcpy(&message, data, length);
    if (message.version != protocol_version ||
        static_cast<uint8_t>(message.kind) >= num_control_kinds ||
        length != length_of(message.kind)) {
        return;
    }
    const message_of_peer addressed = {message.to, message.identity};
    send_message *send = services_.messages.find_send(addressed);
    receive_message *receive = services_.messages.find_receive(addressed);
    switch (message.kind) {
        case control_kind::slot_full:
            if (receive != nullptr) {
                receive->handle(message);
            }
            break;
        case control_kind::wake:
            if (send == nullptr && receive != nullptr) {
                receive->handle(message);
                break;
            }
            handle_sender_control(send, message);
            break;
        case control_kind::cancel:
            if (receive != nullptr) {
                receive->handle_cancel();
            } else if (leave_quarantine(addressed)) {
                services_.control.send_to_interface(message.identity, control_kind::ended,
                                                    message.from, 0);
            }
            break;
        case control_kind::early_offer:  // handled above
            break;
        case control_kind::describe: {
            if (endpoint *peer = find_peer(services_.iface, message.identity)) {
                peer->describes = message.slot != 0;
            }
            break;
        }
        case control_kind::withdraw:
            early_.withdraw(message);
            receive = message.from != 0
                          ? services_.messages.find_receive_of(message.from, message.identity)
                          : nullptr;
            if (receive != nullptr) {
                receive->handle_withdraw();
            }
            break;
        case control_kind::ended:
            services_.ports.handle_ended(addressed);
            break;
        default:
            handle_sender_control(send, message);
            break;
    }
}

// UCX destroys an endpoint of ours before it completes, without finish(), the requests whose answer
// it still awaits: no kernel is left then.
void direct_messages::endpoint_closed(endpoint &ep) noexcept {
    flushes_.end(ep, UCS_ERR_CANCELED);
    services_.pending.endpoint_closed(ep);
    endpoint *const newest = find_peer(services_.iface, ep.peer);
    endpoint *const other = newest == &ep ? ep.older : newest;
    services_.control.endpoint_closed(ep, other);
    while (ep.first_user != nullptr) {
        ++closing_steps_;
        ep.first_user->endpoint_closed(other);
    }
    services_.control.endpoint_closed(ep, other);  // what the messages have said now
    services_.puts.endpoint_closed(ep);
    services_.rtrs.endpoint_closed(ep);
    early_.endpoint_closed(ep.peer);
    services_.ports.endpoint_closed(ep);
    // Who closes thousands looks at once with the first of them, and then when the others are
    // closed.
    if (looks_for_the_gone_.begin()) {
        ++closing_steps_;
        look_for_the_gone();
    }
    if (looks_for_the_gone_.are_to_come()) {
        services_.progress.start();
    }
}

// What belongs to a process that has gone is closed, and used again.
void direct_messages::look_for_the_gone() noexcept {
    release_quarantined();
    if (!close_memory_of_the_gone() && quarantined() == 0) {
        looks_for_the_gone_.end();
    }
}

// A carrier may never tell that a process has ended, and UCP asks it in peer-error mode alone.
void direct_messages::look_for_senders() noexcept {
    const auto now = agenda::clock::now();
    if (now < next_look_for_senders_) {
        return;
    }
    next_look_for_senders_ = now + services_.between_looks;
    process_id asked = {};
    bool asked_is_gone = false;
    services_.messages.for_each([&](auto &one) {
        if constexpr (std::is_same_v<decltype(one), receive_message &>) {
            if (!one.lasts()) {
                return;
            }
            if (asked != one.sending_process()) {
                asked = one.sending_process();
                asked_is_gone = is_gone(asked);
            }
            if (asked_is_gone) {
                one.note_sender_is_gone();
            }
        }
    });
    services_.fragments.look();
}

// ---- progress

unsigned direct_messages::progress(void *self) noexcept {
    return static_cast<direct_messages *>(self)->progress();
}

// Work is ready, and is launched when this returns. What has arrived meanwhile shares the launch:
// the carrier hands out one message in a call, mostly, and is asked until it has none. Returns how
// much has happened. (To wait for the next message, too, gained nothing: bench/results, sets.)
unsigned direct_messages::gather() noexcept {
    constexpr auto longest = std::chrono::microseconds(4);  // as long as a launch takes
    abi::uct_iface *const carrier = services_.iface.carrier;
    const auto begun = agenda::clock::now();
    unsigned happened = 0;
    while (services_.iface.is_progressed) {
        const unsigned came = carrier->ops.iface_progress(carrier);
        happened += came;
        if (came == 0 || agenda::clock::now() - begun >= longest) {
            break;
        }
    }
    return happened;
}

// Among many messages most wait for others, whose calls progress them: the agenda and the scheduler
// know the others. Failed kernels, and channels that another worker has released, show only by
// looking, which is done in some of the calls.
unsigned direct_messages::progress() noexcept {
    constexpr unsigned calls_between_beats = 8, calls_between_all = 64;
    constexpr size_t few = 4;
    message_services &s = services_;
    const unsigned calls = ++s.calls;
    if (calls % calls_between_beats == 0) {
        gpu::beat_pulses(gpu::beat::progress);
    }
    if (CUDA_NC_UNLIKELY(looks_for_the_gone_.are_to_come()) && calls % calls_between_all == 0 &&
        looks_for_the_gone_.are_due()) {
        look_for_the_gone();
    }
    if (s.messages.empty() && s.puts.empty() && s.looks.empty() && s.fragments.empty() &&
        !holds_back()) {
        if (!looks_for_the_gone_.are_to_come()) {
            s.progress.note_idle();
        }
        return 0;
    }
    s.progress.note_busy();
    if ((calls % calls_between_all == 0 || has_slept_) && awaits_senders()) {
        look_for_senders();
    }
    has_slept_ = false;
    const bool all = s.messages.size() <= few || calls % calls_between_all == 0;
    unsigned happened = s.control.empty() ? 0 : s.control.progress();
    happened += s.puts.empty() ? 0 : s.puts.progress();
    happened += s.schedule.progress_in_flight(all);
    happened += s.looks.empty() ? 0 : s.looks.progress();
    happened += s.schedule.progress_waiting(all);
    happened += s.schedule.has_room_for_others() ? gather() : 0;
    s.schedule.launch_all();
    happened += s.pending.empty() ? 0 : s.pending.release_decided();
    happened += flushes_.empty() ? 0 : flushes_.progress();
    happened += s.fragments.is_busy() ? s.fragments.progress(calls) : 0;
    return happened;
}

bool direct_messages::is_busy() const noexcept {
    const message_services &s = services_;
    return !s.control.empty() || !s.puts.empty() || !s.looks.empty() || !s.schedule.empty() ||
           s.fragments.is_busy() || s.pending.has_ready() || flushes_.has_ready();
}

// No carrier tells that a sender is gone: the worker is woken for the next look.
bool direct_messages::fall_asleep() noexcept {
    if (is_busy()) {
        return false;
    }
    if (!awaits_senders()) {
        alarm_.clear();
        return true;
    }
    has_slept_ = true;
    const auto now = agenda::clock::now();
    if (now >= next_look_for_senders_) {
        return false;
    }
    alarm_.set(next_look_for_senders_ - now);
    return true;
}

}  // namespace cuda_nc::uct
