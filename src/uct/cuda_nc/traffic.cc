#include "uct/cuda_nc/traffic.hpp"

#include <algorithm>
#include <cstring>
#include <random>

#include "ucs/base/compiler.hpp"
#include "ucs/base/log.hpp"
#include "ucs/base/settings.hpp"
#include "ucs/base/statistics.hpp"
#include "uct/cuda_nc/admission.hpp"
#include "uct/cuda_nc/counters.hpp"
#include "uct/cuda_nc/iface.hpp"
#include "uct/cuda_nc/offering.hpp"
#include "uct/cuda_nc/peer_memory.hpp"
#include "uct/cuda_nc/quarantine.hpp"
#include "uct/cuda_nc/receiving.hpp"
#include "uct/cuda_nc/sending.hpp"

namespace cuda_nc::uct {

using namespace abi;
using namespace wire;

thread_local pack_call *pack_call::current_ = nullptr;
thread_local unpack_call *unpack_call::current_ = nullptr;
std::atomic<bool> offers_are_taken{false};
std::atomic<direct_end *(*)(uint64_t word) noexcept> end_finder{nullptr};

uint64_t next_message_id() noexcept {
    // At random, so that a message of an ended process is not taken for one of ours.
    static std::atomic<uint64_t> next{[] {
        std::random_device source;
        return (uint64_t(source()) << 31) ^ source();
    }()};
    uint64_t id;
    do {
        id = next.fetch_add(1, std::memory_order_relaxed);
    } while (id == 0);
    return id;
}

namespace {

// Calls `what` for each message that is there when its turn comes.
template <typename map, typename function>
void for_each(map &all, function what) {
    for (auto at = all.begin(); at != all.end();) {
        uint64_t key = at->first;
        what(*at->second);
        at = all.upper_bound(key);
    }
}

template <typename map>
auto *find(const map &in, uint64_t key) noexcept {
    auto found = in.find(key);
    return found != in.end() ? found->second.get() : nullptr;
}

}  // namespace

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
    for (auto &[id, one] : ending_) {
        quarantine(one.side, one.receiver);
    }
}

// ---- progress

void traffic::start_progress() noexcept {
    idle_rounds_ = 0;
    if (progress_id_ == -1) {
        iface_.ucx->uct_worker_progress_register_safe(iface_.super.worker, progress_all, this, 0,
                                                      &progress_id_);
    }
}

void traffic::stop_progress() noexcept {
    if (progress_id_ != -1) {
        iface_.ucx->uct_worker_progress_unregister_safe(iface_.super.worker, &progress_id_);
        progress_id_ = -1;
    }
}

unsigned traffic::progress_all(void *self) noexcept {
    return static_cast<traffic *>(self)->progress();
}

unsigned traffic::progress() noexcept {
    constexpr unsigned rounds_until_rest = 1000;  // coming and going is not free
    if (sends_.empty() && receives_.empty() && unsent_.empty() && held_.empty()) {
        if (++idle_rounds_ == rounds_until_rest) {
            stop_progress();
        }
        return 0;
    }
    idle_rounds_ = 0;
    unsigned happened = send_unsent();
    for_each(sends_, [&](sending &one) { happened += one.progress(); });
    for_each(receives_, [&](receiving &one) { happened += one.progress(); });
    return happened + release_held();
}

bool traffic::is_busy() const noexcept {
    if (!unsent_.empty()) {
        return true;
    }
    for (const auto &[id, one] : sends_) {
        if (one->is_busy()) {
            return true;
        }
    }
    for (const auto &[id, one] : receives_) {
        if (one->is_busy()) {
            return true;
        }
    }
    return std::any_of(held_.begin(), held_.end(), [this](const held_request &one) {
        const sending *message = find(sends_, one.message);
        return message == nullptr || message->is_settled();
    });
}

// ---- UCP's requests that wait for a GPU

bool traffic::hold(endpoint &ep, void *request) noexcept try {
    if (refused_ != &ep) {
        return false;
    }
    refused_ = nullptr;
    held_.push_back({&ep, request, refused_for_});
    start_progress();
    return true;
} catch (const std::bad_alloc &) {
    return false;  // the carrier says BUSY, and UCP asks again
}

// What UCX knows of a request: the rest is UCP's.
struct pending_request {
    ucs_status_t (*func)(pending_request *);
};

// A request of UCP at the carrier, in a wrapper: the carrier may send its first bytes, and then it
// is a GPU that it waits for. Begins as uct_pending_req does.
struct traffic::carried_request {
    ucs_status_t (*func)(carried_request *);
    char reserved[40];
    traffic *owner;
    endpoint *ep;
    pending_request *original;
};

