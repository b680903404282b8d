// Messages whose one side is contiguous GPU memory: what goes ahead of UCP's RTS and RTR, what is
// held back, and how UCP's requests end.
#include <cstring>

#include "ucs/backend/sim/options.hpp"
#include "uct/cuda_nc/protocol/pull_fixture.hpp"
#include "uct/cuda_nc/protocol/receive_message.hpp"

namespace cuda_nc::uct {
namespace {

class direct_messages_with_plain : public direct_messages_with_source {
  protected:
    // The sender's contiguous memory is offered, and UCP answers its RTS.
    leaving ask_plain(uint64_t size = total) {
        offer_plain();
        return rtr_of(99, nullptr, size);
    }
    void offer_plain(uint64_t request = 99) {
        sent.clear();
        end_.launched.clear();
        offer_early(request, 0);
    }
    // UCP answers that send by ATS, because it has read the bytes itself.
    leaving ats_of(uint64_t request) { return pass(ep_, ats_id, request, "123456789", 9); }
    // 1, 0: the peer has just been told to describe its memory, or not to.
    static int told_to_describe() {
        return sent.empty() || sent.back().kind != control_kind::describe ? -1 : sent.back().slot;
    }
    void SetUp() override {
        direct_messages_with_source::SetUp();
        if (target_ != nullptr) {
            describe_plain();
        }
    }
    void describe_plain() {
        source_ = lent_.source;
        say_alike(false);
        source_.num_dims = 0;
        source_.first_displacement = 0;
        source_.block_length = total;
    }
    void expect_plain_bytes() {
        layout_builder one;
        one.append(0, total);
        expect_bytes(*one.finish());
    }
    // Whether the first `size` bytes of the source have come to the target.
    bool target_holds(uint64_t size) {
        std::vector<char> seen(size);
        copy(seen.data(), target_->address(), size);
        for (uint64_t at = 0; at < size; ++at) {
            if (seen[at] != pattern(source_.displacement_0 + static_cast<int64_t>(at))) {
                return false;
            }
        }
        return true;
    }
    // A message from a datatype into contiguous memory at the target.
    void expect_pulled_plain(uint64_t size = total) {
        source_.block_length = size;
        sent.clear();
        offer_early(99, 5, size);
        ASSERT_EQ(rtr_of(99, target_->address(), size), leaving::now);
        ASSERT_EQ(said(control_kind::accept_straight), 0);
        ASSERT_EQ(said(control_kind::accept_pull), 1);
        const uint64_t message = sent.front().from;
        rest(message, size, 0);
        run_until([] { return !ended_by_atp.empty(); });
        EXPECT_EQ(said(control_kind::pulled), 1);
        ASSERT_EQ(ended_by_atp.size(), 1u);
        EXPECT_EQ(ended_by_atp[0].status, UCS_OK);
        EXPECT_EQ(ended_by_atp[0].size, size);
        std::vector<char> seen(target_bytes);
        copy(seen.data(), target_->address(), target_bytes);
        for (uint64_t at = 0; at < target_bytes; ++at) {
            const char expected = static_cast<char>(
                at < size ? pattern(source_.displacement_0 + static_cast<int64_t>(at)) : 0);
            ASSERT_EQ(seen[at], expected) << at;
        }
    }
    static acknowledgement last_ats() {
        acknowledgement seen = {};
        if (!sent_of_ucp.empty() && sent_of_ucp.back().bytes.size() == sizeof(seen)) {
            std::memcpy(&seen, sent_of_ucp.back().bytes.data(), sizeof(seen));
        }
        return seen;
    }
};

INSTANTIATE_TEST_SUITE_P(by, direct_messages_with_plain, testing::Bool(), [](const auto &one) {
    return std::string(one.param ? "copy" : "kernel");
});

TEST_P(direct_messages_with_plain, are_read_and_answered_by_ats_in_the_place_of_rtr) {
    ASSERT_EQ(ask_plain(), leaving::never);
    EXPECT_EQ(end_.launched.size(), 1u);
    EXPECT_TRUE(ucp.lengths.empty()) << "UCP is still in the middle of its RTR";
    run_until([] { return !sent_of_ucp.empty(); });
    EXPECT_TRUE(sent.empty()) << "nobody at the sender knows of a message";
    EXPECT_EQ(sent_of_ucp.back().id, ats_id);
    EXPECT_EQ(last_ats().request, 99u);
    EXPECT_EQ(last_ats().status, UCS_OK);
    EXPECT_EQ(last_ats().size, total);
    EXPECT_EQ(ucp.lengths, std::vector<uint64_t>{sizeof(rndv_header) + total});
    EXPECT_EQ(ucp.rest_statuses, std::vector<ucs_status_t>{UCS_OK});
    expect_plain_bytes();
}

TEST_P(direct_messages_with_plain, get_the_rtr_where_no_kernel_runs) {
    end_.launch_status = UCS_ERR_IO_ERROR;
    ASSERT_EQ(ask_plain(), leaving::never);
    run_until([] { return !sent_of_ucp.empty(); });
    expect_rtr();
    EXPECT_TRUE(sent.empty()) << "nobody at the sender knows of a message";
    EXPECT_TRUE(ucp.lengths.empty()) << "the bytes are still to come";
    expect_first_fragment();
}

TEST_P(direct_messages_with_plain, wait_for_room_with_their_ats) {
    ASSERT_EQ(ask_plain(), leaving::never);
    carrier_is_full = true;
    run_until([this] { return ports_lent() == sides_; });
    for (int i = 0; i < 100; ++i) {
        progress();
    }
    EXPECT_TRUE(sent_of_ucp.empty());
    EXPECT_TRUE(ucp.rest_statuses.empty()) << "the user may close the endpoint next";
    carrier_is_full = false;
    run_until_delivered();
    EXPECT_EQ(sent_of_ucp.back().id, ats_id);
}

TEST_P(direct_messages_with_plain, that_ucp_reads_when_it_is_given_the_rts_are_forgotten) {
    at_rts = [this] {
        EXPECT_EQ(ats_of(99), leaving::now);
        return UCS_OK;
    };
    EXPECT_EQ(ask_plain(), leaving::now);
    EXPECT_TRUE(end_.launched.empty());
}

TEST_P(direct_messages_with_plain, of_another_length_than_was_offered_are_ucps) {
    EXPECT_EQ(ask_plain(total - 1), leaving::now);
    EXPECT_TRUE(end_.launched.empty());
}

TEST_P(direct_messages_with_plain, that_are_not_contiguous_or_not_in_the_memory_are_ucps) {
    using change = void (*)(source_descriptor &);
    const change all[] = {
        [](source_descriptor &one) { one.allocation = 0; },
        [](source_descriptor &one) { one.displacement_0 = -1; },
        [](source_descriptor &one) { one.displacement_0 = INT64_MAX; },
        [](source_descriptor &one) { one.displacement_0 = source_bytes - total + 1; },
        [](source_descriptor &one) { one.block_length = total + 1; },
        [](source_descriptor &one) { one.first_displacement = source_bytes; },
        [](source_descriptor &one) { one.is_list = 1; },
    };
    for (const change &one : all) {
        describe_plain();
        one(source_);
        EXPECT_EQ(ask_plain(), leaving::now) << &one - all;
        EXPECT_TRUE(end_.launched.empty()) << &one - all;
        EXPECT_EQ(end_.message, nullptr) << &one - all;
    }
}

TEST_P(direct_messages_with_plain, know_no_cancel_nor_end_of_a_stranger) {
    ASSERT_EQ(ask_plain(), leaving::never);
    const uint64_t number = static_cast<receive_message *>(end_.message)->id();
    say(control_kind::cancel, number);
    rest(number, total, 0);
    run_until([] { return !sent_of_ucp.empty(); });
    EXPECT_EQ(sent_of_ucp.size(), 1u);
    EXPECT_EQ(ucp.lengths.size(), 1u);
    expect_plain_bytes();
}

TEST_P(direct_messages_with_plain, leave_with_their_receive) {
    ASSERT_EQ(ask_plain(), leaving::never);
    ASSERT_NE(end_.message, nullptr);
    end_.message->leave();
    EXPECT_EQ(end_.message, nullptr);
    EXPECT_TRUE(sent.empty());
    expect_ats_of_failure();
}

TEST_P(direct_messages_with_plain, get_the_rtr_when_their_endpoint_is_closed) {
    ASSERT_EQ(ask_plain(), leaving::never);
    messages_->endpoint_closed(ep_);
    expect_rtr();
    expect_first_fragment();
    for (int i = 0; i < 100; ++i) {
        progress();
    }
    EXPECT_EQ(sent_of_ucp.size(), 1u);
    EXPECT_TRUE(sent.empty() && ucp.lengths.empty());
}

TEST_P(direct_messages_with_plain, that_nobody_takes_are_not_described_any_more) {
    const auto read_by_ucp = [&] {
        offer_plain();
        return ats_of(99);
    };
    const auto written_to = [&] {
        offer_plain();
        return rtr_of(99, target_->address());
    };
    for (unsigned most : {64u, 512u, 4096u}) {
        for (unsigned i = 0; i < most; ++i) {
            ASSERT_EQ(i % 2 == 0 ? read_by_ucp() : written_to(), leaving::now);
            ASSERT_EQ(told_to_describe(), -1) << i;
        }
        EXPECT_EQ(written_to(), leaving::now);
        EXPECT_EQ(told_to_describe(), 0);
        EXPECT_EQ(read_by_ucp(), leaving::now) << "it was under way";
        EXPECT_EQ(told_to_describe(), -1) << "it has been said";
        EXPECT_EQ(rtr_of(100, target_->address()), leaving::now);
        EXPECT_EQ(told_to_describe(), -1) << "contiguous memory needs no descriptions";
        EXPECT_EQ(rtr_of(100), leaving::now);
        EXPECT_EQ(told_to_describe(), 1) << "a datatype does";
        sent.clear();
        EXPECT_EQ(rtr_of(101), leaving::now);
        EXPECT_EQ(told_to_describe(), -1) << "it has been said";
    }
}

// However many there are: a receive may be posted late.
TEST_P(direct_messages_with_plain, that_wait_for_their_receives_are_kept) {
    for (uint64_t request = 1000; request < 1300; ++request) {
        offer_plain(request);
        ASSERT_EQ(told_to_describe(), -1);
    }
    EXPECT_EQ(rtr_of(1000), leaving::never);
    EXPECT_EQ(end_.launched.size(), 1u);
    end_.message->leave();
}

// UCP asks again when there is room: by then the offer was taken.
TEST_P(direct_messages_with_plain, are_not_asked_for_where_an_answer_waits_for_room) {
    source_ = {};
    sent.clear();
    ep_.told_not_to_describe = true;
    offer_early(99);
    carrier_is_full = true;
    EXPECT_EQ(rtr_of(99), leaving::later);
    carrier_is_full = false;
    EXPECT_EQ(rtr_of(99), leaving::now);
    EXPECT_TRUE(ep_.told_not_to_describe);
    EXPECT_EQ(said(control_kind::describe), 0);
    ASSERT_EQ(said(control_kind::accept_slots), 1);
    say(control_kind::cancel, sent.front().from);
    ep_.told_not_to_describe = false;
}

TEST_P(direct_messages_with_plain, that_are_taken_begin_the_count_anew) {
    for (int i = 0; i < 200; ++i) {
        offer_plain();
        if (i % 50 == 49) {
            ASSERT_EQ(rtr_of(99), leaving::never);
            end_.message->leave();
        } else {
            ASSERT_EQ(ats_of(99), leaving::now);
        }
        ASSERT_EQ(told_to_describe(), -1) << i;
    }
}

TEST_P(direct_messages_with_plain, of_another_peer_are_not_forgotten_with_an_ats) {
    offer_plain();
    endpoint other = {};
    other.carrier = ep_.carrier;
    other.peer = identity + 1;
    EXPECT_EQ(pass(other, ats_id, 99, "123456789", 9), leaving::now);
    EXPECT_EQ(rtr_of(99), leaving::never);
    end_.message->leave();
}

// ---- into contiguous memory

TEST_P(direct_messages_with_plain, short_receives_are_pulled_and_ended_by_atp) {
    expect_pulled_plain(64 << 10);
    EXPECT_TRUE(ucp.lengths.empty()) << "UCP must copy nothing";
}

// From a sender whose memory this process cannot reach.
TEST_P(direct_messages_with_plain, receives_are_packed_into_straight_and_ended_by_atp) {
    source_ = {};
    sent.clear();
    offer_early(99);
    ASSERT_EQ(rtr_of(99, target_->address() + 512), leaving::now);
    ASSERT_EQ(said(control_kind::accept_straight), 1);
    const control answer = sent.back();
    EXPECT_EQ(answer.to, 5u);
    EXPECT_EQ(answer.flags, known_receivers);
    EXPECT_EQ(answer.length, total);
    EXPECT_EQ(answer.memory.address + answer.offset,
              reinterpret_cast<uint64_t>(target_->address()) + 512);
    EXPECT_TRUE(ended_by_atp.empty());
    rest(answer.from, total - 1, 0);
    EXPECT_TRUE(ended_by_atp.empty()) << "that is not how the message began";
    rest(answer.from, total, 0);
    ASSERT_EQ(ended_by_atp.size(), 1u);
    EXPECT_EQ(ended_by_atp[0].request, reinterpret_cast<uint64_t>(request_));
    EXPECT_EQ(ended_by_atp[0].status, UCS_OK);
    EXPECT_EQ(ended_by_atp[0].size, total);
    EXPECT_TRUE(ucp.lengths.empty()) << "UCP must copy nothing";
    rest(answer.from, total, 0);
    EXPECT_EQ(ended_by_atp.size(), 1u);
}

// As in peer-error mode. Such a receive is known by its address, but others are not.
TEST_P(direct_messages_with_plain, receives_do_not_tell_that_others_are_found) {
    source_ = {};
    sent.clear();
    request_ = reinterpret_cast<char *>(1 << 20 | 1);
    offer_early(99);
    ASSERT_EQ(rtr_of(99, target_->address()), leaving::now);
    ASSERT_EQ(said(control_kind::accept_straight), 1);
    EXPECT_EQ(sent.back().flags, unknown_receivers);
    rest(sent.back().from, total, 0);
    EXPECT_EQ(ended_by_atp.size(), 1u);
}

TEST_P(direct_messages_with_plain, receives_are_left_to_ucp_when_the_sender_cancels) {
    source_ = {};
    offer_early(99);
    rtr_of(99, target_->address());
    ASSERT_EQ(said(control_kind::accept_straight), 1);
    say(control_kind::cancel, sent.back().from);
    rest(sent.back().from, total, 0);
    EXPECT_TRUE(ended_by_atp.empty());
}

TEST_P(direct_messages_with_plain, receives_end_with_their_endpoint) {
    source_ = {};
    offer_early(99);
    rtr_of(99, target_->address());
    ASSERT_EQ(said(control_kind::accept_straight), 1);
    const uint64_t message = sent.back().from;
    messages_->endpoint_closed(ep_);
    rest(message, total, 0);
    EXPECT_TRUE(ended_by_atp.empty());
}

// The sender hears that it is to stop, and sends fragments, which UCP would write to memory that
// the user has back.
TEST_P(direct_messages_with_plain, a_fin_that_crosses_with_the_word_to_stop_ends_no_receive) {
    const uint64_t size = 64 << 10;
    source_.block_length = size;
    sent.clear();
    offer_early(99, 5, size);
    ASSERT_EQ(rtr_of(99, target_->address(), size), leaving::now);
    ASSERT_EQ(said(control_kind::accept_pull), 1);
    const uint64_t message = sent.front().from;
    // Nothing tells of the pull's end before the FIN has come, and its bytes are not to be looked
    // at while they are written.
    const auto ended = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
    run_until([ended] { return std::chrono::steady_clock::now() > ended; });
    run_until([&] { return target_holds(size); });
    messages_->endpoint_closed(ep_);
    ASSERT_EQ(said(control_kind::stop), 1);
    rest(message, size, 0);
    progress();
    EXPECT_TRUE(ended_by_atp.empty());
}

// Whether the sender's kernel wrote all its FIN alone says; before UCX 1.22 no failure can be told.
TEST_P(direct_messages_with_plain, receives_whose_sender_is_gone_fail_where_that_can_be_told) {
    source_ = {};
    messages_->services().between_looks = std::chrono::milliseconds(2);
    child_->kill();
    child_->wait();
    for (release which : {release::v1_22, release::v1_21}) {
        ucx_.which = which;
        sent.clear();
        ended_by_atp.clear();
        offer_early(99);
        rtr_of(99, target_->address());
        ASSERT_EQ(said(control_kind::accept_straight), 1);
        const uint64_t message = sent.back().from;
        // Far more than the looks take where the machine is not busy; where one is to be told it is
        // waited for.
        const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(1500);
        run_until([&] {
            return which < release::v1_22 ? std::chrono::steady_clock::now() > end
                                          : !ended_by_atp.empty();
        });
        EXPECT_EQ(ended_by_atp.size(), which < release::v1_22 ? 0u : 1u);
        for (const acknowledgement &one : ended_by_atp) {
            EXPECT_EQ(one.status, UCS_ERR_CONNECTION_RESET);
        }
        say(control_kind::cancel, message);
    }
}

// Here the receiver knows by itself that it has all bytes.
TEST_P(direct_messages_with_plain, receives_that_are_pulled_are_complete_without_their_fin) {
    source_ = lent_.source;
    messages_->services().between_looks = std::chrono::milliseconds(2);
    terms_.flags = not_straight;
    sent.clear();
    offer_early(99);
    ASSERT_EQ(rtr_of(99, target_->address()), leaving::now);
    ASSERT_EQ(said(control_kind::accept_pull), 1);
    child_->kill();
    child_->wait();
    run_until([] { return !ended_by_atp.empty(); });
    ASSERT_EQ(ended_by_atp.size(), 1u);
    EXPECT_EQ(ended_by_atp[0].status, UCS_OK);
}

// UCX before 1.22 would call them complete.
TEST_P(direct_messages_with_plain, receives_that_fail_are_told_so_or_end_the_process) {
    if (std::string(gpu::platform::instance().name()) != "sim") {
        GTEST_SKIP() << "makes memory of the simulated GPU one that is not shared";
    }
    gpu::sim::set_sharing(gpu::platform::instance(), target_->address(), gpu::sharing::none);
    source_ = {};  // nor can it be pulled
    for (release which : {release::v1_21, release::v1_22}) {
        ucx_.which = which;
        ended_by_atp.clear();
        sent.clear();
        offer_early(99);
        ASSERT_EQ(rtr_of(99, target_->address()), leaving::now);
        ASSERT_EQ(said(control_kind::accept_slots), 1);
        const uint64_t message = sent.back().from;
        if (which < release::v1_22) {
            EXPECT_DEATH(rest(message, total, 0), "receive failed: .*contiguous GPU memory");
            say(control_kind::cancel, message);
            continue;
        }
        rest(message, total, 0);  // no slot was filled
        ASSERT_EQ(ended_by_atp.size(), 1u);
        EXPECT_NE(ended_by_atp[0].status, UCS_OK);
    }
}

TEST_P(direct_messages_with_plain, receives_into_memory_that_is_not_shared_are_pulled) {
    if (std::string(gpu::platform::instance().name()) != "sim") {
        GTEST_SKIP() << "makes memory of the simulated GPU one that is not shared";
    }
    gpu::sim::set_sharing(gpu::platform::instance(), target_->address(), gpu::sharing::none);
    expect_pulled_plain();
}

// The simulated GPU would refuse a launch that takes it for the GPU's own memory.
TEST_P(direct_messages_with_plain, receives_into_managed_memory_are_pulled) {
    if (std::string(gpu::platform::instance().name()) != "sim") {
        GTEST_SKIP() << "makes managed memory of the simulated GPU";
    }
    std::unique_ptr<gpu::memory> managed;
    ASSERT_EQ(gpu::sim::allocate_managed(gpu::platform::instance(), 0, target_bytes, &managed),
              UCS_OK);
    target_.swap(managed);
    sent.clear();
    EXPECT_EQ(rts_of(target_->address()), leaving::now) << "no other process can be given it";
    EXPECT_TRUE(sent.empty());
    expect_pulled_plain();
    target_.swap(managed);
}

// It has tried.
TEST_P(direct_messages_with_plain, receives_into_memory_that_the_sender_does_not_reach_are_pulled) {
    source_ = lent_.source;
    terms_.flags = not_straight;
    sent.clear();
    offer_early(99);
    ASSERT_EQ(rtr_of(99, target_->address()), leaving::now);
    EXPECT_EQ(said(control_kind::accept_straight), 0);
    ASSERT_EQ(said(control_kind::accept_pull), 1);
    rest(sent.front().from, total, 0);
    run_until([] { return !ended_by_atp.empty(); });
    ASSERT_EQ(ended_by_atp.size(), 1u);
    EXPECT_EQ(ended_by_atp[0].status, UCS_OK);
}

TEST_P(direct_messages_with_plain, receives_of_host_memory_or_another_length_are_declined) {
    source_ = lent_.source;
    std::vector<char> host(total);
    const struct {
        const void *address;
        uint64_t size;
    } all[] = {{host.data(), total},
               {target_->address(), total - 1},
               {target_->address() + target_bytes - 1, total}};
    for (const auto &one : all) {
        sent.clear();
        offer_early(99);
        EXPECT_EQ(rtr_of(99, one.address, one.size), leaving::now);
        EXPECT_EQ(said(control_kind::accept_straight), 0);
        EXPECT_EQ(said(control_kind::decline), 1);
    }
}

// ---- what a sender of contiguous memory says

TEST_P(direct_messages_with_plain, are_offered_with_their_rts) {
    sent.clear();
    ASSERT_EQ(rts_of(target_->address() + 64), leaving::never);
    ASSERT_EQ(said(control_kind::early_offer), 1);
    const said_to_peer &offer = sent.back();
    EXPECT_EQ(offer.from, 0u);
    EXPECT_EQ(offer.rts.request, reinterpret_cast<uint64_t>(request_));
    EXPECT_EQ(offer.rts.size, total);
    EXPECT_EQ(offer.early.source.address + static_cast<uint64_t>(offer.early.source.displacement_0),
              reinterpret_cast<uint64_t>(target_->address()) + 64);
    EXPECT_EQ(offer.early.source.block_length, total);
}

TEST_P(direct_messages_with_plain, are_offered_only_where_that_is_wanted) {
    std::vector<char> host(total);
    sent.clear();
    EXPECT_EQ(rts_of(host.data()), leaving::now);
    say(control_kind::describe, 0, 0);
    EXPECT_EQ(rts_of(target_->address()), leaving::now);
    EXPECT_TRUE(sent.empty());
    say(control_kind::describe, 0, 1);
    carrier_is_full = true;
    EXPECT_EQ(rts_of(target_->address()), leaving::later) << "the RTS goes with the offer";
    carrier_is_full = false;
    EXPECT_EQ(rts_of(target_->address()), leaving::never);
    EXPECT_EQ(said(control_kind::early_offer), 1);
}

TEST_P(direct_messages_with_plain, pass_by_am_bcopy_too) {
    struct {
        rtr_head head;
        char key[20];
    } rtr = {{99, reinterpret_cast<uint64_t>(request_), 0, total, 0}, "key"};
    rtr.head.address = reinterpret_cast<uint64_t>(target_->address());
    auto pack = [](void *destination, void *from) -> size_t {
        std::memcpy(destination, from, sizeof(rtr));
        return sizeof(rtr);
    };
    source_ = {};
    offer_early(99);
    sent.clear();
    EXPECT_EQ(messages_->send_rendezvous(ep_, rtr_id, pack, &rtr, 0),
              static_cast<ssize_t>(sizeof(rtr)));
    ASSERT_EQ(said(control_kind::accept_straight), 1);
    ASSERT_EQ(sent_of_ucp.size(), 1u);
    EXPECT_EQ(sent_of_ucp[0].id, rtr_id);
    EXPECT_EQ(std::memcmp(sent_of_ucp[0].bytes.data(), &rtr, sizeof(rtr)), 0);
    say(control_kind::cancel, sent.back().from);
}

}  // namespace
}  // namespace cuda_nc::uct
