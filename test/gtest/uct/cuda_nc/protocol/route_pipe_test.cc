// Offers and answers of pipes, early ones, and what a hostile peer makes of them.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <random>
#include <thread>

#include "uct/cuda_nc/engine/admission.hpp"
#include "uct/cuda_nc/memory/lending_child.hpp"
#include "uct/cuda_nc/memory/lent_memory.hpp"
#include "uct/cuda_nc/memory/peer_memory.hpp"
#include "uct/cuda_nc/memory/quarantine.hpp"
#include "uct/cuda_nc/protocol/send_message.hpp"

namespace cuda_nc::uct {
namespace {

TEST_F(direct_messages_test, an_early_offer_is_answered_before_the_request_for_data) {
    learn_requests();
    offer_early(99);
    rtr(98);
    EXPECT_TRUE(sent.empty()) << "another send";
    rtr(99);
    ASSERT_EQ(sent.size(), 1u);
    EXPECT_EQ(sent.back().kind, control_kind::accept_slots);
    EXPECT_EQ(sent.back().to, 5u);
    uint64_t message = sent.back().from;
    rtr(99);
    EXPECT_EQ(sent.size(), 1u) << "answered once";
    offer_alone();
    EXPECT_EQ(sent.size(), 1u) << "accepted before";
    say(control_kind::cancel, message);
}

// As UCP does where the receive is posted already.
TEST_F(direct_messages_test, an_early_offer_is_answered_while_ucp_is_given_its_rts) {
    at_rts = [this] {
        rtr(99);
        return UCS_OK;
    };
    offer_early(99);
    ASSERT_EQ(sent.size(), 1u);
    EXPECT_EQ(sent.back().kind, control_kind::accept_slots);
    say(control_kind::cancel, sent.back().from);
    sent.clear();
    rtr(99);
    EXPECT_TRUE(sent.empty()) << "it was taken";
}

TEST_F(direct_messages_test, an_early_offer_is_void_when_ucp_does_not_keep_its_rts) {
    at_rts = [] { return UCS_ERR_NO_MEMORY; };
    offer_early(99);
    at_rts = [this] {
        messages_->endpoint_closed(ep_);
        return UCS_OK;
    };
    offer_early(100);
    at_rts = [this] {  // one that comes in the middle of another
        at_rts = nullptr;
        offer_early(102);
        rtr(101);
        return UCS_OK;
    };
    learn_requests();
    offer_early(101);
    ASSERT_EQ(sent.size(), 1u);
    say(control_kind::cancel, sent.back().from);
    sent.clear();
    for (uint64_t request : {99, 100, 101}) {
        rtr(request);
        EXPECT_TRUE(sent.empty()) << request;
    }
    rtr(102);
    ASSERT_EQ(sent.size(), 1u);
    say(control_kind::cancel, sent.back().from);
}

TEST_F(direct_messages_test, an_early_offer_to_memory_of_others_is_declined) {
    learn_requests();
    request_has(0x7778);
    offer_early(99);
    rtr(99);
    ASSERT_EQ(sent.size(), 1u);
    EXPECT_EQ(sent.back().kind, control_kind::decline);
    EXPECT_EQ(sent.back().to, 5u);
}

TEST_F(direct_messages_test, early_offers_end_when_withdrawn_and_with_their_endpoint) {
    learn_requests();
    offer_early(99);
    withdraw(99);
    rtr(99);
    offer_early(100);
    messages_->endpoint_closed(ep_);
    rtr(100);
    EXPECT_TRUE(sent.empty());
    for (uint64_t request = 1; request < 10000; ++request) {
        offer_early(request);  // bounded
    }
}

// UCP uses the number of a send again.
TEST_F(direct_messages_test, an_early_offer_that_was_not_asked_for_is_not_of_a_later_message) {
    learn_requests();
    offer_early(99);
    rts_comes(98);
    rts_comes(99);
    rtr(99);
    EXPECT_TRUE(sent.empty());
    offer_early(99);
    rtr(99);
    ASSERT_EQ(sent.size(), 1u);
    say(control_kind::cancel, sent.back().from);
}

// What waits for room goes first.
TEST_F(direct_messages_test, an_rts_goes_with_its_early_offer) {
    end_.sending_side = true;
    end_.state = 0x7777;
    request_has(end_.state);
    const size_t sides = ports_lent();
    carrier_is_full = true;
    EXPECT_FALSE(rts());
    EXPECT_EQ(end_.message, nullptr);
    EXPECT_EQ(ports_lent(), sides);
    EXPECT_FALSE(messages_->is_busy()) << "nothing is to be sent";
    messages_->services().control.send(&ep_, control_kind::cancel, 1, 2);
    EXPECT_FALSE(rts());
    EXPECT_TRUE(sent.empty());
    carrier_is_full = false;
    EXPECT_TRUE(rts());
    ASSERT_EQ(sent.size(), 2u);
    EXPECT_EQ(sent[0].kind, control_kind::cancel);
    EXPECT_EQ(sent[1].kind, control_kind::early_offer);
    EXPECT_EQ(sent[1].rts.request, reinterpret_cast<uint64_t>(request_));
    ASSERT_NE(end_.message, nullptr);
    end_.message->leave();
}

TEST_F(direct_messages_test, a_send_is_offered_early_where_receivers_are_known) {
    end_.sending_side = true;
    end_.state = 0x7777;
    request_has(end_.state);
    ep_.known_receivers = receivers_known::no;
    rts();
    EXPECT_TRUE(sent.empty()) << "it can carry first bytes";
    ep_.known_receivers = receivers_known::perhaps;
    unsigned early = 0;
    for (int i = 0; i < 34; ++i) {
        rts();
        if (end_.message != nullptr) {
            ++early;
            end_.message->leave();
        }
    }
    EXPECT_EQ(early, 32u) << "the others carry first bytes";
    sent.clear();
    ep_.known_receivers = receivers_known::yes;
    request_has(0x7778);
    rts();
    EXPECT_TRUE(sent.empty()) << "contiguous memory";
    request_has(end_.state);
    rts();
    ASSERT_EQ(sent.size(), 1u);
    EXPECT_EQ(sent.back().kind, control_kind::early_offer);
    EXPECT_EQ(sent.back().rts.request, reinterpret_cast<uint64_t>(request_));
    EXPECT_EQ(sent.back().rts.size, total);
    rts();
    EXPECT_EQ(sent.size(), 1u) << "it is offered once";
    ASSERT_NE(end_.message, nullptr);
    end_.message->leave();
    ASSERT_EQ(sent.size(), 2u);
    EXPECT_EQ(sent.back().kind, control_kind::withdraw);
    EXPECT_EQ(end_.message, nullptr);
}

// Their receive may be into contiguous memory, which nobody finds by first bytes.
TEST_F(direct_messages_test, a_send_of_contiguous_bytes_is_always_offered_early) {
    end_.sending_side = true;
    end_.state = 0x7777;
    end_.what = one_block(total);
    request_has(end_.state);
    for (receivers_known known : {receivers_known::perhaps, receivers_known::no}) {
        ep_.known_receivers = known;
        for (int i = 0; i < 32; ++i) {
            sent.clear();
            rts();
            ASSERT_EQ(sent.size(), 1u);
            EXPECT_EQ(sent.back().kind, control_kind::early_offer);
            end_.message->leave();
        }
    }
}

// UCX forgets the datatype's state of a send that it aborts before the receiver's answer.
TEST_F(direct_messages_test, a_send_is_gone_with_its_endpoint_though_its_datatype_never_ends) {
    end_.sending_side = true;
    end_.state = 0x7777;
    request_has(end_.state);
    const size_t sides = ports_lent();
    rts();
    ASSERT_NE(end_.message, nullptr);
    messages_->endpoint_closed(ep_);
    EXPECT_EQ(end_.message, nullptr);
    EXPECT_EQ(ports_lent(), sides);
    EXPECT_FALSE(messages_->is_busy());
}

TEST_F(direct_messages_test, offers_of_pipes_that_cannot_be_are_answered_with_slots) {
    auto expect_slots = [&](auto &&change) {
        terms_ = {};
        terms_.channels = 16;
        terms_.sequence = gpu::pipe_sequence_step;
        std::memcpy(terms_.gpu, "another", 7);
        change(terms_);
        sent.clear();
        uint64_t message = accepted();
        EXPECT_TRUE(end_.launched.empty());
        say(control_kind::cancel, message);
    };
    size_t sides = ports_lent();
    expect_slots([](sender_offer &) {});  // its memory cannot be opened
    expect_slots([](sender_offer &one) { one.channels = 0; });
    expect_slots([](sender_offer &one) { one.sequence = 0; });
    expect_slots([](sender_offer &one) { one.sequence = 1; });
    expect_slots([](sender_offer &one) { one.sequence = ~uint64_t{0} << 32; });
    expect_slots([](sender_offer &one) { std::memset(&one, 0xff, sizeof(one)); });
    expect_slots([](sender_offer &one) {  // one GPU for both
        const std::string place = gpu::platform::instance().get_device(0)->properties().bus_id;
        std::memset(one.gpu, 0, sizeof(one.gpu));
        std::memcpy(one.gpu, place.data(), std::min(place.size(), sizeof(one.gpu)));
    });
    EXPECT_EQ(ports_lent(), sides);
}

TEST_F(direct_messages_test, answers_that_describe_no_pipe_are_refused) {
    std::mt19937_64 random(20261121);
    size_t sides = ports_lent();
    for (int round = 0; round < 200; ++round) {
        sent.clear();
        send_message one(messages_->services(), ep_, end_, 9);
        one.offer().bring_port();
        one.offered(0);
        EXPECT_EQ(one.offer().content().channels != 0, ports_lent() == sides + 1);
        control answer = {};
        answer.kind = control_kind::accept_pipe;
        answer.from = 33;
        answer.pipe.channels = static_cast<uint32_t>(random() >> random() % 64);
        answer.pipe.chunk_size = static_cast<uint32_t>(random() >> random() % 64);
        answer.pipe.depth = static_cast<uint32_t>(random() >> random() % 64);
        answer.pipe.sequence = random() >> random() % 64;
        answer.pipe.segment = random() >> random() % 64;
        answer.pipe.flags = random() >> random() % 64;
        EXPECT_TRUE(one.handle_answer(answer));
        EXPECT_EQ(one.now(), send_message::state::declined);
        EXPECT_TRUE(end_.launched.empty());
        ASSERT_EQ(sent.size(), 1u);
        EXPECT_EQ(sent.back().kind, control_kind::cancel);
        EXPECT_EQ(sent.back().to, 33u);
        EXPECT_FALSE(one.handle_answer(answer)) << "it goes by host memory already";
    }
    EXPECT_EQ(ports_lent(), sides);
}

// A process that only sends looks for those who have gone, too.
TEST_F(direct_messages_test, a_port_whose_receiver_has_gone_comes_back_with_a_later_offer) {
    static bool released;
    released = false;
    const pid_t child = fork();
    if (child == 0) {
        _exit(0);
    }
    const process_id receiver = process_id_of(static_cast<uint32_t>(child));
    waitpid(child, nullptr, 0);
    quarantine(&released, [](void *is) noexcept { *static_cast<bool *>(is) = true; }, receiver,
               {1, identity});
    std::this_thread::sleep_for(std::chrono::milliseconds(250));  // between two looks
    send_message one(messages_->services(), ep_, end_, 9);
    one.offer().bring_port();
    EXPECT_TRUE(released);
}

TEST_F(direct_messages_test, an_answer_that_comes_too_late_is_cancelled) {
    control answer = {};
    answer.version = protocol_version;
    answer.identity = identity;
    answer.to = next_message_id();
    answer.from = 44;
    for (control_kind kind : {control_kind::accept_slots, control_kind::accept_pipe}) {
        sent.clear();
        answer.kind = kind;
        messages_->handle_control(&answer, length_of(kind));
        ASSERT_EQ(sent.size(), 1u);
        EXPECT_EQ(sent.back().kind, control_kind::cancel);
        EXPECT_EQ(sent.back().to, 44u);
    }
}

// ---- with another process's memory

class direct_messages_with_peer : public direct_messages_with_lender {
  protected:
    direct_messages_with_peer()
        : direct_messages_with_lender("peer_process.DISABLED_lends_memory") {}