ucs_status_t traffic::dispatch_carried(carried_request *carried) noexcept {
    carried->owner->refused_ = nullptr;
    ucs_status_t status = carried->original->func(carried->original);
    bool held =
        status == UCS_ERR_NO_RESOURCE && carried->owner->hold(*carried->ep, carried->original);
    if (status != UCS_OK && !held) {
        return status;
    }
    delete carried;
    return UCS_OK;
}

ucs_status_t traffic::add_pending(endpoint &ep, void *request, unsigned flags) noexcept {
    if (hold(ep, request)) {
        return UCS_OK;
    }
    auto *carried = new (std::nothrow)
        carried_request{dispatch_carried, {}, this, &ep, static_cast<pending_request *>(request)};
    if (carried == nullptr) {
        return UCS_ERR_BUSY;  // UCP asks again
    }
    ucs_status_t status = ep.carrier->iface->ops.ep_pending_add(ep.carrier, carried, flags);
    if (status != UCS_OK) {
        delete carried;
    }
    return status;
}

struct purge_arguments {
    void (*callback)(void *, void *);
    void *arg;
};

void traffic::purge_carried(carried_request *carried, void *purge) noexcept {
    auto *to = static_cast<purge_arguments *>(purge);
    to->callback(carried->original, to->arg);
    delete carried;
}

void traffic::purge_pending(endpoint &ep, function callback, void *arg) noexcept {
    purge_arguments to = {reinterpret_cast<purge_callback>(callback), arg};
    for (size_t i = 0; i < held_.size();) {
        if (held_[i].ep == &ep) {
            void *request = held_[i].request;
            held_.erase(held_.begin() + static_cast<ptrdiff_t>(i));
            to.callback(request, arg);
            i = 0;
        } else {
            ++i;
        }
    }
    ep.carrier->iface->ops.ep_pending_purge(ep.carrier, reinterpret_cast<function>(purge_carried),
                                            &to);
}

// Requests whose message has been settled go on; where the carrier is full they wait there.
unsigned traffic::release_held() noexcept {
    unsigned happened = 0;
    for (size_t i = 0; i < held_.size();) {
        held_request one = held_[i];
        const sending *message = find(sends_, one.message);
        if (message != nullptr && !message->is_settled()) {
            ++i;
            continue;
        }
        held_.erase(held_.begin() + static_cast<ptrdiff_t>(i));
        auto *request = static_cast<pending_request *>(one.request);
        for (;;) {
            ++happened;
            ucs_status_t status = request->func(request);
            if (status == UCS_INPROGRESS) {
                continue;
            }
            if (status == UCS_ERR_NO_RESOURCE && add_pending(*one.ep, request, 0) == UCS_ERR_BUSY) {
                continue;
            }
            break;
        }
        i = 0;  // whatever that has changed
    }
    return happened;
}

// ---- messages between transports

bool traffic::try_control(endpoint &ep, const control &message) noexcept {
    struct bytes {
        const control *message;
        size_t length;
    } what = {&message, length_of(message.kind)};
    auto pack = [](void *destination, void *arg) -> size_t {
        auto *from = static_cast<bytes *>(arg);
        std::memcpy(destination, from->message, from->length);
        return from->length;
    };
    ssize_t sent = ep.carrier->iface->ops.ep_am_bcopy(ep.carrier, control_id, pack, &what, 0);
    if (sent < 0 && sent != UCS_ERR_NO_RESOURCE) {
        nc_debug("a control message is lost: %s", status_text(static_cast<ucs_status_t>(sent)));
        return true;  // so is the endpoint
    }
    return sent >= 0;
}

void traffic::send_control(endpoint *ep, const control &message) noexcept try {
    if (ep == nullptr) {
        return;
    }
    control versioned = message;
    versioned.version = protocol_version;
    versioned.identity = iface_.address.identity;
    if (has_unsent(ep) || !try_control(*ep, versioned)) {
        unsent_.push_back({ep, versioned});
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
    auto peer = iface_.peers.find(answer.identity);
    if (peer != iface_.peers.end()) {
        say_cancel(peer->second, answer.from, answer.to);
    }
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
    sending *send = find(sends_, message.to);
    receiving *receive = find(receives_, message.to);
    switch (message.kind) {
        case control_kind::accept:
            if (send == nullptr || !send->accepted(message)) {
                answer_late(message);
            }
            break;
        case control_kind::pipe:
            if (send == nullptr || !send->accepted_pipe(message)) {
                answer_late(message);
            }
            break;
        case control_kind::decline:
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
            }
            break;
        case control_kind::early:
            take_early(message);
            break;
        case control_kind::withdraw:
            withdraw(message);
            break;
        case control_kind::ended:
            ended(message.to);
            break;
    }
}

// ---- rendezvous data

