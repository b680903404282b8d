// Receives whose sender's process ends before it has said that all is there: they end, with all
// their bytes or an error.
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>
#include <vector>

#include "uct/cuda_nc/memory/quarantine.hpp"
#include "uct/cuda_nc/memory/ring.hpp"
#include "uct/cuda_nc/protocol/messages_fixture.hpp"
#include "uct/cuda_nc/protocol/pull_fixture.hpp"

namespace cuda_nc::uct {
namespace {

// Another process, in whose name offers come, and whose endpoint is lost before its FIN.
class direct_messages_of_leaver : public direct_messages_test {
  protected:
    void SetUp() override {
        direct_messages_test::SetUp();
        if (messages_ == nullptr) {
            return;
        }
        leaver_ = fork();
        if (leaver_ == 0) {
            pause();
            _exit(0);
        }
        ASSERT_GT(leaver_, 0);
        terms_.process = process_id_of(static_cast<uint32_t>(leaver_));
    }
    void TearDown() override {
        leave();
        direct_messages_test::TearDown();
    }
    void leave() {
        if (leaver_ > 0) {
            kill(leaver_, SIGKILL);
            waitpid(leaver_, nullptr, 0);
        }
        leaver_ = 0;
    }
    // As UCX's worker does, for `ms`; the next looks for the sender are at 1, 3, 7, 15 ... ms.
    void progress_for(int ms) {
        const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(ms);
        do {
            progress();
        } while (std::chrono::steady_clock::now() < end);
    }
    // As a program does that is at work for longer than a look takes; `ms` are many looks.
    static void progress_seldom_for(int ms) {
        const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(ms);
        while (std::chrono::steady_clock::now() < end) {
            std::this_thread::sleep_for(std::chrono::milliseconds(60));
            progress();
        }
    }
    static void progress_until_delivered() {
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        while (ucp.rest_statuses.empty()) {
            progress();
            ASSERT_LT(std::chrono::steady_clock::now(), end);
        }
    }
    // But for `missing` bytes at the end.
    uint64_t receive_all_but(uint64_t missing) {
        const uint64_t message = accepted();
        const uint64_t slot = sent.back().length;
        uint64_t offset = first;
        for (unsigned i = 0; offset < total - missing; i = (i + 1) % ring::most_slots) {
            const uint64_t length = std::min(slot, total - missing - offset);
            say(control_kind::slot_full, message, i, offset, length);
            offset += length;
        }
        return message;
    }

