// Which messages progress looks at.
#include "uct/cuda_nc/engine/agenda.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>
#include <utility>

#include "uct/cuda_nc/iface.hpp"
#include "uct/cuda_nc/protocol/direct_messages.hpp"
#include "uct/cuda_nc/protocol/put_slots.hpp"

namespace cuda_nc::uct {
namespace {

using std::chrono::milliseconds;

// Messages that remember how often they were looked at.
class counted_messages final : public message_owner {
  public:
    unsigned progress_message(uint64_t message) noexcept override {
        ++looks[message];
        ++all_looks;
        if (then) {
            std::exchange(then, nullptr)();
        }
        return 1;
    }
    std::function<void()> then;  // called by the next look, as a user's callback
    unsigned progress_all() noexcept override { return 0; }
    bool exists(uint64_t message) const noexcept override { return message != 0; }
    bool is_polled(uint64_t message) const noexcept override { return polled.count(message) != 0; }
    bool is_decided(uint64_t message) const noexcept override {
        ++questions;
        return decided.count(message) != 0;
    }
    std::map<uint64_t, unsigned> looks;
    unsigned all_looks = 0;
    std::set<uint64_t> polled, decided;
    mutable unsigned questions = 0;
};

class agenda_test : public testing::Test {
  protected:
    agenda_test() {
        ucx_.uct_worker_progress_register_safe = [](void *, unsigned (*)(void *), void *, unsigned,
                                                    int *id_p) { *id_p = 1; };
        ucx_.uct_worker_progress_unregister_safe = [](void *, int *id_p) { *id_p = -1; };
    }

    ucx_api ucx_ = {};
    counted_messages messages_;
    progress_hook progress_{ucx_, nullptr, [](void *) { return 0u; }, nullptr};
    agenda looks_{messages_, progress_};
};

TEST_F(agenda_test, looks_once_at_what_something_happened_to) {
    EXPECT_TRUE(looks_.empty());
    looks_.look_soon(7);
    EXPECT_FALSE(looks_.empty());
    EXPECT_EQ(looks_.progress(), 1u);
    EXPECT_EQ(looks_.progress(), 0u);
    EXPECT_EQ(messages_.looks[7], 1u);
    EXPECT_TRUE(looks_.empty());
}

// A user's callback waits for another message, of which something happened at the same time.
TEST_F(agenda_test, progress_within_a_look_sees_what_was_to_come_next) {
    for (uint64_t message : {1, 2, 3}) {
        looks_.look_soon(message);
    }
    messages_.then = [this] {
        EXPECT_EQ(looks_.progress(), 2u);
        EXPECT_EQ(messages_.looks[3], 1u);
    };
    looks_.progress();
    EXPECT_EQ(messages_.all_looks, 3u);
    EXPECT_TRUE(looks_.empty());
}

// A user's callback progresses, and ends the message by whose look it was called.
TEST_F(agenda_test, progress_within_a_look_leaves_the_others_listed) {
    for (const uint64_t others : {0, 1, 3}) {
        messages_.polled = {7};
        looks_.poll(7);
        for (uint64_t i = 1; i <= others; ++i) {
            messages_.polled.insert(100 + i);
            looks_.poll(100 + i);
        }
        messages_.then = [this] {
            messages_.polled.erase(7);
            looks_.progress();
            looks_.progress();
        };
        looks_.progress();
        messages_.looks.clear();
        looks_.progress();
        EXPECT_EQ(messages_.looks.count(7), 0u);
        for (uint64_t i = 1; i <= others; ++i) {
            EXPECT_GE(messages_.looks[100 + i], 1u) << i << " of " << others;
        }
        messages_.polled.clear();
        looks_.progress();
        EXPECT_TRUE(looks_.empty());
    }
}

TEST_F(agenda_test, looks_at_a_message_when_its_time_has_come) {
    const auto now = agenda::clock::now();
    looks_.look_at(1, now + std::chrono::hours(1));
    looks_.look_at(2, now + milliseconds(5));
    looks_.look_at(3, now + std::chrono::hours(1));
    looks_.look_at(3, now);
    looks_.look_at(4, now);
    looks_.forget_time(4);
    looks_.progress();
    EXPECT_EQ(messages_.looks[3], 1u) << "the later time counts";
    while (messages_.looks[2] == 0) {
        looks_.progress();
        ASSERT_LT(agenda::clock::now() - now, std::chrono::seconds(20));
    }
    EXPECT_GE(agenda::clock::now() - now, milliseconds(5));
    EXPECT_EQ(messages_.all_looks, 2u);
    EXPECT_FALSE(looks_.empty());
    looks_.forget_time(1);
    EXPECT_TRUE(looks_.empty());
}

TEST_F(agenda_test, looks_again_and_again_at_what_is_polled) {
    messages_.polled = {1, 2};
    for (uint64_t message : {1, 2, 1}) {
        looks_.poll(message);
    }
    looks_.progress();
    looks_.progress();
    EXPECT_EQ(messages_.looks[1], 2u);
    EXPECT_EQ(messages_.looks[2], 2u);
    messages_.polled = {2};
    looks_.progress();
    looks_.progress();
    EXPECT_EQ(messages_.looks[1], 3u);
    EXPECT_EQ(messages_.looks[2], 4u);
    messages_.polled.clear();
    looks_.progress();
    EXPECT_TRUE(looks_.empty());
}

TEST_F(agenda_test, a_call_takes_no_longer_among_thousands) {
    for (uint64_t message = 1; message <= 10000; ++message) {
        messages_.polled.insert(message);
        looks_.poll(message);
        looks_.look_at(message, agenda::clock::now() + std::chrono::hours(1));
    }
    looks_.progress();
    EXPECT_LE(messages_.all_looks, 100u);
    for (int i = 0; i < 1000; ++i) {
        looks_.progress();
    }
    for (uint64_t message = 1; message <= 10000; ++message) {
        EXPECT_GE(messages_.looks[message], 1u);
    }
}

// Each held request is UCP's; none asks for anything when it is called.
struct request {
    ucs_status_t (*func)(request *) = [](request *self) {
        ++self->calls;
        return UCS_OK;
    };
    char reserved[40] = {};
    unsigned calls = 0;
};

TEST_F(agenda_test, of_thousands_of_requests_those_of_decided_messages_are_called) {
    constexpr uint64_t number = 10000;
    pending_requests pending(messages_, progress_);
    endpoint one = {}, other = {};
    std::vector<request> requests(number);
    for (uint64_t i = 0; i < number; ++i) {
        endpoint &ep = i % 2 == 0 ? one : other;
        pending.refused(ep, i + 1);
        EXPECT_EQ(pending.add(ep, &requests[i], 0), UCS_OK);
    }
    const uint64_t place = pending.next_place();
    EXPECT_TRUE(pending.holds(one, place));
    EXPECT_FALSE(pending.holds(one, 0));
    EXPECT_FALSE(pending.has_ready());
    messages_.questions = 0;
    for (uint64_t message : {5000, 1, 10000}) {
        messages_.decided.insert(message);
        pending.message_decided(message);
        EXPECT_TRUE(pending.has_ready());
        EXPECT_EQ(pending.release_decided(), 1u);
        EXPECT_EQ(requests[message - 1].calls, 1u);
    }
    EXPECT_LE(messages_.questions, 10u) << "it asks about no other";
    EXPECT_FALSE(pending.has_ready());
}

}  // namespace
}  // namespace cuda_nc::uct
