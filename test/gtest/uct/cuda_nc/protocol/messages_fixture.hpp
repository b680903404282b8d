// An interface on a carrier that only keeps what it is given, and a user's side that remembers what
// it was asked for.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include "ucs/layout/layout.hpp"
#include "uct/cuda_nc/iface.hpp"
#include "uct/cuda_nc/protocol/direct_messages.hpp"
#include "uct/cuda_nc/protocol/put_slots.hpp"
#include "uct/cuda_nc/thread_context.hpp"

namespace cuda_nc::uct {

using namespace wire;

constexpr uint64_t identity = 77, total = 1 << 20, first = 1024;

// The user's side of a receive: remembers what it was asked to unpack.
class fake_end final : public user_buffer {
  public:
    int device() const noexcept override { return 0; }
    uint64_t packed_bytes() const noexcept override { return bytes; }
    uint64_t bytes = total;
    ucs_status_t enqueue(uint64_t offset, uint64_t length, char *packed,
                         gpu::event &done) noexcept override {
        unpacked.push_back({offset, length, packed});
        // A mark that was never recorded is complete.
        return busy != nullptr ? busy->record(done) : UCS_OK;
    }
    gpu::stream *busy = nullptr;  // whose work unpacking waits for
    ucs_status_t prepare(gpu::pipe_work &work, gpu::stream &,
                         bool in_memory_order) noexcept override {
        in_order = in_memory_order;
        if (what != nullptr) {
            work.layout = &(in_memory_order ? what->in_memory_order() : *what).view();
            work.base = base;
        }
        if (work.report == nullptr) {
            return launch_status;  // it is asked for its tables alone
        }
        for (gpu::pipe_report::group &one : work.report->groups) {
            one.left = leaves_at_once ? gpu::pipe_left(work.launch_number, true) : one.left;
        }
        launched.push_back(work);
        return launch_status;
    }
    ucs_status_t describe(gpu::pipe_work &, bool) noexcept override {
        return tables_are_there ? UCS_OK : UCS_INPROGRESS;
    }
    bool tables_are_there = false;
    bool sends() const noexcept override { return sending_side; }
    void all_read() noexcept override { ++reads; }
    uint64_t received_bytes() const noexcept override { return received; }
    uint64_t received = 0;  // in fragments
    bool sending_side = false;
    int reads = 0;  // by the receiver itself, of all bytes
    uint64_t ucx_state() const noexcept override { return state; }
    uint64_t state = 0;
    const layout *laid_out(char **base_p) const noexcept override {
        *base_p = base;
        return what.get();
    }
    gpu::allocation_info allocation() const noexcept override {
        return what == nullptr ? gpu::allocation_info()
                               : gpu::platform::instance()
                                     .query(base + what->view().locate(0).displacement)
                                     .allocation;
    }
    layout_ref what;       // null: not to be known
    char *base = nullptr;  // of displacement 0
    struct range {
        uint64_t offset, length;
        char *packed;
    };
    std::vector<range> unpacked;
    std::vector<gpu::pipe_work> launched;
    bool in_order = false;  // as prepare() was told last
    ucs_status_t launch_status = UCS_OK;
    bool leaves_at_once = false;  // so it seems: the kernel runs all the same
};

// One test at a time.
inline fake_end *known_end;

inline user_buffer *find_known_end(uint64_t word) noexcept {
    return word != 0 && word == known_end->state ? known_end : nullptr;
}

struct seen_by_ucp {
    std::vector<uint64_t> lengths;
    std::vector<ucs_status_t> rest_statuses;
    fake_end *takes_offers = nullptr;
    bool completes = false;  // the receive, with whatever comes
};
inline seen_by_ucp ucp;

// A control message; of an announcement `from`, `identity`, what it offers, and UCP's RTS.
struct said_to_peer : control {
    early_offer early = {};
    rts_head rts = {};
};
inline std::vector<said_to_peer> sent;

// What went to the carrier in UCP's name.
struct as_of_ucp {
    uint8_t id;
    std::vector<char> bytes;
};
inline std::vector<as_of_ucp> sent_of_ucp;
// What UCP's handler of ATP was given.
inline std::vector<acknowledgement> ended_by_atp;

inline ucs_status_t atp_handler(void *, void *data, size_t length, unsigned) {
    acknowledgement one = {};
    EXPECT_EQ(length, sizeof(one));
    std::memcpy(&one, data, sizeof(one));
    ended_by_atp.push_back(one);
    return UCS_OK;
}

inline ucs_status_t ucp_handler(void *, void *, size_t length, unsigned) {
    ucp.lengths.push_back(length);
    unpack_call *call = unpack_call::current();
    if (call != nullptr && call->fin) {
        ucp.rest_statuses.push_back(call->status);
    } else if (call != nullptr && ucp.takes_offers != nullptr) {
        call->finder = ucp.takes_offers->state;
        if (ucp.completes) {
            ucp.takes_offers->state = 0;
        }
    }
    return UCS_OK;
}

inline bool carrier_is_full = false;
inline ucs_status_t carrier_error = UCS_OK;  // of all that is sent

inline ssize_t carrier_am_bcopy(abi::uct_ep *, uint8_t id, abi::uct_pack_callback pack, void *arg,
                                unsigned) {
    if (carrier_is_full || carrier_error != UCS_OK) {
        return carrier_is_full ? UCS_ERR_NO_RESOURCE : carrier_error;
    }
    if (id != control_id) {
        char bytes[256];
        const size_t packed = pack(bytes, arg);
        sent_of_ucp.push_back({id, {bytes, bytes + packed}});
        return static_cast<ssize_t>(packed);
    }
    alignas(8) char bytes[1024] = {};
    const size_t length = pack(bytes, arg);
    said_to_peer message = {};
    announcement offer;
    if (const size_t rts_at = read_announcement(bytes, length, &offer)) {
        message.kind = control_kind::early_offer;
        message.from = offer.message;
        message.identity = offer.identity;
        message.early = offer.offer;
        std::memcpy(&message.rts, bytes + rts_at, sizeof(message.rts));
    } else {
        EXPECT_LE(length, sizeof(control));
        std::memcpy(static_cast<control *>(&message), bytes, length);
    }
    sent.push_back(message);
    return static_cast<ssize_t>(length);
}

// What becomes of UCP's RTS, RTR or ATS, which it sends by am_short.
enum class leaving { now, later, never };
inline bool short_has_come = false;
inline bool carrier_takes_shorts = true;

inline ucs_status_t carrier_am_short(abi::uct_ep *, uint8_t, uint64_t, const void *, unsigned) {
    short_has_come = !carrier_is_full && carrier_takes_shorts;
    return short_has_come ? carrier_error : UCS_ERR_NO_RESOURCE;
}

// What UCP's handler of RTS was given: the sender's numbers; what UCP does in it, and returns.
inline std::vector<uint64_t> rts_seen;
inline std::function<ucs_status_t()> at_rts;

inline ucs_status_t rts_handler(void *, void *data, size_t length, unsigned flags) {
    rts_head one = {};
    EXPECT_GE(length, sizeof(one));
    EXPECT_EQ(flags, 0u) << "the memory is ours";
    std::memcpy(&one, data, sizeof(one));
    rts_seen.push_back(one.request);
    const auto what = at_rts;  // which may set another one
    return what ? what() : UCS_OK;
}

class direct_messages_test : public testing::Test {
  protected:
    void SetUp() override {
        if (gpu::platform::instance().num_devices() == 0) {
            GTEST_SKIP() << "no GPU, not even a simulated one";
        }
        ucp = {};
        sent.clear();
        carrier_takes_shorts = true;
        sent_of_ucp.clear();
        ended_by_atp.clear();
        rts_seen.clear();
        at_rts = nullptr;
        progress_ = nullptr;
        ucx_.uct_worker_progress_register_safe = [](void *, unsigned (*function)(void *), void *arg,
                                                    unsigned, int *id_p) {
            progress_ = function;
            argument_ = arg;
            *id_p = 1;
        };
        ucx_.uct_worker_progress_unregister_safe = [](void *, int *id_p) { *id_p = -1; };
        iface_.ucx = &ucx_;
        iface_.super.am[rndv_data_id].cb = ucp_handler;
        iface_.super.am[atp_id].cb = atp_handler;
        iface_.super.am[rts_id].cb = rts_handler;
        iface_.longest_bcopy = 1024;
        carrier_.ops.ep_am_bcopy = carrier_am_bcopy;
        carrier_.ops.ep_am_short = carrier_am_short;
        carrier_ep_.iface = &carrier_;
        ep_.carrier = &carrier_ep_;
        iface_.peers[identity] = &ep_;
        ep_.peer = identity;
        ucp.takes_offers = &end_;
        messages_ = std::make_unique<direct_messages>(iface_);
        known_end = &end_;
        finder_ = buffer_finder.exchange(find_known_end);
        learn_requests();
    }
    void TearDown() override { buffer_finder = finder_; }

