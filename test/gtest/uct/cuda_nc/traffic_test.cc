// What a peer may say, and what becomes of it: an interface on a carrier that only keeps what it is
// given.
#include "uct/cuda_nc/traffic.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <random>
#include <vector>

#include "uct/cuda_nc/iface.hpp"
#include "uct/cuda_nc/quarantine.hpp"
#include "uct/cuda_nc/receiving.hpp"
#include "uct/cuda_nc/ring.hpp"
#include "uct/cuda_nc/sending.hpp"
#include "ucs/base/settings.hpp"

namespace cuda_nc::uct {
namespace {

using namespace wire;

constexpr uint64_t identity = 77, total = 1 << 20, first = 1024;

// The user's side of a receive: remembers what it was asked to unpack.
class fake_end final : public direct_end {
  public:
    int device() const noexcept override { return 0; }
    uint64_t packed_bytes() const noexcept override { return total; }
    ucs_status_t enqueue(uint64_t offset, uint64_t length, char *packed,
                         gpu::event &) noexcept override {
        unpacked.push_back({offset, length, packed});
        return UCS_OK;  // a mark that was never recorded is complete
    }
    ucs_status_t launch(gpu::pipe_work &work, gpu::stream &) noexcept override {
        launched.push_back(work);
        return launch_status;
    }
    bool sends() const noexcept override { return sending_side; }
    bool sending_side = false;
    uint64_t ucx_state() const noexcept override { return state; }
    uint64_t state = 0;
    struct range {
        uint64_t offset, length;
        char *packed;
    };
    std::vector<range> unpacked;
    std::vector<gpu::pipe_work> launched;
    ucs_status_t launch_status = UCS_OK;
};

// One test at a time.
fake_end *known_end;

direct_end *find_known_end(uint64_t word) noexcept {
    return word != 0 && word == known_end->state ? known_end : nullptr;
}

struct seen_by_ucp {
    std::vector<uint64_t> lengths;
    std::vector<ucs_status_t> rest_statuses;
    direct_end *takes_offers = nullptr;
} ucp;

std::vector<control> sent;

ucs_status_t ucp_handler(void *, void *, size_t length, unsigned) {
    ucp.lengths.push_back(length);
    unpack_call *call = unpack_call::current();
    if (call != nullptr && call->rest) {
        ucp.rest_statuses.push_back(call->status);
    } else if (call != nullptr) {
        call->end = ucp.takes_offers;
    }
    return UCS_OK;
}

ssize_t carrier_am_bcopy(abi::uct_ep *, uint8_t id, abi::uct_pack_callback pack, void *arg,
                         unsigned) {
    EXPECT_EQ(id, control_id);
    control message = {};
    size_t length = pack(&message, arg);
    sent.push_back(message);
    return static_cast<ssize_t>(length);
}

class traffic_test : public testing::Test {
  protected:
    void SetUp() override {
        if (gpu::platform::instance().num_devices() == 0) {
            GTEST_SKIP() << "no GPU, not even a simulated one";
        }
        ucp = {};
        sent.clear();
        ucx_.uct_worker_progress_register_safe = [](void *, unsigned (*)(void *), void *, unsigned,
                                                    int *id_p) { *id_p = 1; };
        ucx_.uct_worker_progress_unregister_safe = [](void *, int *id_p) { *id_p = -1; };
        iface_.ucx = &ucx_;
        iface_.super.am[rndv_data_id].cb = ucp_handler;
        carrier_.ops.ep_am_bcopy = carrier_am_bcopy;
        carrier_ep_.iface = &carrier_;
        ep_.carrier = &carrier_ep_;
        iface_.peers[identity] = &ep_;
        ep_.peer = identity;
        ucp.takes_offers = &end_;
        traffic_ = std::make_unique<traffic>(iface_);
        known_end = &end_;
        finder_ = end_finder.exchange(find_known_end);
    }
    void TearDown() override { end_finder = finder_; }

