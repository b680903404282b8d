#include "uct/cuda_nc/engine/traffic.hpp"

#include <algorithm>
#include <cstring>

#include "ucs/base/compiler.hpp"
#include "ucs/base/log.hpp"
#include "ucs/base/random_number.hpp"
#include "ucs/base/settings.hpp"
#include "ucs/base/statistics.hpp"
#include "uct/cuda_nc/engine/admission.hpp"
#include "uct/cuda_nc/counters.hpp"
#include "uct/cuda_nc/iface.hpp"
#include "uct/cuda_nc/engine/message_map.hpp"
#include "uct/cuda_nc/memory/peer_memory.hpp"
#include "uct/cuda_nc/memory/quarantine.hpp"
#include "uct/cuda_nc/protocol/receiving.hpp"
#include "uct/cuda_nc/protocol/sending.hpp"

namespace cuda_nc::uct {

using namespace abi;
using namespace wire;

thread_local pack_call *pack_call::current_ = nullptr;
thread_local unpack_call *unpack_call::current_ = nullptr;
std::atomic<direct_end *(*)(uint64_t word) noexcept> end_finder{nullptr};

namespace {

// Without it the other side waits for ever, or keeps memory.
bool is_last(control_kind kind) noexcept {
    return kind == control_kind::cancel || kind == control_kind::ended ||
           kind == control_kind::stop || kind == control_kind::pulled;
}

}  // namespace

// At random, so that a message of an ended process is not taken for one of ours.
uint64_t next_message_id() noexcept {
    static std::atomic<uint64_t> next{random_number()};
    uint64_t id;
    do {
        id = next.fetch_add(1, std::memory_order_relaxed);
    } while (id == 0);
    return id;
}

traffic::traffic(interface &iface) noexcept : iface_(iface), process_(own_process_id()) {
    if (statistics_enabled()) {
        counters::report_at_exit();
    }
}

traffic::~traffic() {
    stop_progress();
    // Their ends may outlive us; the messages' destructors wait for the GPUs and tell them.
    sends_.clear();
    receives_.clear();
    keep_puts();
    stop_progress();
    for (auto &[id, one] : ending_) {
        quarantine(one.side, one.receiver, {id, one.peer});
    }
}

// ---- messages between transports

bool traffic::try_control(endpoint &ep, const control &message) noexcept {
    control stamped = message;
    stamped.version = protocol_version;
    stamped.identity = iface_.address.identity;
    auto pack = [](void *destination, void *arg) -> size_t {
        auto *from = static_cast<control *>(arg);
        std::memcpy(destination, from, length_of(from->kind));
        return length_of(from->kind);
    };
    ssize_t sent = ep.carrier->iface->ops.ep_am_bcopy(ep.carrier, control_id, pack, &stamped, 0);
    if (sent < 0 && sent != UCS_ERR_NO_RESOURCE) {
        nc_debug("a control message is lost: %s", status_text(static_cast<ucs_status_t>(sent)));
        return true;  // so is the endpoint
    }
    return sent >= 0;
}

// The carrier self delivers while it sends: what two messages of ours tell each other waits.
bool traffic::send_at_once(endpoint &ep, const control &message) noexcept {
    return !ep.loops && !has_unsent(&ep) && try_control(ep, message);
}

void traffic::send_control(endpoint *ep, const control &message) noexcept try {
    if (ep != nullptr && !send_at_once(*ep, message)) {
        unsent_.push_back({ep, message});
        start_progress();
    }
} catch (const std::bad_alloc &) {
    nc_error("no memory for a control message: a message of the GPU may not end");
}

bool traffic::has_unsent(const endpoint *ep) const noexcept {
    return std::any_of(unsent_.begin(), unsent_.end(),
                       [ep](const unsent_control &one) { return one.ep == ep; });
}

// In order for each endpoint; one without room holds no other up.
unsigned traffic::send_unsent() noexcept {
    unsigned happened = 0;
    const endpoint *full = nullptr;
    for (size_t i = 0; i < unsent_.size();) {
        endpoint &ep = *unsent_[i].ep;
        bool after_another =
            std::any_of(unsent_.begin(), unsent_.begin() + static_cast<ptrdiff_t>(i),
                        [&ep](const unsent_control &one) { return one.ep == &ep; });
        if (&ep == full || after_another || !try_control(ep, unsent_[i].message)) {
            full = &ep;
            ++i;
            continue;
        }
        unsent_.erase(unsent_.begin() + static_cast<ptrdiff_t>(i));
        ++happened;
    }
    return happened;
}

void traffic::say_cancel(endpoint *ep, uint64_t to, uint64_t from) noexcept {
    control message = {};
    message.kind = control_kind::cancel;
    message.to = to;
    message.from = from;
    send_control(ep, message);
}

// The message has gone another way.
void traffic::answer_late(const control &answer) noexcept {
    tell(answer.identity, {control_kind::cancel, answer.from, answer.to});
}

// Null also where it is not a message of that peer.
sending *traffic::find_send(message_of_peer message) const noexcept {
    sending *one = find(sends_, message.number);
    return one != nullptr && one->peer() == message.peer ? one : nullptr;
}

receiving *traffic::find_receive(message_of_peer message) const noexcept {
    receiving *one = find(receives_, message.number);
    return one != nullptr && one->peer() == message.peer ? one : nullptr;
}

void traffic::take_control(const void *data, size_t length) noexcept {
    control message = {};
    if (length < length_of(control_kind::data) || length > sizeof(message)) {
        return;
    }
    std::memcpy(&message, data, length);
    if (message.version != protocol_version ||
        static_cast<uint8_t>(message.kind) >= num_control_kinds ||
        length != length_of(message.kind)) {
        return;
    }
    const message_of_peer addressed = {message.to, message.identity};
    sending *send = find_send(addressed);
    receiving *receive = find_receive(addressed);
    switch (message.kind) {
        case control_kind::accept:
        case control_kind::lend:
            if (send == nullptr || !send->accepted(message)) {
                answer_late(message);
            }
            break;
        case control_kind::pipe:
            if (send == nullptr || !send->accepted_pipe(message)) {
                answer_late(message);
            }
            launch_if_alone();
            break;
        case control_kind::pull:
            if (send == nullptr || !send->accepted_pull(message)) {
                answer_late(message);
            }
            break;
        case control_kind::pulled:
            if (send != nullptr) {
                send->pulled();
            }
            break;
        case control_kind::decline:
            if (send != nullptr) {
                send->declined(message);
            }
            break;
        case control_kind::stop:
            if (send != nullptr) {
                send->give_up();
            }
            break;
        case control_kind::credit:
            if (send != nullptr) {
                send->credited(message.slot);
            }
            break;
        case control_kind::awake:
            if (send != nullptr) {
                send->called(message.offset);
            } else if (receive != nullptr) {
                receive->called(message.offset);
            }
            break;
        case control_kind::data:
            if (receive != nullptr) {
                receive->take_data(message);
            }
            break;
        case control_kind::cancel:
            if (receive != nullptr) {
                receive->cancelled();
            } else if (leave_quarantine(addressed)) {
                say_ended(message.identity, message.from);
            }
            break;
        case control_kind::early:
            take_early(message);
            break;
        case control_kind::withdraw:
            withdraw(message);
            break;
        case control_kind::ended:
            ended(addressed);
            break;
    }
}

// ---- endpoints, events, ends

void traffic::drop_unsent(const endpoint &ep) noexcept {
    for (const auto &[to, message] : unsent_) {
        if (to == &ep && is_last(message.kind)) {
            keep_unsaid(ep.peer, {message.kind, message.to, message.from});
        }
    }
    unsent_.erase(std::remove_if(unsent_.begin(), unsent_.end(),
                                 [&ep](const unsent_control &one) { return one.ep == &ep; }),
                  unsent_.end());
}

// UCX destroys an endpoint of ours before it completes, without finish(), the requests whose answer
// it still awaits: no kernel is left then.
void traffic::forget(endpoint &ep) noexcept {
    end_flushes(ep, UCS_ERR_CANCELED);
    if (refused_ == &ep) {
        refused_ = nullptr;
    }
    drop_unsent(ep);
    for_each(sends_, [&ep](sending &one) {
        if (one.ep() == &ep) {
            one.endpoint_lost();
        }
    });
    for_each(receives_, [&ep](receiving &one) {
        if (one.ep() == &ep) {
            one.endpoint_lost();
        }
    });
    drop_unsent(ep);
    for (leaving_puts &one : puts_) {
        one.ep = one.ep == &ep ? nullptr : one.ep;
    }
    for (auto at = early_.begin(); at != early_.end();) {
        at = at->first.second == ep.peer ? early_.erase(at) : std::next(at);
    }
    for (auto at = ending_.begin(); at != ending_.end();) {
        if (at->second.ep == &ep) {
            quarantine(at->second.side, at->second.receiver, {at->first, at->second.peer});
            at = ending_.erase(at);
        } else {
            ++at;
        }
    }
    close_memory_of_the_gone();
}

// ---- channels and sides of pipes

bool traffic::uses_pipes() const noexcept {
    return config().pipe && !config().launches_block;
}

// Another worker gives its channels back when somebody progresses it, and kernels of ours leave.
bool traffic::channel_queue::is_overdue(uint64_t first) noexcept {
    constexpr auto for_others = std::chrono::milliseconds(10), for_own = 100 * for_others;
    const auto now = std::chrono::steady_clock::now();
    if (refused != first) {
        refused = first;
        since = now;
    }
    return now - since >= (own == 0 ? for_others : for_own);
}

bool traffic::admit(uint64_t message, int device, gpu::direction dir, unsigned channels) noexcept
    try {
    channel_queue &queue = channels_[{device, dir}];
    const bool first = queue.waiting.empty() || *queue.waiting.begin() >= message;
    if (!first || !take_channels(device, dir, channels)) {
        if (!first || !queue.is_overdue(message)) {
            queue.waiting.insert(message);
            return false;
        }
        take_channels_beyond(device, dir, channels);
    }
    queue.waiting.erase(message);
    queue.refused = queue.refused == message ? 0 : queue.refused;
    queue.own += channels;
    return true;
} catch (const std::bad_alloc &) {
    return false;
}

void traffic::end_admission(int device, gpu::direction dir, unsigned channels) noexcept {
    give_channels(device, dir, channels);
    channels_[{device, dir}].own -= channels;
    channels_are_free_ = true;
}

bool traffic::launch(pipe_drive &admitted) noexcept {
    start_progress();
    return launches_.add(admitted);
}

void traffic::launch_all() noexcept {
    while (!launches_.empty()) {
        uint64_t messages[pipe_launches::most_sides];
        size_t number = launches_.flush_some(messages);
        if (number == 0) {
            break;  // later
        }
        // The peers hear of it, or of the failure.
        for (size_t i = 0; i < number; ++i) {
            progress_one(messages[i]);
        }
    }
}

void traffic::stop_waiting(uint64_t message) noexcept {
    for (auto &[where, queue] : channels_) {
        channels_are_free_ |= queue.waiting.erase(message) != 0;  // for those behind it
    }
}

void traffic::await_end(pipe_side *side, message_of_peer message, const endpoint *ep,
                        const process_id &receiver) noexcept try {
    if (ep == nullptr) {
        quarantine(side, receiver, message);
    } else {
        ending_.emplace(message.number, ending_side{side, message.peer, ep, receiver});
    }
} catch (const std::bad_alloc &) {
    quarantine(side, receiver, message);
}

void traffic::ended(message_of_peer message) noexcept {
    auto found = ending_.find(message.number);
    if (found != ending_.end() && found->second.peer == message.peer) {
        give_side(found->second.side);
        ending_.erase(found);
    } else {
        leave_quarantine(message);
    }
}

void traffic::keep_unsaid(uint64_t interface, const last_word &what) noexcept try {
    constexpr size_t most = 1024;  // what is not said keeps memory until a process ends
    if (unsaid_.size() < most) {
        unsaid_.emplace(interface, what);
    }
} catch (const std::bad_alloc &) {
    // likewise
}

// Also where no endpoint leads there any more, or none yet.
void traffic::tell(uint64_t interface, const last_word &what) noexcept {
    auto peer = iface_.peers.find(interface);
    if (peer == iface_.peers.end()) {
        return keep_unsaid(interface, what);
    }
    control message = {};
    message.kind = what.kind;
    message.to = what.to;
    message.from = what.from;
    send_control(peer->second, message);
}

void traffic::say_ended(uint64_t interface, uint64_t to) noexcept {
    tell(interface, {control_kind::ended, to, 0});
}

void traffic::meet(endpoint &ep) noexcept {
    auto [at, end] = unsaid_.equal_range(ep.peer);
    for (; at != end; at = unsaid_.erase(at)) {
        tell(ep.peer, at->second);
    }
}

std::unique_ptr<gpu::event> traffic::take_event(int device) noexcept {
    for (auto &[where, idle] : events_) {
        if (where == device && idle != nullptr) {
            return std::move(idle);
        }
    }
    gpu::device *gpu = gpu::platform::instance().get_device(device);
    std::unique_ptr<gpu::event> made;
    if (gpu == nullptr || gpu->create_event(&made) != UCS_OK) {
        return nullptr;
    }
    return made;
}

void traffic::give_event(int device, std::unique_ptr<gpu::event> back) noexcept try {
    for (auto &[where, place] : events_) {
        if (place == nullptr) {
            where = device;
            place = std::move(back);
            return;
        }
    }
    events_.emplace_back(device, std::move(back));
} catch (const std::bad_alloc &) {
    // it ends here
}

void traffic::erase(sending &ended) noexcept {
    stop_waiting(ended.id());
    one_is_settled(ended.id());
    sends_.erase(ended.id());
}

void traffic::erase(receiving &ended) noexcept {
    stop_waiting(ended.id());
    receives_.erase(ended.id());
}

}  // namespace cuda_nc::uct
