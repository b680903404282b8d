#include "uct/cuda_nc/traffic.hpp"

#include <algorithm>
#include <cstring>
#include <random>

#include "ucs/base/compiler.hpp"
#include "ucs/base/log.hpp"
#include "uct/cuda_nc/iface.hpp"
#include "uct/cuda_nc/offering.hpp"
#include "uct/cuda_nc/receiving.hpp"
#include "uct/cuda_nc/sending.hpp"

namespace cuda_nc::uct {

using namespace abi;
using namespace wire;

thread_local pack_call *pack_call::current_ = nullptr;
thread_local unpack_call *unpack_call::current_ = nullptr;
std::atomic<direct_end *(*)(uint64_t word) noexcept> receiver_finder{nullptr};

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

template <typename map>
std::vector<uint64_t> keys_of(const map &from) {
    std::vector<uint64_t> keys;
    keys.reserve(from.size());
    for (const auto &[key, value] : from) {
        keys.push_back(key);
    }
    return keys;
}

template <typename map>
auto *find(const map &in, uint64_t key) noexcept {
    auto found = in.find(key);
    return found != in.end() ? found->second.get() : nullptr;
}

}  // namespace

traffic::traffic(interface &iface) noexcept : iface_(iface) {}

traffic::~traffic() {
    stop_progress();
    // Their ends may outlive us; the messages' destructors wait for the GPUs and tell them.
    sends_.clear();
    receives_.clear();
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
    try {
        for (uint64_t id : keys_of(sends_)) {
            if (sending *one = find(sends_, id)) {
                happened += one->progress();
            }
        }
        for (uint64_t id : keys_of(receives_)) {
            if (receiving *one = find(receives_, id)) {
                happened += one->progress();
            }
        }
    } catch (const std::bad_alloc &) {
        return happened;  // again next time
    }
    return happened + release_held();
}

bool traffic::is_busy() const noexcept {
    if (!unsent_.empty()) {
        return true;
    }
    for (const auto &[id, one] : sends_) {
        if (one->is_packing()) {
            return true;
        }
    }
    for (const auto &[id, one] : receives_) {
        if (one->is_unpacking()) {
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
    } what = {&message, message.kind == control_kind::accept ? sizeof(control) : short_control};
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

void traffic::take_control(const void *data, size_t length) noexcept {
    control message = {};
    if (length < short_control || length > sizeof(message)) {
        return;
    }
    std::memcpy(&message, data, length);
    if (message.version != protocol_version ||
        (message.kind == control_kind::accept) != (length == sizeof(message))) {
        return;
    }
    sending *send = find(sends_, message.to);
    receiving *receive = find(receives_, message.to);
    switch (message.kind) {
        case control_kind::accept:
            if (send != nullptr) {
                send->accepted(message);
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
    rndv_header header;
    if (length < sizeof(header)) {
        return;
    }
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
    if (end != nullptr && end->message == nullptr && first < prefix.length &&
        prefix.length <= end->packed_bytes() && accept(*peer->second, *end, prefix, first)) {
        return;
    }
    control answer = {};
    answer.kind = control_kind::decline;
    answer.to = prefix.message;
    send_control(peer->second, answer);
}

// False: out of resources.
bool traffic::accept(endpoint &ep, direct_end &end, const data_prefix &prefix,
                     uint64_t first) noexcept {
    ring *slots = take_ring(end.device());
    if (slots == nullptr) {
        return false;
    }
    try {
        auto made = std::make_unique<receiving>(*this, ep, end, *slots, next_message_id(),
                                                prefix.message, prefix.length, first);
        uint64_t id = made->id();
        receiving &taken = *receives_.emplace(id, std::move(made)).first->second;
        if (taken.accept(requests_.known() ? known_receivers : 0)) {
            start_progress();
            return true;
        }
        receives_.erase(id);
    } catch (const std::bad_alloc &) {
        // the ring is lost; so is the process, soon
    }
    return false;
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
    try {
        for (uint64_t id : keys_of(receives_)) {
            receiving *one = find(receives_, id);
            if (one != nullptr && one->ep() == &ep) {
                one->endpoint_lost();
            }
        }
    } catch (const std::bad_alloc &) {
        nc_error("no memory to forget an endpoint");
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
    sends_.erase(ended.id());
}

void traffic::erase(receiving &ended) noexcept {
    receives_.erase(ended.id());
}

}  // namespace cuda_nc::uct
