// Two endpoints of one interface to the same peer, as a program has that connects twice.
#include "uct/cuda_nc/memory/ring.hpp"
#include "uct/cuda_nc/peers.hpp"
#include "uct/cuda_nc/protocol/messages_fixture.hpp"

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
        newest_.older = &ep_;
        iface_.peers[identity] = &newest_;
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
        iface_.peers[identity] = &newest_;
        newest_.older = &ep_;
        carrier_is_full = true;
        messages_->services().control.send(one, control_kind::cancel, 1, 2);
        close(*one);
        carrier_is_full = false;
        EXPECT_EQ(find_peer(iface_, identity), other);
        if (sent.empty()) {
            progress();  // the carrier had no room for what was kept, either
        }
        ASSERT_EQ(sent.size(), 1u);
        EXPECT_EQ(sent.back().kind, control_kind::cancel);
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

}  // namespace
}  // namespace cuda_nc::uct