    void offer(uint64_t length = total, uint64_t bytes = first) {
        struct {
            data_prefix prefix;
            pipe_offer terms;
            rndv_header header;
            char bytes[first];
        } message = {};
        message.terms = terms_;
        message.prefix = {0, mark | static_cast<uint64_t>(data_kind::offer), 5, identity, length};
        message.header.request = reinterpret_cast<uint64_t>(request_);
        traffic_->take_data(reinterpret_cast<char *>(&message),
                            sizeof(data_prefix) + sizeof(pipe_offer) + sizeof(rndv_header) + bytes);
    }
    void offer_alone() { offer(total, 0); }
    // UCP's request says so.
    void request_has(uint64_t state) { std::memcpy(request_ + 136, &state, sizeof(state)); }
    void rest(uint64_t to, uint64_t length = total - first, uint64_t offset = first) {
        struct {
            data_prefix prefix;
            rndv_header header;
        } message = {};
        message.prefix = {0, mark | static_cast<uint64_t>(data_kind::rest), to, identity, length};
        message.header.offset = offset;
        traffic_->take_data(reinterpret_cast<char *>(&message), sizeof(message));
    }
    void say(control_kind kind, uint64_t to, unsigned slot = 0, uint64_t offset = 0,
             uint64_t length = 0) {
        control message = {};
        message.version = protocol_version;
        message.kind = kind;
        message.slot = static_cast<uint16_t>(slot);
        message.to = to;
        message.offset = offset;
        message.length = length;
        traffic_->take_control(&message, length_of(kind));
    }
    // UCP's messages, as they pass: `request` is what its sender calls the send.
    void rtr(uint64_t request) {
        auto *own = request_;
        traffic_->before_short(ep_, rtr_id, request, &own, sizeof(own));
    }
    void rts() {
        uint64_t words[] = {1, reinterpret_cast<uint64_t>(request_)};
        traffic_->before_short(ep_, rts_id, 0, words, sizeof(words));
    }
    void offer_early(uint64_t request, control_kind kind = control_kind::early) {
        control message = {};
        message.version = protocol_version;
        message.kind = kind;
        message.identity = identity;
        message.from = 5;
        message.offset = request;
        message.length = total;
        traffic_->take_control(&message, length_of(kind));
    }
    // From an offer with first bytes traffic learns where UCP's requests keep states.
    void learn_requests() {
        end_.state = 0x7777;
        request_has(end_.state);
        say(control_kind::cancel, accepted());
        sent.clear();
    }
    // An accepted offer: the receiver's number of the message.
    uint64_t accepted() {
        offer();
        EXPECT_EQ(sent.size(), 1u);
        EXPECT_EQ(sent.back().kind, control_kind::accept);
        EXPECT_EQ(sent.back().to, 5u);
        return sent.back().from;
    }