ssize_t traffic::send_rndv_data(endpoint &ep, uct_pack_callback pack, void *arg,
                                unsigned flags) noexcept {
    offering call(*this, ep, pack, arg);
    ssize_t sent = ep.carrier->iface->ops.ep_am_bcopy(ep.carrier, rndv_data_id, offering::compose,
                                                      &call, flags);
    if (CUDA_NC_LIKELY(call.answer() == pack_answer::host)) {
        refused_ = nullptr;
        return sent;
    }
    start_progress();
    return call.conclude(sent);
}

void traffic::deliver(void *data, size_t length, unpack_call &call) noexcept {
    const uct_am_handler &handler = iface_.super.am[rndv_data_id];
    unpack_call::current_ = &call;
    handler.cb(handler.arg, data, length, 0);
    unpack_call::current_ = nullptr;
}

void traffic::take_data(char *data, size_t length) noexcept {
    data_prefix prefix;
    if (length < sizeof(prefix)) {
        return;
    }
    std::memcpy(&prefix, data, sizeof(prefix));
    switch (static_cast<data_kind>(prefix.mark_and_kind & ~mark)) {
        case data_kind::nothing:
            break;
        case data_kind::offer:
            take_offer(prefix, data + sizeof(prefix), length - sizeof(prefix));
            break;
        case data_kind::rest:
            take_rest(prefix, data + sizeof(prefix), length - sizeof(prefix));
            break;
    }
}

void traffic::take_offer(const data_prefix &prefix, char *message, size_t length) noexcept {
    pipe_offer terms;
    rndv_header header;
    if (length < sizeof(terms) + sizeof(header)) {
        return;
    }
    std::memcpy(&terms, message, sizeof(terms));
    message += sizeof(terms);
    length -= sizeof(terms);
    std::memcpy(&header, message, sizeof(header));
    uint64_t first = length - sizeof(header);
    direct_end *end;
    if (first == 0) {
        end = requests_.find(header.request);
    } else {
        uint64_t word = requests_.read(header.request);
        unpack_call call;
        deliver(message, length, call);  // whatever comes of the offer
        end = call.end;
        if (end != nullptr && requests_.learn(word, end->ucx_state())) {
            nc_debug("messages for GPU memory are %s by UCP's requests",
                     requests_.known() ? "known" : "not known");
        }
    }
    auto peer = iface_.peers.find(prefix.identity);
    if (peer == iface_.peers.end()) {
        return;  // no way to answer; the sender's patience ends
    }
    if (!is_accepted(*peer->second, prefix.message)) {
        accept_or_decline(*peer->second, end, prefix.message, prefix.length, terms, first);
    }
}

// An early offer that was answered when UCP already asked for its bytes.
bool traffic::is_accepted(const endpoint &ep, uint64_t message) const noexcept {
    return std::any_of(receives_.begin(), receives_.end(), [&](const auto &one) {
        return one.second->ep() == &ep && one.second->sender() == message;
    });
}

void traffic::accept_or_decline(endpoint &ep, direct_end *end, uint64_t message, uint64_t total,
                                const pipe_offer &terms, uint64_t first) noexcept {
    if (!accept(ep, end, message, total, terms, first)) {
        control answer = {};
        answer.kind = control_kind::decline;
        answer.to = message;
        send_control(&ep, answer);
    }
}

// False: not ours, or out of resources.
bool traffic::accept(endpoint &ep, direct_end *end, uint64_t message, uint64_t total,
                     const pipe_offer &terms, uint64_t first) noexcept try {
    if (end == nullptr || end->message != nullptr || first >= total ||
        total > end->packed_bytes()) {
        return false;
    }
    release_quarantined();
    auto made =
        std::make_unique<receiving>(*this, ep, *end, next_message_id(), message, total, first);
    uint64_t id = made->id();
    receiving &taken = *receives_.emplace(id, std::move(made)).first->second;
    uint32_t flags = requests_.known() ? known_receivers : 0;
    if (taken.accept_pipe(terms, flags) || taken.accept_slots(flags)) {
        start_progress();
        return true;
    }
    receives_.erase(id);
    return false;
} catch (const std::bad_alloc &) {
    return false;
}

// ---- offers ahead of UCP's own messages

