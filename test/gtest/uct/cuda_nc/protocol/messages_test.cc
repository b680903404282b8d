// What a peer may say, and what becomes of it.
#include "uct/cuda_nc/protocol/direct_messages.hpp"

#include <chrono>
#include <cstring>
#include <random>

#include "uct/cuda_nc/memory/peer_memory.hpp"
#include "uct/cuda_nc/memory/quarantine.hpp"
#include "uct/cuda_nc/memory/ring.hpp"
#include "uct/cuda_nc/protocol/messages_fixture.hpp"

namespace cuda_nc::uct {
namespace {

TEST_F(direct_messages_test, a_message_comes_slot_by_slot_and_is_delivered_once) {
    uint64_t message = accepted();
    uint64_t slot = sent.back().length;
    uint64_t offset = first;
    for (unsigned i = 0; offset < total; i = (i + 1) % ring::most_slots) {
        uint64_t length = std::min(slot, total - offset);
        say(control_kind::slot_full, message, i, offset, length);
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

TEST_F(direct_messages_test, on_one_gpu_a_message_comes_in_one_slot) {
    offer_from_our_gpu();
    uint64_t message = accepted();
    EXPECT_EQ(sent.back().slot, 1u);
    EXPECT_GE(sent.back().length, total - first);
    say(control_kind::slot_full, message, 0, first, total - first);
    ASSERT_EQ(end_.unpacked.size(), 1u);
    EXPECT_EQ(end_.unpacked[0].length, total - first);
    rest(message);
    EXPECT_EQ(ucp.rest_statuses, std::vector<ucs_status_t>{UCS_OK});
    sent.clear();
    message = accepted();
    say(control_kind::slot_full, message, 1, first, total - first);
    EXPECT_EQ(end_.unpacked.size(), 1u) << "there is no second slot";
    rest(message);
    EXPECT_EQ(ucp.rest_statuses.back(), UCS_ERR_IO_ERROR);
}

// The sender is complete, and answers nothing any more.
TEST_F(direct_messages_test, a_receive_that_leaves_after_the_end_has_come_waits_for_nobody) {
    gpu::device &device = *gpu::platform::instance().get_device(0);
    std::unique_ptr<gpu::stream> stream;
    std::unique_ptr<gpu::memory> memory;
    // A GPU ends short copies as soon as they are given.
    const bool simulated = std::strcmp(gpu::platform::instance().name(), "sim") == 0;
    const size_t length = simulated ? 64 : size_t{64} << 20;
    ASSERT_EQ(device.create_stream(&stream), UCS_OK);
    ASSERT_EQ(device.allocate(2 * length, &memory), UCS_OK);
    end_.busy = stream.get();
    offer_from_our_gpu();
    const size_t lent = regions_lent();
    const uint64_t message = accepted();
    for (int i = 0; i < 2000; ++i) {
        ASSERT_EQ(stream->copy(memory->address(), memory->address() + length, length), UCS_OK);
    }
    say(control_kind::slot_full, message, 0, first, total - first);
    rest(message);
    ASSERT_NE(end_.message, nullptr) << "it is not unpacked yet";
    sent.clear();
    end_.message->leave();
    EXPECT_TRUE(sent.empty());
    EXPECT_EQ(regions_lent(), lent);
    progress();
    EXPECT_FALSE(messages_->is_busy());
}

TEST_F(direct_messages_test, what_an_interface_tells_itself_waits_for_its_turn) {
    ep_.is_loopback = true;
    offer();
    EXPECT_TRUE(sent.empty()) << "the sender is in the middle of its offer";
    EXPECT_TRUE(messages_->is_busy());
    progress();
    ASSERT_EQ(sent.size(), 1u);
    EXPECT_EQ(sent.back().kind, control_kind::accept_slots);
    say(control_kind::cancel, sent.back().from);
}

TEST_F(direct_messages_test, a_process_reaches_what_it_has_lent_itself) {
    const process_id own = own_process_id();
    region lent = acquire_region(0, 1 << 16), host = acquire_host_region(0, 1 << 16);
    ASSERT_TRUE(lent && host);
    auto reach = [&](int device, uint64_t offset, uint64_t length) {
        return reach_peer_memory(device, lent.handle(), own, lent.offset + offset, length, 1)
            .address;
    };
    EXPECT_EQ(reach(0, 0, lent.size), lent.address);
    EXPECT_EQ(reach(0, 100, 200), lent.address + 100);
    EXPECT_EQ(reach(1, 0, 16), nullptr) << "another GPU does not";
    EXPECT_EQ(reach(0, uint64_t{1} << 40, 16), nullptr);
    EXPECT_EQ(reach(0, 0, uint64_t{1} << 40), nullptr);
    EXPECT_EQ(reach(0, ~uint64_t{0} - lent.offset - 15, 32), nullptr);
    for (int device : {0, 1}) {
        EXPECT_EQ(reach_peer_host_memory(device, host.handle(), own, host.offset, 16).address,
                  host.address);
    }
    release_region(lent);
    release_region(host);
}

TEST_F(direct_messages_test, a_receiver_that_is_not_ours_declines) {
    ucp.takes_offers = nullptr;
    offer();
    ASSERT_EQ(sent.size(), 1u);
    EXPECT_EQ(sent.back().kind, control_kind::decline);
    EXPECT_EQ(sent.back().to, 5u);
}

TEST_F(direct_messages_test, an_offer_whose_first_bytes_complete_the_receive_is_declined) {
    ucp.completes = true;
    offer();
    EXPECT_EQ(ucp.lengths.size(), 1u);
    ASSERT_EQ(sent.size(), 1u);
    EXPECT_EQ(sent.back().kind, control_kind::decline);
    EXPECT_EQ(end_.message, nullptr);
}

TEST_F(direct_messages_test, an_offer_of_more_bytes_than_there_is_room_for_is_declined) {
    offer(total + 1);
    ASSERT_EQ(sent.size(), 1u);
    EXPECT_EQ(sent.back().kind, control_kind::decline);
}

TEST_F(direct_messages_test, an_offer_without_bytes_is_accepted_from_the_first_on) {
    end_.state = 0x7777;
    request_has(end_.state);
    offer_alone();
    EXPECT_TRUE(ucp.lengths.empty()) << "there is nothing for UCP yet";
    ASSERT_EQ(sent.size(), 1u);
    ASSERT_EQ(sent.back().kind, control_kind::accept_slots);
    EXPECT_EQ(sent.back().flags, known_receivers);
    const uint64_t message = sent.back().from;
    uint64_t slot_size = sent.back().length;
    for (uint64_t offset = 0; offset < total; offset += slot_size) {
        say(control_kind::slot_full, message, static_cast<unsigned>(offset / slot_size) % 4, offset,
            std::min(slot_size, total - offset));
        ASSERT_FALSE(end_.unpacked.empty());
        EXPECT_EQ(end_.unpacked.back().offset, offset);
    }
    rest(message, total, 0);
    EXPECT_EQ(ucp.lengths, std::vector<uint64_t>{sizeof(rndv_header) + total});
    EXPECT_EQ(ucp.rest_statuses, std::vector<ucs_status_t>{UCS_OK});
}

TEST_F(direct_messages_test, an_offer_without_bytes_for_another_request_is_declined) {
    end_.state = 0x7777;
    auto expect_declined = [&](uint32_t flags) {
        for (uint64_t word : {0x7778, 0}) {  // another library's datatype, contiguous memory
            request_has(word);
            offer_alone();
            EXPECT_EQ(sent.back().kind, control_kind::decline);
            EXPECT_EQ(sent.back().flags, flags);
            offer_early(99);
            rtr(99);
            EXPECT_EQ(sent.back().kind, control_kind::decline);
            EXPECT_EQ(sent.back().flags, flags);
        }
    };
    expect_declined(0);  // perhaps requests do not tell
    request_has(end_.state);
    sent.clear();
    say(control_kind::cancel, accepted());
    expect_declined(known_receivers);
    end_.sending_side = true;
    request_has(end_.state);
    offer_alone();
    EXPECT_EQ(sent.back().kind, control_kind::decline) << "it sends itself";
}

// As in peer-error mode.
TEST_F(direct_messages_test, requests_that_are_no_addresses_tell_nothing_and_refute_nothing) {
    end_.state = 0x7777;
    request_has(end_.state);
    for (uint64_t request : {uint64_t{0}, uint64_t{8}, uint64_t{1 << 20 | 1}, ~uint64_t{7}}) {
        request_ = reinterpret_cast<char *>(request);
        offer_early(99);
        rtr(99);
        EXPECT_EQ(sent.back().kind, control_kind::decline);
        EXPECT_EQ(sent.back().flags, unknown_receivers);
        offer_alone();
        EXPECT_EQ(sent.back().kind, control_kind::decline);
        EXPECT_EQ(sent.back().flags, unknown_receivers);
        sent.clear();
        const uint64_t message = accepted();
        EXPECT_EQ(sent.back().flags, unknown_receivers);
        say(control_kind::cancel, message);
    }
    request_ = own_request_;
    sent.clear();
    offer_alone();
    EXPECT_EQ(sent.back().kind, control_kind::accept_slots);
    EXPECT_EQ(sent.back().flags, known_receivers);
    say(control_kind::cancel, sent.back().from);
}

TEST_F(direct_messages_test, requests_that_once_disagreed_are_never_believed_again) {
    end_.state = 0x7777;
    bool disagreed = false;
    for (uint64_t word : {0x7777, 0x7776, 0x7777}) {
        request_has(word);
        sent.clear();
        uint64_t message = accepted();
        disagreed |= word != 0x7777;
        EXPECT_EQ(sent.back().flags, disagreed ? unknown_receivers : known_receivers);
        say(control_kind::cancel, message);
    }
    offer_alone();
    EXPECT_EQ(sent.back().kind, control_kind::decline);
    EXPECT_EQ(sent.back().flags, unknown_receivers);
}

TEST_F(direct_messages_test, a_message_that_ends_without_its_bytes_fails) {
    rest(accepted());
    EXPECT_EQ(ucp.rest_statuses, std::vector<ucs_status_t>{UCS_ERR_IO_ERROR});
}

TEST_F(direct_messages_test, an_end_that_does_not_fit_the_beginning_is_not_delivered) {
    uint64_t message = accepted();
    rest(message, total);
    rest(message + 1);
    request_ += 8;
    rest(message);
    EXPECT_EQ(ucp.lengths.size(), 1u) << "another receive's";
    say(control_kind::cancel, message);
    EXPECT_EQ(end_.message, nullptr);
}

TEST_F(direct_messages_test, nobody_but_its_peer_moves_or_ends_a_message) {
    const size_t lent = regions_lent();
    const uint64_t message = accepted();
    author_ = identity + 1;
    auto say_all = [&] {
        say(control_kind::slot_full, message, 0, first, 4096);
        rest(message);
        say(control_kind::cancel, message);
    };
    say_all();
    EXPECT_TRUE(end_.unpacked.empty());
    EXPECT_TRUE(ucp.rest_statuses.empty());
    ASSERT_NE(end_.message, nullptr);
    messages_->endpoint_closed(ep_);
    end_.message->leave();
    say_all();
    EXPECT_EQ(quarantined(), 1u);
    author_ = identity;
    say(control_kind::cancel, message);
    EXPECT_EQ(quarantined(), 0u);
    EXPECT_EQ(regions_lent(), lent);
}

TEST_F(direct_messages_test, a_ring_of_an_ended_receive_waits_for_its_sender) {
    size_t lent = regions_lent();
    uint64_t message = accepted();
    sent.clear();
    ASSERT_NE(end_.message, nullptr);
    end_.message->leave();
    EXPECT_EQ(end_.message, nullptr);
    ASSERT_EQ(sent.size(), 1u);
    EXPECT_EQ(sent.back().kind, control_kind::stop);
    say(control_kind::slot_full, message, 0, first, 4096);
    EXPECT_TRUE(end_.unpacked.empty()) << "the user's memory is no longer touched";
    EXPECT_EQ(regions_lent(), lent + 1);
    say(control_kind::cancel, message);
    EXPECT_EQ(regions_lent(), lent);
    EXPECT_EQ(quarantined(), 0u);
}

TEST_F(direct_messages_test, a_lost_sender_that_is_through_after_all_is_told_so_when_it_can_be) {
    terms_.process = messages_->services().process;
    const size_t lent = regions_lent();
    const uint64_t message = accepted();
    messages_->endpoint_closed(ep_);
    ASSERT_NE(end_.message, nullptr);
    end_.message->leave();
    EXPECT_EQ(quarantined(), 1u);
    iface_.peers.clear();
    sent.clear();
    say(control_kind::cancel, message + 1);
    EXPECT_EQ(quarantined(), 1u);
    say(control_kind::cancel, message);
    EXPECT_EQ(quarantined(), 0u);
    EXPECT_EQ(regions_lent(), lent);
    EXPECT_TRUE(sent.empty());
    iface_.peers[identity] = &ep_;
    messages_->endpoint_connected(ep_);
    ASSERT_EQ(sent.size(), 1u);
    EXPECT_EQ(sent.back().kind, control_kind::ended);
    EXPECT_EQ(sent.back().to, 5u);
    messages_->endpoint_connected(ep_);
    EXPECT_EQ(sent.size(), 1u) << "once";
}

TEST_F(direct_messages_test, an_answer_that_comes_after_all_is_cancelled_when_it_can_be) {
    const uint64_t ended = next_message_id();
    iface_.peers.clear();
    say(control_kind::accept_slots, ended);
    EXPECT_TRUE(sent.empty());
    iface_.peers[identity] = &ep_;
    messages_->endpoint_connected(ep_);
    ASSERT_EQ(sent.size(), 1u);
    EXPECT_EQ(sent.back().kind, control_kind::cancel);
    EXPECT_EQ(sent.back().to, 5u);
    EXPECT_EQ(sent.back().from, ended);
}

// Else a stranger could have us cancel a message of the peer in whose name it answers.
TEST_F(direct_messages_test, an_answer_to_a_number_that_was_never_given_is_passed_over) {
    const uint64_t given = next_message_id();
    say(control_kind::accept_slots, given + (uint64_t(1) << 40));
    say(control_kind::accept_pull, given - (uint64_t(1) << 40));
    say(control_kind::accept_pipe, 0);
    EXPECT_TRUE(sent.empty());
}

TEST_F(direct_messages_test,
       what_waits_for_room_when_its_endpoint_is_closed_is_said_over_the_next_one) {
    carrier_is_full = true;
    messages_->services().control.send(&ep_, control_kind::cancel, 1, 2);
    messages_->endpoint_closed(ep_);
    carrier_is_full = false;
    EXPECT_FALSE(messages_->is_busy());
    messages_->endpoint_connected(ep_);
    ASSERT_EQ(sent.size(), 1u);
    EXPECT_EQ(sent.back().kind, control_kind::cancel);
    EXPECT_EQ(sent.back().to, 1u);
    EXPECT_EQ(sent.back().from, 2u);
}

TEST_F(direct_messages_test, a_sender_that_could_not_be_stopped_is_stopped_over_the_next_endpoint) {
    const size_t lent = regions_lent();
    const uint64_t message = accepted();
    carrier_is_full = true;
    ASSERT_NE(end_.message, nullptr);
    end_.message->leave();
    messages_->endpoint_closed(ep_);
    carrier_is_full = false;
    sent.clear();
    messages_->endpoint_connected(ep_);
    ASSERT_EQ(sent.size(), 1u);
    EXPECT_EQ(sent.back().kind, control_kind::stop);
    EXPECT_EQ(sent.back().to, 5u);
    say(control_kind::cancel, message);
    EXPECT_EQ(quarantined(), 0u);
    EXPECT_EQ(regions_lent(), lent);
}

// Else the sender would offer once more.
TEST_F(direct_messages_test, an_rtr_stays_behind_the_answer_to_the_early_offer) {
    offer_early(99);
    carrier_is_full = true;
    EXPECT_FALSE(rtr(99));
    EXPECT_FALSE(rtr(99)) << "UCP asks again";
    EXPECT_TRUE(sent.empty());
    carrier_is_full = false;
    EXPECT_TRUE(rtr(99));
    ASSERT_EQ(sent.size(), 1u);
    EXPECT_EQ(sent.back().kind, control_kind::accept_slots);
    say(control_kind::cancel, sent.back().from);
}

TEST_F(direct_messages_test, thousands_of_early_offers_wait_for_their_receives) {
    constexpr uint64_t number = 20000;
    for (uint64_t request = 1; request <= number; ++request) {
        offer_early(8 * request);
    }
    ucp.takes_offers = nullptr;
    request_ = nullptr;
    for (uint64_t request = 1; request <= number; ++request) {
        rtr(8 * request);
        ASSERT_EQ(sent.size(), request);
        ASSERT_EQ(sent.back().kind, control_kind::decline);
    }
}

TEST_F(direct_messages_test, words_for_interfaces_that_never_return_make_room_for_others) {
    for (uint64_t gone = 1; gone <= 5000; ++gone) {
        messages_->services().control.send_to_interface(1000000 + gone, control_kind::cancel, gone,
                                                        1);
    }
    iface_.peers.clear();
    messages_->services().control.send_to_interface(identity, control_kind::ended, 7, 8);
    iface_.peers[identity] = &ep_;
    messages_->endpoint_connected(ep_);
    ASSERT_EQ(sent.size(), 1u);
    EXPECT_EQ(sent.back().kind, control_kind::ended);
    EXPECT_EQ(sent.back().to, 7u);
    ep_.peer = 1000001;
    messages_->endpoint_connected(ep_);
    EXPECT_EQ(sent.size(), 1u) << "the oldest are forgotten";
    ep_.peer = 1005000;
    messages_->endpoint_connected(ep_);
    EXPECT_EQ(sent.size(), 2u);
    ep_.peer = identity;
}

TEST_F(direct_messages_test, a_peer_names_no_process_but_its_own) {
    const process_id own = own_process_id(), elsewhere = {7, own.pid_space + 1, 33};
    auto is_accepted = [this](const process_id &process) {
        sent.clear();
        terms_.process = process;
        offer_alone();
        EXPECT_EQ(sent.size(), 1u);
        const control answer = sent.back();
        say(control_kind::cancel, answer.from);
        return answer.kind == control_kind::accept_slots;
    };
    EXPECT_TRUE(is_accepted({}));
    EXPECT_TRUE(is_accepted({own.pid, own.pid_space, 33})) << "it has ended, and is forgotten";
    EXPECT_TRUE(is_accepted(elsewhere)) << "the first is believed";
    EXPECT_FALSE(is_accepted(own)) << "another one";
    EXPECT_TRUE(is_accepted(elsewhere));
    ep_.process = {};
    ep_.carrier_pid = own.pid;
    EXPECT_FALSE(is_accepted({own.pid + 1, own.pid_space, 33})) << "the carrier sends to another";
    EXPECT_TRUE(is_accepted(own));
    ep_.process = {};
    EXPECT_TRUE(is_accepted(elsewhere)) << "numbered otherwise";
}

TEST_F(direct_messages_test, nothing_that_a_peer_says_leads_out_of_slots_and_message) {
    unsigned seed = std::random_device()();
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    ring probe = acquire_ring(0, total, false, false);
    ASSERT_TRUE(probe);
    char *begin = probe.memory.address, *end = begin + probe.memory.size;
    release_region(probe.memory);  // the next message's
    for (int round = 0; round < 200; ++round) {
        sent.clear();
        uint64_t message = accepted();
        for (int i = 0; i < 50; ++i) {
            auto any = [&](uint64_t likely) {
                return random() % 3 == 0 ? random() : random() % (likely + 2);
            };
            auto kind = static_cast<control_kind>(random() % (num_control_kinds + 2));
            say(kind == control_kind::cancel ? control_kind::slot_full : kind, message,
                static_cast<unsigned>(any(ring::most_slots)), any(total), any(total / 4));
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

TEST_F(direct_messages_test, short_and_foreign_messages_are_passed_over) {
    char bytes[sizeof(control)] = {};
    for (size_t length = 0; length <= sizeof(bytes); ++length) {
        messages_->handle_control(bytes, length);
        messages_->handle_data(bytes, std::min(length, sizeof(data_prefix) - 1));
    }
    EXPECT_TRUE(sent.empty());
    EXPECT_TRUE(ucp.lengths.empty());
}

}  // namespace
}  // namespace cuda_nc::uct
