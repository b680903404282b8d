// What a flush waits for.
#include "uct/cuda_nc/protocol/network_fixture.hpp"

namespace cuda_nc::uct {
namespace {

using abi::flush_flag::cancel;

constexpr uint64_t length = 3 << 20;

// UCP's of a flush.
struct flushed {
    abi::uct_completion completion = {ended, 1, UCS_OK};
    unsigned ends = 0;

    static void ended(abi::uct_completion *completion) {
        ++reinterpret_cast<flushed *>(completion)->ends;
    }
};

class network_flush : public network_test {
  protected:
    void SetUp() override {
        network_test::SetUp();
        if (!IsSkipped()) {
            connect();
            from_ = std::make_unique<fake_network_sender>(length);
            to_ = std::make_unique<fake_network_receiver>(length);
        }
    }
    void TearDown() override {
        from_.reset();
        to_.reset();
        network_test::TearDown();
    }
    // The network moves slots, and the request waits for them.
    void begin() {
        announce(left_, *from_, right_, *to_);
        from_->send(left_.ep, *to_);
        net_->stuck = true;
        ASSERT_TRUE(progress_until([&] { return net_->puts != 0; }));
        ASSERT_FALSE(from_->is_complete());
    }
    ucs_status_t flush(flushed *one, unsigned flags = 0) {
        return left_.ep->iface->ops.ep_flush(left_.ep, flags,
                                             one != nullptr ? &one->completion : nullptr);
    }
    ucs_status_t flush_all() { return left_.iface->ops.iface_flush(left_.iface, 0, nullptr); }
    void steps() {
        for (int i = 0; i < 100; ++i) {
            net_->step();
        }
    }
    std::unique_ptr<fake_network_sender> from_;
    std::unique_ptr<fake_network_receiver> to_;
};

TEST_F(network_flush, is_the_carriers_where_nothing_waits) {
    flushed one;
    EXPECT_EQ(flush(&one), UCS_OK);
    EXPECT_EQ(flush_all(), UCS_OK);
    EXPECT_EQ(net_->flushes, 1u);
    EXPECT_EQ(one.completion.count, 1);
}

TEST_F(network_flush, ends_after_a_message_that_was_given_before) {
    begin();
    flushed one, other;
    EXPECT_EQ(flush(&one), UCS_INPROGRESS);
    EXPECT_EQ(flush(&other), UCS_INPROGRESS);
    EXPECT_EQ(flush(nullptr), UCS_INPROGRESS);
    EXPECT_EQ(flush_all(), UCS_INPROGRESS);
    EXPECT_EQ(right_.ep->iface->ops.ep_flush(right_.ep, 0, nullptr), UCS_OK);
    steps();
    EXPECT_EQ(one.ends, 0u);
    net_->stuck = false;
    net_->full = 50;
    ASSERT_TRUE(progress_until([&] {
        EXPECT_TRUE(one.ends == 0 || from_->is_complete());
        return one.ends == 1 && other.ends == 1;
    }));
    EXPECT_EQ(one.completion.status, UCS_OK);
    EXPECT_TRUE(progress_until([&] { return to_->is_complete(); }));
    EXPECT_EQ(flush_all(), UCS_OK);
    EXPECT_TRUE(to_->by_gpu);
}

TEST_F(network_flush, does_not_wait_for_what_is_given_later) {
    begin();
    flushed one;
    EXPECT_EQ(flush(&one), UCS_INPROGRESS);
    fake_network_sender later(length);
    fake_network_receiver target(length);
    announce(left_, later, right_, target);
    later.send(left_.ep, target);
    ASSERT_NE(to_->message, nullptr);
    to_->message->leave();  // the rest goes by host memory
    EXPECT_TRUE(progress_until([&] { return one.ends == 1; }));
    EXPECT_TRUE(from_->is_complete());
    EXPECT_FALSE(later.is_complete());
    net_->stuck = false;
    EXPECT_TRUE(progress_until([&] { return later.is_complete() && target.is_complete(); }));
}

TEST_F(network_flush, waits_for_control_messages_without_room) {
    net_->full = 100;
    left_.inside().messages->services().control.send(&left_.end(), control_kind::cancel, 1, 2);
    flushed one;
    EXPECT_EQ(flush(&one), UCS_INPROGRESS);
    EXPECT_EQ(flush_all(), UCS_INPROGRESS);
    EXPECT_TRUE(left_.inside().messages->is_busy());
    steps();
    EXPECT_EQ(one.ends, 0u);
    net_->full = 0;
    steps();
    EXPECT_EQ(one.ends, 1u);
    EXPECT_EQ(number_of(control_kind::cancel), 1u);
    EXPECT_FALSE(left_.inside().messages->is_busy());
}

TEST_F(network_flush, that_cancels_ends_those_that_wait) {
    begin();
    flushed one, other;
    EXPECT_EQ(flush(&one), UCS_INPROGRESS);
    purge(left_.ep);
    EXPECT_EQ(flush(&other, cancel), UCS_OK);
    EXPECT_EQ(one.ends, 1u);
    EXPECT_EQ(one.completion.status, UCS_ERR_CANCELED);
    EXPECT_EQ(other.ends, 0u);
    net_->stuck = false;
}

// Of a network's carrier this is UCX's to wait for: its queues hold what is to be cancelled.
TEST_F(network_flush, that_cancels_needs_no_room_within_a_machine) {
    flushed one;
    net_->full = 100;
    EXPECT_EQ(flush(&one, cancel), UCS_ERR_NO_RESOURCE);
    left_.inside().within_machine = true;
    EXPECT_EQ(flush(&one), UCS_ERR_NO_RESOURCE);
    EXPECT_EQ(flush(&one, cancel), UCS_OK);
    EXPECT_EQ(one.ends, 0u);
    net_->full = 0;
}

TEST_F(network_flush, ends_with_its_endpoint) {
    begin();
    flushed one;
    EXPECT_EQ(flush(&one), UCS_INPROGRESS);
    close_endpoint(left_);
    EXPECT_EQ(one.ends, 1u);
    EXPECT_EQ(one.completion.status, UCS_ERR_CANCELED);
    net_->stuck = false;
}

}  // namespace
}  // namespace cuda_nc::uct