    pid_t leaver_ = 0;
};

TEST_F(direct_messages_of_leaver, a_ring_whose_sender_is_lost_is_used_again_when_it_is_gone) {
    size_t lent = regions_lent();
    accepted();
    messages_->endpoint_closed(ep_);
    ASSERT_NE(end_.message, nullptr);
    end_.message->leave();
    release_quarantined(true);
    EXPECT_EQ(quarantined(), 1u) << "its GPU may still write";
    EXPECT_EQ(regions_lent(), lent + 1);
    leave();
    release_quarantined(true);
    EXPECT_EQ(quarantined(), 0u);
    EXPECT_EQ(regions_lent(), lent);
}

TEST_F(direct_messages_of_leaver, a_message_that_is_here_needs_no_fin_when_its_process_is_gone) {
    const size_t lent = regions_lent();
    const uint64_t message = receive_all_but(0);
    messages_->endpoint_closed(ep_);
    progress_for(5);
    EXPECT_TRUE(ucp.rest_statuses.empty()) << "the FIN may come over another endpoint";
    EXPECT_TRUE(messages_->is_busy()) << "no event will tell of the end of a process";
    leave();
    progress_until_delivered();
    EXPECT_EQ(ucp.rest_statuses, std::vector<ucs_status_t>{UCS_OK});
    EXPECT_EQ(ucp.lengths.back(), sizeof(rndv_header) + total - first);
    EXPECT_EQ(end_.message, nullptr);
    EXPECT_EQ(regions_lent(), lent);
    rest(message);
    EXPECT_EQ(ucp.rest_statuses.size(), 1u) << "delivered once";
    EXPECT_FALSE(messages_->is_busy());
}

TEST_F(direct_messages_of_leaver, a_fin_over_another_endpoint_counts_as_any) {
    const uint64_t message = receive_all_but(0);
    messages_->endpoint_closed(ep_);
    rest(message);
    EXPECT_EQ(ucp.rest_statuses, std::vector<ucs_status_t>{UCS_OK});
    leave();
    progress_for(20);
    EXPECT_EQ(ucp.rest_statuses.size(), 1u);
    EXPECT_FALSE(messages_->is_busy());
}

// However long it lives after its endpoint was closed.
TEST_F(direct_messages_of_leaver, a_sender_is_looked_for_until_it_is_gone) {
    messages_->services().between_looks = std::chrono::milliseconds(2);
    receive_all_but(0);
    messages_->endpoint_closed(ep_);
    progress_for(100);
    EXPECT_TRUE(ucp.rest_statuses.empty());
    leave();
    progress_until_delivered();
    EXPECT_EQ(ucp.rest_statuses, std::vector<ucs_status_t>{UCS_OK});
}

TEST_F(direct_messages_of_leaver, a_message_with_bytes_missing_ends_with_an_error_after_a_while) {
    const size_t lent = regions_lent();
    const uint64_t message = receive_all_but(1);
    messages_->endpoint_closed(ep_);
    leave();
    progress_for(20);
    EXPECT_TRUE(ucp.rest_statuses.empty()) << "a slot may be told of over another endpoint";
    ASSERT_NE(end_.message, nullptr);
    progress_until_delivered();
    EXPECT_EQ(ucp.rest_statuses, std::vector<ucs_status_t>{UCS_ERR_CONNECTION_RESET});
    EXPECT_EQ(end_.message, nullptr);
    EXPECT_EQ(regions_lent(), lent);
    rest(message);
    EXPECT_EQ(ucp.rest_statuses.size(), 1u) << "ended once";
    EXPECT_FALSE(messages_->is_busy());
}

TEST_F(direct_messages_of_leaver, a_slot_that_is_told_of_late_completes_the_message) {
    const uint64_t message = receive_all_but(1);
    messages_->endpoint_closed(ep_);
    leave();
    progress_for(20);
    say(control_kind::slot_full, message, ring::most_slots - 1, total - 1, 1);
    progress_until_delivered();
    EXPECT_EQ(ucp.rest_statuses, std::vector<ucs_status_t>{UCS_OK});
}

TEST_F(direct_messages_of_leaver, a_message_is_not_given_up_by_who_seldom_progresses) {
    receive_all_but(1);
    messages_->endpoint_closed(ep_);
    leave();
    progress_for(20);
    progress_seldom_for(1800);
    EXPECT_TRUE(ucp.rest_statuses.empty()) << "the carrier has much to read";
    progress_until_delivered();
}

TEST_F(direct_messages_of_leaver, a_receive_that_its_user_ends_first_is_ended_once) {
    receive_all_but(1);
    messages_->endpoint_closed(ep_);
    leave();
    progress_for(20);
    ASSERT_NE(end_.message, nullptr);
    end_.message->leave();
    progress_for(1200);
    EXPECT_TRUE(ucp.rest_statuses.empty());
    release_quarantined(true);
}

// Shared memory never tells of it.
class direct_messages_of_lasting_leaver : public direct_messages_of_leaver,
                                          public testing::WithParamInterface<uint64_t> {};
INSTANTIATE_TEST_SUITE_P(missing, direct_messages_of_lasting_leaver, testing::Values(0, 1));

TEST_P(direct_messages_of_lasting_leaver, is_missed_though_its_endpoint_is_open) {
    messages_->services().between_looks = std::chrono::milliseconds(2);
    receive_all_but(GetParam());
    progress_for(50);
    EXPECT_TRUE(ucp.rest_statuses.empty());
    leave();
    progress_until_delivered();
    EXPECT_EQ(ucp.rest_statuses,
              std::vector<ucs_status_t>{GetParam() == 0 ? UCS_OK : UCS_ERR_CONNECTION_RESET});
    EXPECT_EQ(end_.message, nullptr);
}

TEST_F(direct_messages_of_leaver, while_the_endpoint_is_open_the_fin_is_awaited) {
    const uint64_t message = receive_all_but(0);
    leave();
    progress_for(20);
    EXPECT_TRUE(ucp.rest_statuses.empty());
    rest(message);
    EXPECT_EQ(ucp.rest_statuses, std::vector<ucs_status_t>{UCS_OK});
}

// As in a program that sleeps whenever it may.
TEST_F(direct_messages_of_leaver, a_worker_that_sleeps_is_woken_to_look) {
    messages_->services().between_looks = std::chrono::milliseconds(20);
    const file_descriptor carriers(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
    pollfd one = {messages_->descriptor(carriers.number()), POLLIN, 0};
    EXPECT_TRUE(messages_->fall_asleep());
    EXPECT_EQ(poll(&one, 1, 100), 0) << "no receive is there to look for";
    receive_all_but(1);
    leave();
    int naps = 0;
    while (ucp.rest_statuses.empty()) {
        progress();
        if (ucp.rest_statuses.empty() && messages_->fall_asleep()) {
            ++naps;
            ASSERT_EQ(poll(&one, 1, 20000), 1);
        }
    }
    EXPECT_GE(naps, 1);
    EXPECT_EQ(ucp.rest_statuses, std::vector<ucs_status_t>{UCS_ERR_CONNECTION_RESET});
    EXPECT_TRUE(messages_->fall_asleep());
    EXPECT_EQ(poll(&one, 1, 100), 0) << "it sleeps on";
}

// The receiver may be slow: it finds room for its RTR after all bytes have come.
class early_offers_of_leaver : public direct_messages_of_leaver {
  protected:
    // The answer has found room, and the RTR none.
    uint64_t answered() {
        messages_->services().between_looks = std::chrono::milliseconds(2);
        offer_early(7);
        carrier_takes_shorts = false;
        EXPECT_EQ(rtr_of(7), leaving::later);
        EXPECT_EQ(kinds_sent(), std::vector<control_kind>{control_kind::accept_slots});
        return sent.back().from;
    }
    void receive_from(uint64_t offset) {
        const uint64_t message = answered(), slot = sent.back().length;
        for (unsigned i = 0; offset < total; i = (i + 1) % ring::most_slots, offset += slot) {
            say(control_kind::slot_full, message, i, offset, std::min(slot, total - offset));
        }
        rest(message, total, 0);
    }
};

TEST_F(early_offers_of_leaver, end_no_receive_whose_rtr_waits_for_room) {
    receive_from(0);
    progress_for(20);
    EXPECT_TRUE(ucp.rest_statuses.empty()) << "UCP's request is in the carrier's queue";
    carrier_takes_shorts = true;
    EXPECT_TRUE(rtr(7));
    progress_until_delivered();
    EXPECT_EQ(ucp.rest_statuses, std::vector<ucs_status_t>{UCS_OK});
    EXPECT_FALSE(messages_->is_busy());
}

TEST_F(early_offers_of_leaver, end_one_whose_rtr_never_leaves_with_its_endpoint) {
    receive_from(0);
    messages_->endpoint_closed(ep_);
    progress_until_delivered();
    EXPECT_EQ(ucp.rest_statuses, std::vector<ucs_status_t>{UCS_OK});
}

TEST_F(early_offers_of_leaver, fail_no_receive_whose_rtr_waits_for_room) {
    answered();
    leave();
    progress_for(1500);
    EXPECT_TRUE(ucp.rest_statuses.empty());
    carrier_takes_shorts = true;
    EXPECT_TRUE(rtr(7));
    progress_until_delivered();
    EXPECT_EQ(ucp.rest_statuses, std::vector<ucs_status_t>{UCS_ERR_CONNECTION_RESET});
    EXPECT_FALSE(messages_->is_busy());
}

// It sleeps though it must progress: UCP has no endpoint of ours, and does not ask us.
TEST_F(direct_messages_of_leaver, a_worker_that_sleeps_without_asking_is_woken_soon) {
    const file_descriptor carriers(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
    pollfd one = {messages_->descriptor(carriers.number()), POLLIN, 0};
    receive_all_but(1);
    messages_->endpoint_closed(ep_);
    leave();
    while (ucp.rest_statuses.empty()) {
        progress();
        if (!messages_->fall_asleep()) {
            ASSERT_TRUE(messages_->take_a_nap());
            ASSERT_EQ(poll(&one, 1, 20000), 1);
        }
    }
    EXPECT_EQ(ucp.rest_statuses, std::vector<ucs_status_t>{UCS_ERR_CONNECTION_RESET});
    EXPECT_TRUE(messages_->fall_asleep());
    EXPECT_EQ(poll(&one, 1, 100), 0) << "it sleeps on";
}

// ---- UCP brings the bytes

class fragments_of_leaver : public direct_messages_of_leaver {
  protected:
    void SetUp() override {
        direct_messages_of_leaver::SetUp();
        if (messages_ != nullptr) {
            messages_->services().between_looks = std::chrono::milliseconds(2);
            ep_.process = terms_.process;  // it has named itself before
        }
    }
    void expect_failure() {
        progress_until_delivered();
        EXPECT_EQ(ucp.rest_statuses, std::vector<ucs_status_t>{UCS_ERR_CONNECTION_RESET});
        EXPECT_EQ(ucp.lengths.back(), sizeof(rndv_header) + total - end_.received)
            << "what UCP still awaits";
        EXPECT_FALSE(messages_->is_busy());
        progress_for(20);
        EXPECT_EQ(ucp.rest_statuses.size(), 1u) << "ended once";
    }
};

TEST_F(fragments_of_leaver, are_missed_where_nothing_was_offered) {
    EXPECT_TRUE(rtr(7));
    end_.received = 5000;
    progress_for(50);
    EXPECT_TRUE(ucp.rest_statuses.empty());
    EXPECT_FALSE(messages_->is_busy());
    leave();
    expect_failure();
}

TEST_F(fragments_of_leaver, are_missed_where_the_carrier_alone_knows_the_process) {
    ep_.process = {};
    ep_.carrier_pid = static_cast<uint32_t>(leaver_);
    EXPECT_TRUE(rtr(7));
    progress_for(20);
    leave();
    expect_failure();
}

TEST_F(fragments_of_leaver, are_missed_where_an_offer_was_declined) {
    end_.bytes = total - 1;  // too short
    offer_early(7);
    EXPECT_TRUE(rtr(7));
    EXPECT_EQ(kinds_sent(), std::vector<control_kind>{control_kind::decline});
    leave();
    expect_failure();
}

// A claim in the peer's name: its other receives shall not end because of it.
TEST_F(fragments_of_leaver, of_a_peer_are_awaited_though_a_process_that_has_ended_was_named) {
    ep_.process = {};
    leave();
    accepted();
    EXPECT_EQ(ep_.process.started, 0u);
    progress_until_delivered();
    EXPECT_EQ(ucp.rest_statuses, std::vector<ucs_status_t>{UCS_ERR_CONNECTION_RESET})
        << "the message that it named itself for";
    EXPECT_TRUE(rtr(7));
    EXPECT_TRUE(messages_->services().fragments.empty());
    terms_.process = own_process_id();
    sent.clear();
    offer_from_our_gpu();
    say(control_kind::cancel, accepted());
    EXPECT_EQ(ep_.process, own_process_id()) << "the peer itself";
}

// UCP's request is in the carrier's queue, and must not be freed.
TEST_F(fragments_of_leaver, are_not_missed_while_the_rtr_waits_for_room) {
    carrier_takes_shorts = false;
    EXPECT_EQ(rtr_of(7), leaving::later);
    EXPECT_TRUE(messages_->services().fragments.empty());
    leave();
    carrier_takes_shorts = true;
    EXPECT_TRUE(rtr(7));
    expect_failure();
}

TEST_F(fragments_of_leaver, are_not_missed_while_the_rtr_waits_behind_an_answer) {
    offer_early(7);
    carrier_takes_shorts = false;
    EXPECT_EQ(rtr_of(7), leaving::later);
    ASSERT_EQ(kinds_sent(), std::vector<control_kind>{control_kind::accept_slots});
    say(control_kind::cancel, sent.back().from);
    EXPECT_EQ(end_.message, nullptr);
    EXPECT_TRUE(messages_->services().fragments.empty());
    carrier_takes_shorts = true;
    EXPECT_TRUE(rtr(7));
    leave();
    expect_failure();
}

TEST_F(fragments_of_leaver, are_missed_where_a_late_offer_finds_no_way) {
    EXPECT_TRUE(rtr(7));
    std::vector<ring> all;  // memory that there is to lend
    while (ring one = acquire_ring(0, total, false, false)) {
        all.push_back(one);
    }
    offer();
    for (const ring &one : all) {
        release_region(one.memory);
    }
    EXPECT_EQ(kinds_sent(), std::vector<control_kind>{control_kind::decline});
    EXPECT_EQ(end_.message, nullptr);
    EXPECT_FALSE(messages_->services().fragments.empty());
    end_.received = first;
    leave();
    expect_failure();
}

TEST_F(fragments_of_leaver, are_missed_after_the_sender_has_cancelled) {
    const uint64_t message = accepted();
    say(control_kind::cancel, message);
    EXPECT_EQ(end_.message, nullptr);
    end_.received = first;
    leave();
    expect_failure();
}

TEST_F(fragments_of_leaver, are_awaited_as_long_as_some_come) {
    EXPECT_TRUE(rtr(7));
    leave();
    for (int i = 0; i < 40; ++i) {
        progress_for(40);
        end_.received += 10;
    }
    EXPECT_TRUE(ucp.rest_statuses.empty()) << "they were on their way";
    EXPECT_TRUE(messages_->is_busy());
    expect_failure();
}

TEST_F(fragments_of_leaver, are_awaited_longer_by_who_seldom_progresses) {
    EXPECT_TRUE(rtr(7));
    leave();
    progress_for(20);
    EXPECT_TRUE(messages_->is_busy());
    progress_seldom_for(1800);
    EXPECT_TRUE(ucp.rest_statuses.empty()) << "the carrier has much to read";
    expect_failure();
}

TEST_F(fragments_of_leaver, are_not_missed_once_the_receive_has_ended) {
    EXPECT_TRUE(rtr(7));
    progress_for(20);
    end_.fragments.end();
    leave();
    progress_for(1300);
    EXPECT_TRUE(ucp.rest_statuses.empty());
    EXPECT_FALSE(messages_->is_busy());
}

TEST_F(fragments_of_leaver, are_not_awaited_any_more_when_the_bytes_come_from_the_gpu) {
    EXPECT_TRUE(rtr(7));
    const uint64_t message = receive_all_but(0);
    EXPECT_TRUE(messages_->services().fragments.empty());
    rest(message);
    leave();
    progress_for(20);
    EXPECT_EQ(ucp.rest_statuses, std::vector<ucs_status_t>{UCS_OK});
}

TEST_F(fragments_of_leaver, are_forgotten_with_the_interface) {
    EXPECT_TRUE(rtr(7));
    leave();
    progress_for(20);
    messages_.reset();
    end_.fragments.end();
}

// UCP's endpoint of the receive, which it frees, is known by its first word.
TEST_F(fragments_of_leaver, are_missed_though_ucp_has_freed_its_endpoint) {
    alignas(8) uint64_t ucp_ep[8] = {0x7f1234567890, 3}, seen;
    const uint64_t *at = ucp_ep, *replaced;
    std::memcpy(own_request_ + request_endpoint_offset, &at, sizeof(at));
    EXPECT_TRUE(rtr(7));
    messages_->services().endpoints_of_requests.prepare(reinterpret_cast<uint64_t>(request_));
    std::memcpy(&replaced, own_request_ + request_endpoint_offset, sizeof(replaced));
    EXPECT_EQ(replaced, ucp_ep) << "it is still there";
    ucp_ep[0] = 0;
    leave();
    expect_failure();
    std::memcpy(&replaced, own_request_ + request_endpoint_offset, sizeof(replaced));
    ASSERT_NE(replaced, ucp_ep);
    std::memcpy(&seen, replaced, sizeof(seen));
    EXPECT_EQ(seen, 0x7f1234567890u);
    EXPECT_EQ(replaced[1], 3u);
}

// ---- the receiver reads by itself

class pulls_of_the_lost : public direct_messages_with_source {
  protected:
    void SetUp() override {
        direct_messages_with_source::SetUp();
        if (messages_ != nullptr) {
            messages_->services().between_looks = std::chrono::milliseconds(2);
        }
    }
    void lose_sender() {
        child_->kill();
        child_->wait();
    }
    static void expect_failure() {
        run_until([] { return !ucp.rest_statuses.empty(); });
        EXPECT_EQ(ucp.rest_statuses, std::vector<ucs_status_t>{UCS_ERR_CONNECTION_RESET});
    }
};

INSTANTIATE_TEST_SUITE_P(by, pulls_of_the_lost, testing::Bool(), [](const auto &one) {
    return std::string(one.param ? "copy" : "kernel");
});

// The RTR that was held back leads nowhere.
TEST_P(pulls_of_the_lost, a_pull_ends_whose_endpoint_was_closed) {
    pulling();
    messages_->endpoint_closed(ep_);
    lose_sender();
    expect_failure();
    EXPECT_EQ(end_.message, nullptr);
    EXPECT_FALSE(messages_->is_busy());
}

TEST_P(pulls_of_the_lost, a_pull_ends_that_could_not_be_launched) {
    end_.launch_status = UCS_ERR_UNSUPPORTED;  // which is not tried again
    pulling();
    run_until([] { return !sent_of_ucp.empty(); });
    lose_sender();
    expect_failure();
    EXPECT_EQ(end_.message, nullptr);
}

TEST_P(pulls_of_the_lost, a_receive_ends_of_which_a_fragment_has_come) {
    pulling();
    messages_->endpoint_closed(ep_);
    expect_first_fragment();
    end_.received = 100;
    lose_sender();
    expect_failure();
    EXPECT_EQ(ucp.lengths.back(), sizeof(rndv_header) + total - end_.received);
    EXPECT_FALSE(messages_->is_busy());
}

// The dead process takes nothing out of its queue any more.
TEST_P(pulls_of_the_lost, a_pull_that_is_through_is_delivered_though_its_ats_finds_no_room) {
    carrier_is_full = true;
    pulling();
    run_until([this] { return messages_->services().control.has_unsent_of(number()); });
    EXPECT_TRUE(ucp.rest_statuses.empty());
    lose_sender();
    run_until_delivered();
    expect_bytes(*blocks(64, 128));
    carrier_is_full = false;
    messages_->endpoint_closed(ep_);
}

}  // namespace
}  // namespace cuda_nc::uct