    // Offers are of pipes, from another GPU; nothing is to run.
    void describe_pipe(uint32_t channels, uint64_t sequence = gpu::pipe_sequence_step) {
        terms_.channels = channels;
        std::memcpy(terms_.gpu, "another", 7);
        terms_.process = lent_.process;
        terms_.sequence = sequence;
        terms_.credits = lent_.offset;
        terms_.memory = lent_.handle;
        end_.launch_status = UCS_ERR_UNSUPPORTED;  // which is not tried again
    }
    peer_memory reach(uint64_t offset, uint64_t length) {
        return reach_peer_memory(0, lent_.handle, lent_.process, lent_.offset + offset, length, 16);
    }
};

// In the child.
TEST(peer_process, DISABLED_lends_memory) {
    gpu::device *device = gpu::platform::instance().get_device(0);
    ASSERT_NE(device, nullptr);
    std::unique_ptr<gpu::memory> memory;
    ASSERT_EQ(device->allocate(lent_bytes, &memory), UCS_OK);
    lent mine = {};
    size_t offset;
    ASSERT_EQ(device->ipc_export(memory->address(), &mine.handle, &offset), UCS_OK);
    mine.offset = offset;
    lend(mine);
}

TEST_F(direct_messages_with_peer, its_memory_is_reached_within_its_bounds) {
    EXPECT_TRUE(reach(0, lent_bytes));
    EXPECT_TRUE(reach(lent_bytes - 16, 16));
    EXPECT_FALSE(reach(8, 16)) << "not aligned";
    EXPECT_FALSE(reach(uint64_t{1} << 40, 16));
    EXPECT_FALSE(reach(0, uint64_t{1} << 40));
    EXPECT_FALSE(reach(~uint64_t{0} - 15, 32));
}

// A handle may be met again, of another process.
TEST_F(direct_messages_with_peer, its_memory_is_opened_anew_for_another_owner) {
    close_memory_of_the_gone();  // of tests before
    const size_t before = peer_allocations_open();
    process_id other = lent_.process;
    ++other.started;
    peer_memory used = reach(0, 4096);
    ASSERT_TRUE(used);
    auto reach_of_other = [&] {
        return reach_peer_memory(0, lent_.handle, other, lent_.offset, 4096, 16);
    };
    EXPECT_FALSE(reach_of_other()) << "in use";
    used = {};
    EXPECT_TRUE(reach_of_other());
    EXPECT_EQ(peer_allocations_open(), before + 1);
    close_memory_of_the_gone();
    EXPECT_EQ(peer_allocations_open(), before) << "there is no such process";
}

TEST_F(direct_messages_with_peer, its_memory_is_closed_when_it_is_gone_and_nobody_uses_it) {
    close_memory_of_the_gone();  // of tests before
    const size_t before = peer_allocations_open();
    peer_memory used = reach(0, 4096);
    ASSERT_TRUE(used);
    EXPECT_EQ(peer_allocations_open(), before + 1);
    close_memory_of_the_gone();
    EXPECT_EQ(peer_allocations_open(), before + 1) << "it lives";
    expect_closed_when_gone(std::move(used), before);
}

TEST_F(direct_messages_with_peer, an_offer_is_answered_with_a_pipe_in_segments) {
    const size_t regions = regions_lent(), sides = ports_lent();
    describe_pipe(4, 1000 * gpu::pipe_sequence_step);  // few: the kernel need not be called
    messages_->services().longest_segment = 128 << 10;
    offer();
    ASSERT_EQ(end_.launched.size(), 1u) << "alone it waits for no other";
    const gpu::pipe_work &work = end_.launched[0];
    EXPECT_EQ(work.length, 128u << 10);
    EXPECT_EQ(work.packed_offset, 0u);
    EXPECT_GE(work.sequence, terms_.sequence);
    EXPECT_LE(work.geometry.channels, 4u);
    EXPECT_EQ(work.credits, reach(0, 16).address);
    const control answer = sent[0];
    EXPECT_EQ(answer.kind, control_kind::accept_pipe);
    EXPECT_EQ(answer.to, 5u);
    EXPECT_EQ(answer.pipe.segment, 128u << 10);
    EXPECT_EQ(answer.pipe.sequence, work.sequence);
    EXPECT_EQ(answer.pipe.channels, work.geometry.channels);
    EXPECT_EQ(answer.pipe.chunk_size, work.geometry.chunk_size);
    EXPECT_EQ(answer.pipe.depth, work.geometry.depth);
    // The launch was refused: the sender is told, and brings the bytes another way.
    ASSERT_EQ(sent.size(), 2u);
    EXPECT_EQ(sent[1].kind, control_kind::stop);
    say(control_kind::cancel, answer.from);
    ASSERT_EQ(sent.size(), 3u);
    EXPECT_EQ(sent[2].kind, control_kind::ended);
    EXPECT_EQ(end_.message, nullptr);
    EXPECT_EQ(regions_lent(), regions);
    EXPECT_EQ(ports_lent(), sides);
}

// Kernels that leave in vain tell that the ring has no more.
TEST_F(direct_messages_with_peer, a_pipe_whose_sender_is_gone_ends_with_an_error) {
    messages_->services().between_looks = std::chrono::milliseconds(2);
    for (bool is_open : {true, false}) {
        describe_pipe(4);
        std::unique_ptr<gpu::memory> target;
        ASSERT_EQ(gpu::platform::instance().get_device(0)->allocate(total, &target), UCS_OK);
        layout_builder whole;
        whole.append(0, total);
        end_.what = whole.finish();
        end_.base = target->address();
        end_.launch_status = UCS_OK;
        end_.launched.clear();
        ucp.rest_statuses.clear();
        sent.clear();
        offer();
        ASSERT_EQ(sent[0].kind, control_kind::accept_pipe);
        if (is_open) {
            child_->kill();
            child_->wait();
        } else {
            messages_->endpoint_closed(ep_);
        }
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        while (ucp.rest_statuses.empty() && std::chrono::steady_clock::now() < end) {
            progress();
        }
        EXPECT_EQ(ucp.rest_statuses, std::vector<ucs_status_t>{UCS_ERR_CONNECTION_RESET});
        EXPECT_GE(end_.launched.size(), 2u);
        EXPECT_EQ(end_.message, nullptr);
    }
}

TEST_F(direct_messages_with_peer, a_message_among_many_gets_few_channels) {
    describe_pipe(max_message_channels);
    for (bool crowded : {false, true}) {
        const unsigned limit = channel_limit(0), others = crowded ? limit : 0;
        promise_channels(0, others);
        sent.clear();
        offer();
        ASSERT_FALSE(sent.empty());
        const control answer = sent[0];
        ASSERT_EQ(answer.kind, control_kind::accept_pipe);
        EXPECT_LE(answer.pipe.channels, crowded ? std::min(16u, limit / 8) : limit / 2);
        EXPECT_EQ(channels_promised(0), others + answer.pipe.channels);
        say(control_kind::cancel, answer.from);
        EXPECT_EQ(channels_promised(0), others);
        end_promise(0, others);
    }
}

TEST_F(direct_messages_with_peer, tables_that_are_on_the_gpu_are_not_prepared_once_more) {
    describe_pipe(4);
    layout_builder some;
    for (int64_t at : {0, 70, 100}) {
        some.append(at, 8);
    }
    end_.what = some.finish();
    for (bool are_there : {false, true}) {
        end_.tables_are_there = are_there;
        sent.clear();
        offer();
        ASSERT_FALSE(sent.empty());
        EXPECT_EQ(sent[0].kind, are_there ? control_kind::accept_pipe : control_kind::accept_slots)
            << "they cannot be prepared";
        say(control_kind::cancel, sent[0].from);
    }
}

// Said by the hash of the layout, and obeyed by the sender.
TEST_F(direct_messages_with_peer, pipes_between_layouts_that_are_alike_go_in_the_order_of_memory) {
    describe_pipe(4);
    layout_builder element;
    element.append(0, 8);
    end_.what = element.finish()->repeat(16, total / 16)->repeat(total / 128, 8);
    const content_hash hash = end_.what->hash();
    for (uint64_t wrong : {0, 1}) {
        terms_.hash_low = hash.low ^ wrong;
        terms_.hash_high = hash.high;
        sent.clear();
        offer();
        ASSERT_FALSE(sent.empty());
        const control answer = sent[0];
        ASSERT_EQ(answer.kind, control_kind::accept_pipe);
        EXPECT_EQ((answer.flags & memory_order) != 0, wrong == 0);
        EXPECT_EQ(end_.in_order, wrong == 0);
        say(control_kind::cancel, answer.from);

        send_message one(messages_->services(), ep_, end_, 9);
        one.offer().bring_port();
        EXPECT_EQ(one.offer().content().hash_low, hash.low);
        EXPECT_EQ(one.offer().content().hash_high, hash.high);
        one.offered(0);
        control accepted = answer;
        accepted.process = lent_.process;
        accepted.handle = accepted.pipe.flags_memory = lent_.handle;
        accepted.offset = lent_.offset;
        accepted.pipe.flags = lent_.offset + accepted.pipe.channels * accepted.pipe.depth *
                                                 uint64_t{accepted.pipe.chunk_size};
        accepted.pipe.sequence = one.offer().content().sequence + gpu::pipe_sequence_step;
        end_.in_order = wrong != 0;
        EXPECT_TRUE(one.handle_answer(accepted));
        messages_->services().schedule.launch_all();
        EXPECT_EQ(end_.in_order, wrong == 0);
        one.progress();
        control ended = {};
        ended.version = protocol_version;
        ended.kind = control_kind::ended;
        ended.identity = identity;
        ended.to = 9;
        messages_->handle_control(&ended, length_of(ended.kind));
    }
}

TEST_F(direct_messages_with_peer, no_answer_leads_out_of_its_memory) {
    unsigned seed = std::random_device()();
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    char *begin = reach(0, 16).address, *end = begin + lent_bytes;
    int taken = 0;
    for (int round = 0; round < 3000; ++round) {
        ep_.no_lent_memory = {};
        end_.launched.clear();
        end_.launch_status = UCS_ERR_UNSUPPORTED;  // nothing is to run
        sent.clear();
        send_message one(messages_->services(), ep_, end_, 9);
        one.offer().bring_port();
        one.offered(0);
        auto any = [&](uint64_t likely) {
            return random() % 12 == 0 ? random() >> random() % 64 : likely;
        };
        control answer = {};
        answer.kind = control_kind::accept_pipe;
        answer.from = 33;
        answer.process = lent_.process;
        answer.handle = lent_.handle;
        answer.offset = lent_.offset + any(random() % (lent_bytes / 16) * 16);
        answer.pipe.flags_memory = lent_.handle;
        answer.pipe.flags = lent_.offset + any(random() % (lent_bytes / 16) * 16);
        answer.pipe.channels = static_cast<uint32_t>(any(1 + random() % 8));
        answer.pipe.chunk_size = static_cast<uint32_t>(any(16 << random() % 10));
        answer.pipe.depth = static_cast<uint32_t>(any(1 + random() % 4));
        answer.pipe.sequence = any(one.offer().content().sequence + gpu::pipe_sequence_step);
        answer.pipe.segment = any(total);
        EXPECT_TRUE(one.handle_answer(answer));
        messages_->services().schedule.launch_all();
        one.progress();
        EXPECT_EQ(one.now(), send_message::state::declined);
        for (const gpu::pipe_work &work : end_.launched) {
            ++taken;
            ASSERT_TRUE(work.geometry.valid());
            ASSERT_LE(work.geometry.channels, one.offer().content().channels);
            ASSERT_GE(work.ring, begin);
            ASSERT_LE(work.ring + work.geometry.ring_size(), end);
            ASSERT_GE(work.flags, begin);
            ASSERT_LE(work.flags + work.geometry.words_size(), end);
        }
        // What the peer may still write to waits for its word.
        control ended = {};
        ended.version = protocol_version;
        ended.kind = control_kind::ended;
        ended.identity = identity;
        ended.to = 9;
        messages_->handle_control(&ended, length_of(ended.kind));
    }
    EXPECT_GT(taken, 100);
}

}  // namespace
}  // namespace cuda_nc::uct