void traffic::before_short(endpoint &ep, uint8_t id, uint64_t header, const void *payload,
                           size_t length) noexcept try {
    uint64_t words[2];
    if (id == rts_id) {
        if (length < sizeof(words) || !ep.known_receivers) {
            return;
        }
        std::memcpy(words, payload, sizeof(words));
        direct_end *end = requests_.find_send(words[1]);
        constexpr uint64_t one_fragment = 16 << 10;  // UCP would send it at once
        if (end == nullptr || end->message != nullptr ||
            end->packed_bytes() < std::max<uint64_t>(config().direct_thresh, one_fragment)) {
            return;
        }
        auto made = std::make_unique<sending>(*this, ep, *end, next_message_id());
        uint64_t number = made->id();
        sending &begun = *sends_.emplace(number, std::move(made)).first->second;
        end->message = &begun;
        begun.offer_early(words[1]);
        start_progress();
    } else if (!early_.empty() && length >= sizeof(words[0])) {
        auto found = early_.find({ep.peer, header});
        if (found != early_.end()) {
            early_offer offer = found->second;
            early_.erase(found);
            std::memcpy(words, payload, sizeof(words[0]));
            accept_or_decline(ep, requests_.find(words[0]), offer.message, offer.total, offer.terms,
                              0);
        }
    }
} catch (const std::bad_alloc &) {
    // it is offered when UCP asks for its bytes
}

void traffic::take_early(const control &message) noexcept try {
    constexpr size_t most = 4096;  // beyond, an offer is made again with UCP's data
    if (early_.size() < most && iface_.peers.count(message.identity) != 0) {
        early_[{message.identity, message.offset}] = {message.from, message.length, message.offer};
    }
} catch (const std::bad_alloc &) {
    // likewise
}

void traffic::withdraw(const control &message) noexcept {
    auto found = early_.find({message.identity, message.offset});
    if (found != early_.end() && found->second.message == message.from) {
        early_.erase(found);
    }
}

void traffic::take_rest(const data_prefix &prefix, const char *message, size_t length) noexcept {
    rndv_header header;
    receiving *receive = find(receives_, prefix.message);
    if (length != sizeof(header) || receive == nullptr) {
        nc_error("a message ends that had not begun");
        return;
    }
    std::memcpy(&header, message, sizeof(header));
    receive->take_rest(header, prefix.length);
}

// ---- endpoints, events, ends

void traffic::forget(endpoint &ep) noexcept {
    if (refused_ == &ep) {
        refused_ = nullptr;
    }
    unsent_.erase(std::remove_if(unsent_.begin(), unsent_.end(),
                                 [&ep](const unsent_control &one) { return one.ep == &ep; }),
                  unsent_.end());
    for (auto &[id, one] : sends_) {
        if (one->ep() == &ep) {
            one->give_up();
            one->endpoint_lost();
        }
    }
    unsent_.erase(std::remove_if(unsent_.begin(), unsent_.end(),
                                 [&ep](const unsent_control &one) { return one.ep == &ep; }),
                  unsent_.end());
    for_each(receives_, [&ep](receiving &one) {
        if (one.ep() == &ep) {
            one.endpoint_lost();
        }
    });
    for (auto at = early_.lower_bound({ep.peer, 0});
         at != early_.end() && at->first.first == ep.peer;) {
        at = early_.erase(at);
    }
    for (auto at = ending_.begin(); at != ending_.end();) {
        if (at->second.ep == &ep) {
            quarantine(at->second.side, at->second.receiver);
            at = ending_.erase(at);
        } else {
            ++at;
        }
    }
    close_memory_of_the_gone();
}

// ---- lanes and sides of pipes

bool traffic::uses_pipes() const noexcept {
    return config().pipe && !config().launches_block;
}

bool traffic::admit(uint64_t message, int device, gpu::direction dir, unsigned lanes) noexcept {
    uint64_t &first = first_waiting_[dir == gpu::direction::pack ? 0 : 1];
    if (first != 0 && first < message) {
        return false;
    }
    if (!take_lanes(device, dir, lanes)) {
        first = message;
        return false;
    }
    if (first == message) {
        first = 0;
    }
    return true;
}

void traffic::end_admission(int device, gpu::direction dir, unsigned lanes) noexcept {
    give_lanes(device, dir, lanes);
}

void traffic::stop_waiting(uint64_t message) noexcept {
    for (uint64_t &first : first_waiting_) {
        if (first == message) {
            first = 0;
        }
    }
}

void traffic::await_end(pipe_side *side, uint64_t message, const endpoint *ep,
                        const process_id &receiver) noexcept try {
    if (ep == nullptr) {
        quarantine(side, receiver);
    } else {
        ending_.emplace(message, ending_side{side, ep, receiver});
    }
} catch (const std::bad_alloc &) {
    quarantine(side, receiver);
}

void traffic::ended(uint64_t message) noexcept {
    auto found = ending_.find(message);
    if (found != ending_.end()) {
        give_side(found->second.side);
        ending_.erase(found);
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
    sends_.erase(ended.id());
}

void traffic::erase(receiving &ended) noexcept {
    stop_waiting(ended.id());
    receives_.erase(ended.id());
}

}  // namespace cuda_nc::uct
