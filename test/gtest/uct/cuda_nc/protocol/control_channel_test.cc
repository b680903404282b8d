// Words that wait for room: each leaves over its own endpoint, in order. Last words that a broken
// endpoint loses: they leave over the next one.
#include <vector>

#include "uct/cuda_nc/protocol/messages_fixture.hpp"
#include "uct/cuda_nc/protocol/send_message.hpp"

namespace cuda_nc::uct {
namespace {

struct word {
    const abi::uct_ep *over;
    uint64_t to;
    bool operator==(const word &other) const { return over == other.over && to == other.to; }
};

class control_channel_test : public direct_messages_test {
  protected:
    void SetUp() override {
        direct_messages_test::SetUp();
        if (IsSkipped()) {
            return;
        }
        room_ = 0;
        said_.clear();
        carrier_error = UCS_OK;
        several_.ops.ep_am_bcopy = [](abi::uct_ep *over, uint8_t, abi::uct_pack_callback pack,
                                      void *arg, unsigned) -> ssize_t {
            if (room_ == 0) {
                return UCS_ERR_NO_RESOURCE;
            }
            --room_;
            control message = {};
            const size_t length = pack(&message, arg);
            said_.push_back({over, message.to});
            return static_cast<ssize_t>(length);
        };
        for (size_t i = 0; i < 3; ++i) {
            carried_[i].iface = &several_;
            eps_[i].carrier = &carried_[i];
            eps_[i].peer = 100 + i;
        }
    }

    void say_to(size_t endpoint, uint64_t what) {
        channel().send(&eps_[endpoint], control_kind::cancel, what, what);
    }
    control_channel &channel() { return messages_->services().control; }
    // A send of `end_` that has been offered with UCP's data.
    send_message &offer_one() {
        send_message &one = messages_->services().messages.add<send_message>(
            messages_->services(), ep_, end_, next_message_id());
        end_.message = &one;
        one.offered(0);
        return one;
    }
    // To the receive that the answers of these tests name.
    static void expect_cancel_of(uint64_t number) {
        ASSERT_EQ(kinds_sent(), std::vector<control_kind>{control_kind::cancel});
        EXPECT_EQ(sent.back().to, 5u);
        EXPECT_EQ(sent.back().from, number);
    }

