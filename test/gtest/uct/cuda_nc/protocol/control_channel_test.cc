// Words that wait for room: each leaves over its own endpoint, in order.
#include <vector>

#include "uct/cuda_nc/protocol/messages_fixture.hpp"

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

}  // namespace
}  // namespace cuda_nc::uct
