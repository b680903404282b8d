// What a peer may say, and what becomes of it: an interface on a carrier that only keeps what it is
// given.
#include "uct/cuda_nc/traffic.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "uct/cuda_nc/iface.hpp"
#include "uct/cuda_nc/receiving.hpp"
#include "uct/cuda_nc/ring.hpp"
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
    uint64_t ucx_state() const noexcept override { return state; }
    uint64_t state = 0;
    struct range {
        uint64_t offset, length;
        char *packed;
    };
    std::vector<range> unpacked;
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
        ucp.takes_offers = &end_;
        traffic_ = std::make_unique<traffic>(iface_);
        known_end = &end_;
        finder_ = receiver_finder.exchange(find_known_end);
    }
    void TearDown() override { receiver_finder = finder_; }

    void offer(uint64_t length = total, uint64_t bytes = first) {
        struct {
            data_prefix prefix;
            rndv_header header;
            char bytes[first];
        } message = {};
        message.prefix = {0, mark | static_cast<uint64_t>(data_kind::offer), 5, identity, length};
        message.header.request = reinterpret_cast<uint64_t>(request_);
        traffic_->take_data(reinterpret_cast<char *>(&message),
                            sizeof(data_prefix) + sizeof(rndv_header) + bytes);
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
        traffic_->take_control(&message, short_control);
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
    uint64_t message = accepted();
    sent.clear();
    ASSERT_NE(end_.message, nullptr);
    end_.message->leave();
    EXPECT_EQ(end_.message, nullptr);
    ASSERT_EQ(sent.size(), 1u);
    EXPECT_EQ(sent.back().kind, control_kind::stop);
    size_t lost = rings_lost();
    say(control_kind::data, message, 0, first, 4096);
    EXPECT_TRUE(end_.unpacked.empty()) << "the user's memory is no longer touched";
    say(control_kind::cancel, message);
    EXPECT_EQ(rings_lost(), lost);
}

TEST_F(traffic_test, a_ring_whose_sender_is_gone_is_never_used_again) {
    accepted();
    size_t lost = rings_lost();
    traffic_->forget(ep_);
    ASSERT_NE(end_.message, nullptr);
    end_.message->leave();
    EXPECT_EQ(rings_lost(), lost + 1);
}

TEST_F(traffic_test, nothing_that_a_peer_says_leads_out_of_slots_and_message) {
    unsigned seed = std::random_device()();
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    ring *probe = take_ring(0);
    ASSERT_NE(probe, nullptr);
    char *begin = probe->memory->address(), *end = begin + probe->memory->size();
    give_ring(probe);  // the next message's
    for (int round = 0; round < 200; ++round) {
        sent.clear();
        uint64_t message = accepted();
        for (int i = 0; i < 50; ++i) {
            auto any = [&](uint64_t likely) {
                return random() % 3 == 0 ? random() : random() % (likely + 2);
            };
            say(static_cast<control_kind>(random() % 4), message,
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