    static inline unsigned room_;  // of the carriers, in messages
    static inline std::vector<word> said_;
    abi::uct_iface several_ = {};
    abi::uct_ep carried_[3] = {};
    endpoint eps_[3] = {};  // neighbours in the order of their addresses
};

// When the last word of one endpoint has left, those of the next one do not follow it there.
TEST_F(control_channel_test, words_that_waited_leave_over_their_own_endpoints) {
    for (size_t i = 0; i < 3; ++i) {
        say_to(i, 10 * i);
        say_to(i, 10 * i + 1);
    }
    EXPECT_TRUE(said_.empty());
    room_ = 100;
    EXPECT_TRUE(channel().send_unsent(eps_[0]));
    EXPECT_EQ(said_, (std::vector<word>{{&carried_[0], 0}, {&carried_[0], 1}}));
    EXPECT_TRUE(channel().has_unsent(&eps_[1]));
    said_.clear();
    EXPECT_EQ(channel().progress(), 4u);
    EXPECT_EQ(said_,
              (std::vector<word>{
                  {&carried_[1], 10}, {&carried_[1], 11}, {&carried_[2], 20}, {&carried_[2], 21}}));
    EXPECT_TRUE(channel().empty());
}

// A hostile peer that answers without end, and reads nothing.
TEST_F(control_channel_test, refusals_that_nobody_reads_are_bounded) {
    carrier_is_full = true;
    const auto waiting = [this] {
        carrier_is_full = false;
        sent.clear();
        while (!channel().empty()) {
            channel().progress();
        }
        carrier_is_full = true;
        return sent.size();
    };
    for (int i = 0; i < 1000; ++i) {
        channel().refuse(ep_.peer, 5, 7);
    }
    EXPECT_EQ(waiting(), control_channel::most_words_of_one);
    for (uint64_t of = 0; of < control_channel::most_waiting + 1000; ++of) {
        channel().refuse(ep_.peer, 5, of + 1);
    }
    EXPECT_EQ(waiting(), control_channel::most_waiting);
    channel().refuse(ep_.peer, 5, 7);
    EXPECT_EQ(waiting(), 1u);
    carrier_is_full = false;
}

TEST_F(control_channel_test, a_carrier_that_is_full_again_gets_the_rest_later) {
    for (size_t i = 0; i < 3; ++i) {
        say_to(i, i);
    }
    for (size_t i = 0; i < 3; ++i) {
        room_ = 1;
        EXPECT_EQ(channel().progress(), 1u);
        EXPECT_EQ(channel().progress(), 0u) << "there is no room";
    }
    EXPECT_EQ(said_.size(), 3u);
    for (const word &one : said_) {
        EXPECT_EQ(one.over, &carried_[one.to]);
    }
    EXPECT_TRUE(channel().empty());
}

// As of a connection that its peer has closed: UCP hears of it later.
TEST_F(control_channel_test, last_words_that_a_broken_endpoint_loses_are_said_over_the_next_one) {
    for (bool waited : {false, true}) {
        sent.clear();
        sent_of_ucp.clear();
        carrier_is_full = waited;
        carrier_error = UCS_ERR_CONNECTION_RESET;
        for (control_kind kind : {control_kind::cancel, control_kind::slot_empty,
                                  control_kind::ended, control_kind::stop, control_kind::pulled}) {
            channel().send(&ep_, kind, 1, 2);
        }
        channel().send_of_ucp(&ep_, ats_id, "123456789", 9, 0);
        carrier_is_full = false;
        if (waited) {
            progress();
        }
        EXPECT_TRUE(channel().empty());
        messages_->endpoint_closed(ep_);
        messages_->endpoint_connected(ep_);  // this one is broken, too
        EXPECT_TRUE(sent.empty() && sent_of_ucp.empty());
        carrier_error = UCS_OK;
        messages_->endpoint_connected(ep_);
        std::vector<control_kind> kinds = kinds_sent();
        std::sort(kinds.begin(), kinds.end());
        EXPECT_EQ(kinds, (std::vector<control_kind>{control_kind::cancel, control_kind::stop,
                                                    control_kind::ended, control_kind::pulled}));
        EXPECT_EQ(sent_of_ucp.size(), 1u);
        messages_->endpoint_connected(ep_);
        EXPECT_EQ(sent.size(), 4u) << "once";
    }
}

// Where a message turns out not to come from the GPU, its receiver hears so before its bytes come.
TEST_F(control_channel_test, fragments_stay_behind_words_that_wait_for_room) {
    sent.clear();
    sent_of_ucp.clear();
    carrier_is_full = true;
    channel().send(&ep_, control_kind::cancel, 1, 2);
    carrier_is_full = false;
    auto pack = [](void *destination, void *length) -> size_t {
        EXPECT_EQ(sent.size(), 1u);
        std::memset(destination, 0, *static_cast<size_t *>(length));
        return *static_cast<size_t *>(length);
    };
    size_t length = 100;
    for (bool has_room : {false, true}) {
        carrier_is_full = !has_room;
        const ssize_t packed = messages_->send_rndv_data(ep_, pack, &length, 0);
        EXPECT_EQ(packed, has_room ? 100 : static_cast<ssize_t>(UCS_ERR_NO_RESOURCE));
        EXPECT_EQ(sent_of_ucp.size(), has_room ? 1u : 0u);
    }
    carrier_is_full = false;
}

// The receiver has closed its endpoint by force, and lives on.
TEST_F(control_channel_test, a_message_of_a_broken_endpoint_is_cancelled_over_the_next_one) {
    send_message &one = offer_one();
    const uint64_t number = one.id();
    say(control_kind::accept_pull, number);
    ASSERT_EQ(one.now(), send_message::state::moving);
    carrier_error = UCS_ERR_CONNECTION_RESET;
    messages_->endpoint_closed(ep_);
    carrier_error = UCS_OK;
    EXPECT_EQ(end_.message, nullptr);
    EXPECT_TRUE(sent.empty());
    messages_->endpoint_connected(ep_);
    expect_cancel_of(number);
}

// It was lost with another endpoint: the sender has waited in vain, and the receiver still does.
TEST_F(control_channel_test, a_receiver_whose_answer_was_lost_hears_of_a_cancel_when_it_stops) {
    for (bool declined : {true, false}) {
        sent.clear();
        send_message &one = offer_one();
        const uint64_t number = one.id();
        if (declined) {
            one.give_up();  // nobody has answered for a second
        }
        EXPECT_TRUE(sent.empty());
        say(control_kind::stop, number);
        EXPECT_EQ(one.now(), send_message::state::declined);
        expect_cancel_of(number);
        say(control_kind::stop, number);
        end_.message->leave();
        EXPECT_EQ(sent.size(), 1u) << "once";
    }
}

// Its bytes have gone in fragments.
TEST_F(control_channel_test, a_receiver_whose_answer_was_lost_hears_of_a_cancel_after_the_send) {
    send_message &one = offer_one();
    const uint64_t number = one.id();
    one.give_up();
    end_.message->leave();
    EXPECT_TRUE(sent.empty());
    say(control_kind::stop, number - 1);
    author_ = identity + 1;
    say(control_kind::stop, number);
    EXPECT_TRUE(sent.empty()) << "others";
    author_ = identity;
    say(control_kind::stop, number);
    expect_cancel_of(number);
}

// FIN has left: a cancel might come before it, over another endpoint.
TEST_F(control_channel_test, a_message_that_is_through_answers_no_stop) {
    send_message &one = offer_one();
    one.all_claimed();
    const uint64_t number = one.id();
    say(control_kind::stop, number);
    end_.message->leave();
    say(control_kind::stop, number);
    EXPECT_TRUE(sent.empty());
}

// Its route has said what was to be said, or must not: a put may still be under way.
TEST_F(control_channel_test, a_message_that_was_answered_is_cancelled_by_its_route_alone) {
    send_message &one = offer_one();
    const uint64_t number = one.id();
    say(control_kind::accept_pull, number);
    one.give_up();
    say(control_kind::stop, number);
    end_.message->leave();
    say(control_kind::stop, number);
    EXPECT_EQ(kinds_sent(), std::vector<control_kind>{control_kind::cancel});
}

}  // namespace
}  // namespace cuda_nc::uct