    ucx_api ucx_ = {};
    interface iface_ = {};
    abi::uct_iface carrier_ = {};
    abi::uct_ep carrier_ep_ = {};
    endpoint ep_ = {};
    fake_end end_;
    pipe_offer terms_ = {};  // none: slots will do
    alignas(8) char request_[256] = {};
    direct_end *(*finder_)(uint64_t) noexcept = nullptr;
    std::unique_ptr<traffic> traffic_;
};

TEST_F(traffic_test, a_message_comes_slot_by_slot_and_is_delivered_once) {
    uint64_t message = accepted();
    uint64_t slot = sent.back().length;
    uint64_t offset = first;
    for (unsigned i = 0; offset < total; i = (i + 1) % ring::num_slots) {
        uint64_t length = std::min(slot, total - offset);
        say(control_kind::data, message, i, offset, length);
        EXPECT_EQ(end_.unpacked.back().offset, offset);
        EXPECT_EQ(end_.unpacked.back().length, length);
        offset += length;
    }
    EXPECT_EQ(ucp.lengths, std::vector<uint64_t>{sizeof(rndv_header) + first});
    rest(message);
    EXPECT_EQ(ucp.lengths.back(), sizeof(rndv_header) + total - first);
    EXPECT_EQ(ucp.rest_statuses, std::vector<ucs_status_t>{UCS_OK});
    EXPECT_EQ(end_.message, nullptr);
    rest(message);
    EXPECT_EQ(ucp.lengths.size(), 2u);
}

TEST_F(traffic_test, a_receiver_that_is_not_ours_declines) {
    ucp.takes_offers = nullptr;
    offer();
    ASSERT_EQ(sent.size(), 1u);
    EXPECT_EQ(sent.back().kind, control_kind::decline);
    EXPECT_EQ(sent.back().to, 5u);
}

TEST_F(traffic_test, an_offer_of_more_bytes_than_there_is_room_for_is_declined) {
    offer(total + 1);
    ASSERT_EQ(sent.size(), 1u);
    EXPECT_EQ(sent.back().kind, control_kind::decline);
}

TEST_F(traffic_test, an_offer_without_bytes_is_accepted_once_requests_are_known) {
    constexpr uint64_t state = 0x7777;
    end_.state = state;
    request_has(state);
    offer_alone();
    EXPECT_EQ(sent.back().kind, control_kind::decline) << "not confirmed yet";
    sent.clear();
    uint64_t message = accepted();
    EXPECT_EQ(sent.back().flags, known_receivers);
    say(control_kind::cancel, message);
    ASSERT_EQ(end_.message, nullptr);
    ucp.lengths.clear();
    sent.clear();
    offer_alone();
    EXPECT_TRUE(ucp.lengths.empty()) << "there is nothing for UCP yet";
    ASSERT_EQ(sent.size(), 1u);
    ASSERT_EQ(sent.back().kind, control_kind::accept);
    message = sent.back().from;
    end_.unpacked.clear();
    uint64_t slot_size = sent.back().length;
    for (uint64_t offset = 0; offset < total; offset += slot_size) {
        say(control_kind::data, message, static_cast<unsigned>(offset / slot_size) % 4, offset,
            std::min(slot_size, total - offset));
        ASSERT_FALSE(end_.unpacked.empty());
        EXPECT_EQ(end_.unpacked.back().offset, offset);
    }
    rest(message, total, 0);
    EXPECT_EQ(ucp.lengths, std::vector<uint64_t>{sizeof(rndv_header) + total});
    EXPECT_EQ(ucp.rest_statuses, std::vector<ucs_status_t>{UCS_OK});
}

TEST_F(traffic_test, an_offer_without_bytes_for_another_request_is_declined) {
    end_.state = 0x7777;
    request_has(end_.state);
    say(control_kind::cancel, accepted());
    request_has(0x7778);  // contiguous memory, or another library's datatype
    offer_alone();
    EXPECT_EQ(sent.back().kind, control_kind::decline);
    request_has(0);
    offer_alone();
    EXPECT_EQ(sent.back().kind, control_kind::decline);
}

TEST_F(traffic_test, requests_that_once_disagreed_are_never_believed_again) {
    end_.state = 0x7777;
    bool disagreed = false;
    for (uint64_t word : {0x7777, 0x7776, 0x7777}) {
        request_has(word);
        sent.clear();
        uint64_t message = accepted();
        EXPECT_EQ(sent.back().flags, word == 0x7777 && !disagreed ? known_receivers : 0);
        disagreed |= word != 0x7777;
        say(control_kind::cancel, message);
    }
    offer_alone();
    EXPECT_EQ(sent.back().kind, control_kind::decline);
}

TEST_F(traffic_test, an_early_offer_is_answered_before_the_request_for_data) {
    learn_requests();
    offer_early(99);
    rtr(98);
    EXPECT_TRUE(sent.empty()) << "another send";
    rtr(99);
    ASSERT_EQ(sent.size(), 1u);
    EXPECT_EQ(sent.back().kind, control_kind::accept);
    EXPECT_EQ(sent.back().to, 5u);
    uint64_t message = sent.back().from;
    rtr(99);
    EXPECT_EQ(sent.size(), 1u) << "answered once";
    offer_alone();
    EXPECT_EQ(sent.size(), 1u) << "accepted before";
    say(control_kind::cancel, message);
}

TEST_F(traffic_test, an_early_offer_to_memory_of_others_is_declined) {
    learn_requests();
    request_has(0x7778);
    offer_early(99);
    rtr(99);
    ASSERT_EQ(sent.size(), 1u);
    EXPECT_EQ(sent.back().kind, control_kind::decline);
    EXPECT_EQ(sent.back().to, 5u);
}

TEST_F(traffic_test, early_offers_end_when_withdrawn_and_with_their_endpoint) {
    learn_requests();
    offer_early(99);
    offer_early(99, control_kind::withdraw);
    rtr(99);
    offer_early(100);
    traffic_->forget(ep_);
    rtr(100);
    EXPECT_TRUE(sent.empty());
    for (uint64_t request = 1; request < 10000; ++request) {
        offer_early(request);  // bounded
    }
}

TEST_F(traffic_test, a_send_is_offered_early_where_receivers_are_known) {
    end_.sending_side = true;
    end_.state = 0x7777;
    request_has(end_.state);
    rts();
    EXPECT_TRUE(sent.empty()) << "not known to know";
    ep_.known_receivers = true;
    request_has(0x7778);
    rts();
    EXPECT_TRUE(sent.empty()) << "contiguous memory";
    request_has(end_.state);
    rts();
    ASSERT_EQ(sent.size(), 1u);
    EXPECT_EQ(sent.back().kind, control_kind::early);
    EXPECT_EQ(sent.back().offset, reinterpret_cast<uint64_t>(request_));
    EXPECT_EQ(sent.back().length, total);
    rts();
    EXPECT_EQ(sent.size(), 1u) << "the carrier had no room; UCP comes again";
    ASSERT_NE(end_.message, nullptr);
    end_.message->leave();
    ASSERT_EQ(sent.size(), 2u);
    EXPECT_EQ(sent.back().kind, control_kind::withdraw);
    EXPECT_EQ(end_.message, nullptr);
}

TEST_F(traffic_test, a_message_that_ends_without_its_bytes_fails) {
    rest(accepted());
    EXPECT_EQ(ucp.rest_statuses, std::vector<ucs_status_t>{UCS_ERR_IO_ERROR});
}

TEST_F(traffic_test, an_end_that_does_not_fit_the_beginning_is_not_delivered) {
    uint64_t message = accepted();
    rest(message, total);
    rest(message + 1);
    EXPECT_EQ(ucp.lengths.size(), 1u);
    say(control_kind::cancel, message);
    EXPECT_EQ(end_.message, nullptr);
}

TEST_F(traffic_test, a_ring_of_an_ended_receive_waits_for_its_sender) {
    size_t lent = regions_lent();
    uint64_t message = accepted();
    sent.clear();
    ASSERT_NE(end_.message, nullptr);
    end_.message->leave();
    EXPECT_EQ(end_.message, nullptr);
    ASSERT_EQ(sent.size(), 1u);
    EXPECT_EQ(sent.back().kind, control_kind::stop);
    say(control_kind::data, message, 0, first, 4096);
    EXPECT_TRUE(end_.unpacked.empty()) << "the user's memory is no longer touched";
    EXPECT_EQ(regions_lent(), lent + 1);
    say(control_kind::cancel, message);
    EXPECT_EQ(regions_lent(), lent);
    EXPECT_EQ(quarantined(), 0u);
}

TEST_F(traffic_test, a_ring_whose_sender_is_lost_is_used_again_when_its_process_is_gone) {
    pid_t sender = fork();
    if (sender == 0) {
        pause();
        _exit(0);
    }
    ASSERT_GT(sender, 0);
    terms_.process = process_id_of(static_cast<uint32_t>(sender));
    size_t lent = regions_lent();
    accepted();
    traffic_->forget(ep_);
    ASSERT_NE(end_.message, nullptr);
    end_.message->leave();
    release_quarantined(true);
    EXPECT_EQ(quarantined(), 1u) << "its GPU may still write";
    EXPECT_EQ(regions_lent(), lent + 1);
    kill(sender, SIGKILL);
    waitpid(sender, nullptr, 0);
    release_quarantined(true);
    EXPECT_EQ(quarantined(), 0u);
    EXPECT_EQ(regions_lent(), lent);
}

TEST_F(traffic_test, nothing_that_a_peer_says_leads_out_of_slots_and_message) {
    unsigned seed = std::random_device()();
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    ring probe = take_ring(0, total);
    ASSERT_TRUE(probe);
    char *begin = probe.memory.address, *end = begin + probe.memory.size;
    give_region(probe.memory);  // the next message's
    for (int round = 0; round < 200; ++round) {
        sent.clear();
        uint64_t message = accepted();
        for (int i = 0; i < 50; ++i) {
            auto any = [&](uint64_t likely) {
                return random() % 3 == 0 ? random() : random() % (likely + 2);
            };
            auto kind = static_cast<control_kind>(random() % (num_control_kinds + 2));
            say(kind == control_kind::cancel ? control_kind::data : kind, message,
                static_cast<unsigned>(any(ring::num_slots)), any(total), any(total / 4));
        }
        for (const fake_end::range &one : end_.unpacked) {
            EXPECT_GE(one.offset, first);
            EXPECT_LE(one.offset, total);
            EXPECT_LE(one.length, total - one.offset);
            EXPECT_GE(one.packed, begin);
            EXPECT_LE(one.packed, end);
            EXPECT_LE(one.length, static_cast<uint64_t>(end - one.packed));
        }
        end_.unpacked.clear();
        say(control_kind::cancel, message);
        ASSERT_EQ(end_.message, nullptr);
    }
}

TEST_F(traffic_test, offers_of_pipes_that_cannot_be_are_answered_with_slots) {
    auto expect_slots = [&](auto &&change) {
        terms_ = {};
        terms_.lanes = 16;
        terms_.sequence = gpu::pipe_sequence_step;
        std::memcpy(terms_.gpu, "another", 7);
        change(terms_);
        sent.clear();
        uint64_t message = accepted();
        EXPECT_TRUE(end_.launched.empty());
        say(control_kind::cancel, message);
    };
    size_t sides = sides_lent();
    expect_slots([](pipe_offer &) {});  // its memory cannot be opened
    expect_slots([](pipe_offer &one) { one.lanes = 0; });
    expect_slots([](pipe_offer &one) { one.sequence = 0; });
    expect_slots([](pipe_offer &one) { one.sequence = 1; });
    expect_slots([](pipe_offer &one) { one.sequence = ~uint64_t{0} << 32; });
    expect_slots([](pipe_offer &one) { std::memset(&one, 0xff, sizeof(one)); });
    expect_slots([](pipe_offer &one) {  // one GPU for both
        const std::string place = gpu::platform::instance().get_device(0)->properties().bus_id;
        std::memset(one.gpu, 0, sizeof(one.gpu));
        std::memcpy(one.gpu, place.data(), std::min(place.size(), sizeof(one.gpu)));
    });
    EXPECT_EQ(sides_lent(), sides);
}

TEST_F(traffic_test, answers_that_describe_no_pipe_are_refused) {
    std::mt19937_64 random(20261121);
    size_t sides = sides_lent();
    for (int round = 0; round < 200; ++round) {
        sent.clear();
        sending one(*traffic_, ep_, end_, 9);
        one.offered(0);
        EXPECT_EQ(one.offer().lanes != 0, sides_lent() == sides + 1);
        control answer = {};
        answer.kind = control_kind::pipe;
        answer.from = 33;
        answer.terms.lanes = static_cast<uint32_t>(random() >> random() % 64);
        answer.terms.chunk_size = static_cast<uint32_t>(random() >> random() % 64);
        answer.terms.depth = static_cast<uint32_t>(random() >> random() % 64);
        answer.terms.sequence = random() >> random() % 64;
        answer.terms.segment = random() >> random() % 64;
        answer.terms.flags = random() >> random() % 64;
        EXPECT_TRUE(one.accepted_pipe(answer));
        EXPECT_EQ(one.now(), sending::state::declined);
        EXPECT_TRUE(end_.launched.empty());
        ASSERT_EQ(sent.size(), 1u);
        EXPECT_EQ(sent.back().kind, control_kind::cancel);
        EXPECT_EQ(sent.back().to, 33u);
        EXPECT_FALSE(one.accepted_pipe(answer)) << "it goes by host memory already";
    }
    EXPECT_EQ(sides_lent(), sides);
}

TEST_F(traffic_test, an_answer_that_comes_too_late_is_cancelled) {
    control answer = {};
    answer.version = protocol_version;
    answer.identity = identity;
    answer.to = 4;
    answer.from = 44;
    for (control_kind kind : {control_kind::accept, control_kind::pipe}) {
        sent.clear();
        answer.kind = kind;
        traffic_->take_control(&answer, length_of(kind));
        ASSERT_EQ(sent.size(), 1u);
        EXPECT_EQ(sent.back().kind, control_kind::cancel);
        EXPECT_EQ(sent.back().to, 44u);
    }
}

TEST_F(traffic_test, short_and_foreign_messages_are_passed_over) {
    char bytes[sizeof(control)] = {};
    for (size_t length = 0; length <= sizeof(bytes); ++length) {
        traffic_->take_control(bytes, length);
        traffic_->take_data(bytes, std::min(length, sizeof(data_prefix) - 1));
    }
    EXPECT_TRUE(sent.empty());
    EXPECT_TRUE(ucp.lengths.empty());
}

}  // namespace
}  // namespace cuda_nc::uct