    // As UCX's worker does. The interface must have asked for it.
    static void progress() {
        ASSERT_NE(progress_, nullptr);
        progress_(argument_);
    }
    void offer(uint64_t length = total, uint64_t bytes = first) {
        struct {
            data_prefix prefix;
            sender_offer offer;
            rndv_header header;
            char bytes[first];
        } message = {};
        message.offer = terms_;
        message.prefix = {0, mark | static_cast<uint64_t>(data_kind::offer), 5, identity, length};
        message.header.request = reinterpret_cast<uint64_t>(request_);
        messages_->handle_data(
            reinterpret_cast<char *>(&message),
            sizeof(data_prefix) + sizeof(sender_offer) + sizeof(rndv_header) + bytes);
    }
    void offer_alone() { offer(total, 0); }
    // UCP's request says so.
    void request_has(uint64_t state) { std::memcpy(own_request_ + 136, &state, sizeof(state)); }
    void rest(uint64_t to, uint64_t length = total - first, uint64_t offset = first) {
        struct {
            data_prefix prefix;
            rndv_header header;
        } message = {};
        message.prefix = {0, mark | static_cast<uint64_t>(data_kind::fin), to, author_, length};
        message.header = {reinterpret_cast<uint64_t>(request_), offset};
        messages_->handle_data(reinterpret_cast<char *>(&message), sizeof(message));
    }
    void say(control_kind kind, uint64_t to, unsigned slot = 0, uint64_t offset = 0,
             uint64_t length = 0) {
        control message = {};
        message.version = protocol_version;
        message.kind = kind;
        message.slot = static_cast<uint16_t>(slot);
        message.to = to;
        message.from = 5;
        message.identity = author_;
        message.offset = offset;
        message.length = length;
        messages_->handle_control(&message, length_of(kind));
    }
    // UCP's messages, as they pass: `request` is what its sender calls the send.
    leaving pass(endpoint &ep, uint8_t id, uint64_t header, const void *payload, unsigned length) {
        short_has_come = false;
        const ucs_status_t status =
            messages_->send_rendezvous_short(ep, id, header, payload, length);
        return status == UCS_ERR_NO_RESOURCE ? leaving::later
               : short_has_come              ? leaving::now
                                             : leaving::never;
    }
    // Whether it has left.
    bool rtr(uint64_t request) { return rtr_of(request) == leaving::now; }
    // `address`: of contiguous memory.
    leaving rtr_of(uint64_t request, const void *address = nullptr, uint64_t size = total) {
        const uint64_t words[] = {reinterpret_cast<uint64_t>(request_),
                                  reinterpret_cast<uint64_t>(address), size, 0};
        return pass(ep_, rtr_id, request, words, sizeof(words));
    }
    bool rts() { return rts_of(nullptr) != leaving::later; }
    leaving rts_of(const void *address, uint64_t size = total) {
        const uint64_t words[] = {1, reinterpret_cast<uint64_t>(request_),
                                  reinterpret_cast<uint64_t>(address), size};
        return pass(ep_, rts_id, 0, words, sizeof(words));
    }
    void rts_comes(uint64_t request) {
        const uint64_t words[] = {0, 1, request, 0, total};
        messages_->handle_rts(words, sizeof(words));
    }
    // The sender's message `message` (0: contiguous memory) is offered with its RTS.
    void offer_early(uint64_t request, uint64_t message = 5, uint64_t size = total) {
        alignas(8) char bytes[longest_announcement + sizeof(rts_head)];
        const size_t before = write_announcement({message, identity, {terms_, source_}}, bytes);
        const rts_head rts = {0, 1, request, message == 0 ? source_.address : 0, size};
        std::memcpy(bytes + before, &rts, sizeof(rts));
        messages_->handle_control(bytes, before + sizeof(rts));
        EXPECT_NE(std::count(rts_seen.begin(), rts_seen.end(), request), 0) << "UCP gets it";
    }
    // Of what has left over `ep_`.
    static std::vector<control_kind> kinds_sent() {
        std::vector<control_kind> all;
        for (const control &one : sent) {
            all.push_back(one.kind);
        }
        return all;
    }
    void withdraw(uint64_t request) {
        control message = {};
        message.version = protocol_version;
        message.kind = control_kind::withdraw;
        message.identity = identity;
        message.from = 5;
        message.offset = request;
        messages_->handle_control(&message, length_of(message.kind));
    }
    // UCP's request is known by the state of `end_`.
    void learn_requests() {
        end_.state = 0x7777;
        request_has(end_.state);
    }
    // One slot is enough then.
    void offer_from_our_gpu() {
        const std::string &place = gpu::platform::instance().get_device(0)->properties().bus_id;
        std::memset(terms_.gpu, 0, sizeof(terms_.gpu));
        std::memcpy(terms_.gpu, place.data(), std::min(place.size(), sizeof(terms_.gpu)));
    }
    // An accepted offer: the receiver's number of the message.
    uint64_t accepted() {
        offer();
        EXPECT_EQ(sent.size(), 1u);
        EXPECT_EQ(sent.back().kind, control_kind::accept_slots);
        EXPECT_EQ(sent.back().to, 5u);
        return sent.back().from;
    }

    static inline unsigned (*progress_)(void *);
    static inline void *argument_;
    ucx_api ucx_ = {};
    interface iface_ = {};
    abi::uct_iface carrier_ = {};
    abi::uct_ep carrier_ep_ = {};
    endpoint ep_ = {};
    fake_end end_;
    uint64_t author_ = identity;     // of what is said after an offer
    sender_offer terms_ = {};        // none: slots will do
    source_descriptor source_ = {};  // of early offers
    alignas(8) char own_request_[256] = {};
    char *request_ = own_request_;  // UCP's
    user_buffer *(*finder_)(uint64_t) noexcept = nullptr;
    std::unique_ptr<direct_messages> messages_;
};

}  // namespace cuda_nc::uct
