// Two endpoints of one interface to the same peer, as a program has that connects twice.
#include "uct/cuda_nc/memory/quarantine.hpp"
#include "uct/cuda_nc/memory/ring.hpp"
#include "uct/cuda_nc/peers.hpp"
#include "uct/cuda_nc/protocol/messages_fixture.hpp"
#include "uct/cuda_nc/protocol/send_message.hpp"

namespace cuda_nc::uct {
namespace {

class two_endpoints : public direct_messages_test {
  protected:
    void SetUp() override {
        direct_messages_test::SetUp();
        if (IsSkipped()) {
            return;
        }
        newest_.carrier = &carrier_ep_;
        newest_.peer = identity;
        connect();
    }
    void connect() {
        iface_.peers[identity] = &newest_;
        newest_.older = &ep_;
        ep_.newer = &newest_;
        ep_.older = newest_.newer = nullptr;
    }
    // As destroy() does.
    void close(endpoint &one) {
        messages_->endpoint_closed(one);
        iface_.messages = std::move(messages_);
        remove_endpoint(iface_, one);
        messages_ = std::move(iface_.messages);
    }

    endpoint newest_ = {};
};

TEST_F(two_endpoints, what_waits_at_one_that_is_closed_is_said_over_the_other) {
    for (endpoint *one : {&ep_, &newest_}) {
        sent.clear();
        endpoint *const other = one == &ep_ ? &newest_ : &ep_;
        connect();
        carrier_is_full = true;
        messages_->services().control.send(one, control_kind::cancel, 1, 2);
        messages_->services().control.send(one, control_kind::slot_empty, 1, 2);
        close(*one);
        carrier_is_full = false;
        EXPECT_EQ(find_peer(iface_, identity), other);
        if (sent.empty()) {
            progress();  // the carrier had no room for what was kept, either
        }
        EXPECT_EQ(kinds_sent(),
                  (std::vector<control_kind>{control_kind::cancel, control_kind::slot_empty}))
            << "the receive that says the second goes on over the other, too";
    }
}

// An offer does not say over which endpoint it came: the sender may use the one that is left.
TEST_F(two_endpoints, a_receive_goes_on_over_the_one_that_is_left) {
    const size_t lent = regions_lent();
    const uint64_t message = accepted();
    close(newest_);
    ASSERT_NE(end_.message, nullptr);
    sent.clear();
    end_.message->leave();
    ASSERT_EQ(sent.size(), 1u) << "the sender is told";
    EXPECT_EQ(sent.back().kind, control_kind::stop);
    EXPECT_EQ(sent.back().to, 5u);
    say(control_kind::cancel, message);
    EXPECT_EQ(regions_lent(), lent);
    EXPECT_FALSE(messages_->is_busy());
}

// As where this side alone closes by force, its last endpoint first: the sender would wait for
// ever.
TEST_F(two_endpoints, a_sender_is_stopped_where_the_last_one_is_closed) {
    const size_t lent = regions_lent();
    const uint64_t message = accepted();
    close(ep_);
    sent.clear();
    close(newest_);
    ASSERT_EQ(sent.size(), 1u);
    EXPECT_EQ(sent.back().kind, control_kind::stop);
    EXPECT_EQ(sent.back().to, 5u);
    ASSERT_NE(end_.message, nullptr) << "a sender that is through does not answer";
    end_.message->leave();  // UCX ends the request
    EXPECT_EQ(sent.size(), 1u);
    EXPECT_EQ(quarantined(), 1u);
    say(control_kind::cancel, message);
    EXPECT_EQ(quarantined(), 0u);
    EXPECT_EQ(regions_lent(), lent);
}

TEST_F(two_endpoints, a_sender_that_is_stopped_so_may_have_been_through) {
    const uint64_t message = accepted();
    close(ep_);
    close(newest_);
    for (unsigned i = 0; i < ring::most_slots; ++i) {
        const uint64_t slot = (total - first) / ring::most_slots;
        say(control_kind::slot_full, message, i, first + i * slot,
            i + 1 < ring::most_slots ? slot : total - first - i * slot);
    }
    rest(message);
    EXPECT_EQ(ucp.rest_statuses, std::vector<ucs_status_t>{UCS_OK});
}

TEST_F(two_endpoints, an_offer_is_answered_once) {
    offer_early(99);
    EXPECT_TRUE(rtr(99));  // over the older one
    ASSERT_EQ(sent.size(), 1u);
    EXPECT_EQ(sent.back().kind, control_kind::accept_slots);
    const uint64_t message = sent.back().from;
    offer_alone();  // UCP had asked for its bytes before
    EXPECT_EQ(sent.size(), 1u);
    say(control_kind::cancel, message);
}

// A walk over all messages, or all offers, for each endpoint would take minutes with 10,000 of
// them.
TEST_F(direct_messages_test, endpoints_that_close_meet_no_messages_of_others) {
    for (const uint64_t number : {100, 1000}) {
        std::vector<endpoint> eps(number);
        std::vector<fake_end> buffers(number);
        message_services &services = messages_->services();
        for (uint64_t i = 0; i < number; ++i) {
            const uint64_t its = 5000 + i;
            eps[i].carrier = &carrier_ep_;
            eps[i].peer = its;
            iface_.peers[its] = &eps[i];
            buffers[i].sending_side = true;
            send_message &one = services.messages.add<send_message>(services, eps[i], buffers[i],
                                                                    next_message_id());
            buffers[i].message = &one;
            alignas(8) char bytes[longest_announcement + sizeof(rts_head)];
            const size_t before = write_announcement({its, its, {terms_, source_}}, bytes);
            const rts_head rts = {0, 1, 100 + i, 0, total};
            std::memcpy(bytes + before, &rts, sizeof(rts));
            messages_->handle_control(bytes, before + sizeof(rts));
        }
        const uint64_t before = messages_->closing_steps();
        for (endpoint &one : eps) {
            messages_->endpoint_closed(one);
            iface_.peers.erase(one.peer);
        }
        EXPECT_EQ(services.messages.size(), 0u);
        for (const fake_end &one : buffers) {
            EXPECT_EQ(one.message, nullptr);
        }
        // The next message has the offers swept out.
        rtr(99);
        EXPECT_GE(messages_->closing_steps(), before + 2 * number) << "all were there";
        EXPECT_LE(messages_->closing_steps(), before + 2 * number + 1);
        sent.clear();
        sent_of_ucp.clear();
    }
}

TEST_F(direct_messages_test, offers_of_a_closed_endpoint_are_void_and_those_after_it_are_not) {
    offer_early(99);
    messages_->endpoint_closed(ep_);
    EXPECT_TRUE(rtr(99)) << "its bytes come otherwise";
    EXPECT_TRUE(sent.empty());
    offer_early(98);
    messages_->endpoint_closed(ep_);
    offer_early(98);  // over a new endpoint
    EXPECT_TRUE(rtr(98));
    ASSERT_EQ(sent.size(), 1u);
    EXPECT_EQ(sent.back().kind, control_kind::accept_slots);
    say(control_kind::cancel, sent.back().from);
}

TEST_F(direct_messages_test, of_many_endpoints_to_a_peer_any_may_close) {
    std::vector<endpoint> eps(5);
    iface_.peers.clear();
    iface_.messages = std::move(messages_);
    for (endpoint &one : eps) {
        one.carrier = &carrier_ep_;
        one.peer = 600;
        add_peer(iface_, one);
    }
    EXPECT_EQ(find_peer(iface_, 600), &eps[4]);
    remove_endpoint(iface_, eps[2]);
    remove_endpoint(iface_, eps[0]);
    remove_endpoint(iface_, eps[4]);
    EXPECT_EQ(find_peer(iface_, 600), &eps[3]);
    EXPECT_EQ(eps[3].older, &eps[1]);
    EXPECT_EQ(eps[1].newer, &eps[3]);
    EXPECT_EQ(eps[1].older, nullptr);
    EXPECT_EQ(eps[3].newer, nullptr);
    remove_endpoint(iface_, eps[3]);
    EXPECT_EQ(find_peer(iface_, 600), &eps[1]);
    remove_endpoint(iface_, eps[1]);
    EXPECT_EQ(find_peer(iface_, 600), nullptr);
    messages_ = std::move(iface_.messages);
}

}  // namespace
}  // namespace cuda_nc::uct
