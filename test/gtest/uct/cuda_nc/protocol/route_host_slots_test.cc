// Slots in pinned host memory, where GPUs do not reach each other.
#include <algorithm>
#include <random>

#include "ucs/gpu/shared_memory.hpp"
#include "uct/cuda_nc/counters.hpp"
#include "uct/cuda_nc/memory/lending_child.hpp"
#include "uct/cuda_nc/memory/lent_memory.hpp"
#include "uct/cuda_nc/protocol/send_message.hpp"

namespace cuda_nc::uct {
namespace {

TEST_F(direct_messages_test, a_sender_that_reaches_no_gpu_memory_gets_slots_on_the_host) {
    const size_t lent = regions_lent(), left = lendable_on_host();
    const uint64_t received = counters::all().received_by_host_slots;
    terms_.flags = host_slots;
    uint64_t message = accepted();
    EXPECT_EQ(sent.back().flags & host_slots, host_slots);
    EXPECT_LT(lendable_on_host(), left);
    const uint64_t slot_size = sent.back().length;
    const unsigned num_slots = sent.back().slot;
    uint64_t offset = first;
    for (unsigned i = 0; offset < total; i = (i + 1) % num_slots) {
        const uint64_t length = std::min(slot_size, total - offset);
        say(control_kind::slot_full, message, i, offset, length);
        ASSERT_FALSE(end_.unpacked.empty());
        const fake_end::range &one = end_.unpacked.back();
        EXPECT_EQ(one.offset, offset);
        gpu::platform &gpus = gpu::platform::instance();
        EXPECT_EQ(gpus.query(one.packed).kind, gpu::memory_kind::pinned);
        EXPECT_EQ(gpus.query(one.packed + length - 1).kind, gpu::memory_kind::pinned);
        offset += length;
    }
    rest(message);
    EXPECT_EQ(ucp.rest_statuses, std::vector<ucs_status_t>{UCS_OK});
    EXPECT_EQ(counters::all().received_by_host_slots, received + 1);
    EXPECT_EQ(regions_lent(), lent);
    EXPECT_EQ(lendable_on_host(), left);
}

TEST_F(direct_messages_test, between_two_gpus_of_one_process_slots_are_on_the_host) {
    terms_.process = own_process_id();
    std::memcpy(terms_.gpu, "another", 7);
    uint64_t message = accepted();
    EXPECT_EQ(sent.back().flags & host_slots, host_slots);
    say(control_kind::cancel, message);
    sent.clear();
    offer_from_our_gpu();
    message = accepted();
    EXPECT_EQ(sent.back().flags & host_slots, 0u) << "the same GPU";
    say(control_kind::cancel, message);
}

TEST_F(direct_messages_test, host_slots_are_asked_for_where_gpu_memory_cannot_be_reached) {
    ep_.may_go_direct = true;
    control answer = {};
    answer.kind = control_kind::accept_slots;
    answer.from = 33;
    answer.slot = 4;
    answer.length = 65536;
    {
        send_message one(messages_->services(), ep_, end_, 9);
        EXPECT_EQ(one.offer().content().flags, 0u);
        one.offered(first);
        EXPECT_TRUE(one.handle_answer(answer));
        EXPECT_EQ(one.now(), send_message::state::declined);
        EXPECT_EQ(sent.back().kind, control_kind::cancel);
    }
    EXPECT_TRUE(ep_.may_go_direct);
    send_message next(messages_->services(), ep_, end_, 10);
    EXPECT_EQ(next.offer().content().flags, host_slots);
    EXPECT_EQ(next.offer().content().channels, 0u) << "a pipe needs both GPUs";
    next.offered(first);
    answer.flags = host_slots;
    EXPECT_TRUE(next.handle_answer(answer));
    EXPECT_EQ(next.now(), send_message::state::declined);
    EXPECT_TRUE(ep_.may_go_direct) << "it is asked again in a while";
    EXPECT_TRUE(ep_.is_out_of_reach()) << "neither way";
}

// A failure may pass.
TEST_F(direct_messages_test, a_peer_out_of_reach_is_offered_messages_again_after_a_while) {
    ep_.may_go_direct = true;
    end_.sending_side = true;
    ep_.no_lent_memory.begin();
    EXPECT_FALSE(ep_.is_out_of_reach());
    ep_.no_host_slots.begin();
    EXPECT_TRUE(ep_.is_out_of_reach());
    EXPECT_TRUE(rts());
    EXPECT_TRUE(sent.empty());
    EXPECT_EQ(end_.message, nullptr);
    for (retry_pause *one : {&ep_.no_host_slots, &ep_.no_lent_memory}) {
        *one = {};  // as after its time
        EXPECT_FALSE(ep_.is_out_of_reach());
        sent.clear();
        EXPECT_TRUE(rts());
        ASSERT_EQ(sent.size(), 1u);
        ASSERT_EQ(sent.back().kind, control_kind::early_offer);
        EXPECT_EQ(sent.back().early.offer.flags, one == &ep_.no_host_slots ? host_slots : 0u);
        end_.message->leave();
    }
}

TEST_F(direct_messages_test, contiguous_memory_that_cannot_be_reached_is_not_asked_for) {
    control answer = {};
    answer.kind = control_kind::accept_straight;
    answer.from = 33;
    answer.length = total;
    const auto send = [&](uint32_t flags) {
        sent.clear();
        send_message one(messages_->services(), ep_, end_, 9);
        EXPECT_EQ(one.offer().content().flags, flags);
        one.offered(0);
        EXPECT_TRUE(one.handle_answer(answer));
        EXPECT_EQ(one.now(), send_message::state::declined);
        EXPECT_EQ(sent.back().kind, control_kind::cancel);
    };
    answer.length = total - 1;
    send(0);
    answer.length = total;
    send(0);  // what makes no sense says nothing of the memory
    send(not_straight);
    EXPECT_FALSE(ep_.is_out_of_reach()) << "what it lends may do";
    ep_.no_straight = {};
    send(0);
}

// ---- with another process's memory

class direct_messages_with_host_peer : public direct_messages_with_lender {
  protected:
    direct_messages_with_host_peer()
        : direct_messages_with_lender("host_peer_process.DISABLED_lends_memory") {}

    peer_memory reach(uint64_t offset, uint64_t length) {
        return reach_peer_host_memory(0, lent_.handle, lent_.process, offset, length);
    }
};

// In the child.
TEST(host_peer_process, DISABLED_lends_memory) {
    gpu::device *device = gpu::platform::instance().get_device(0);
    ASSERT_NE(device, nullptr);
    std::unique_ptr<gpu::memory> memory;
    lent mine = {};
    ASSERT_EQ(gpu::make_shared_memory(*device, lent_bytes, &memory, &mine.handle), UCS_OK);
    lend(mine);
}

TEST_F(direct_messages_with_host_peer, its_memory_is_opened_once_within_its_bounds_while_it_lives) {
    close_memory_of_the_gone();  // of tests before
    const size_t before = peer_allocations_open();
    peer_memory used = reach(0, lent_bytes);
    ASSERT_TRUE(used);
    EXPECT_EQ(reach(lent_bytes - 16, 16).address, used.address + lent_bytes - 16);
    EXPECT_FALSE(reach(lent_bytes - 16, 17));
    EXPECT_FALSE(reach(~uint64_t{0} - 15, 32));
    EXPECT_FALSE(reach_peer_memory(0, lent_.handle, lent_.process, 0, 16, 1)) << "not on a GPU";
    expect_closed_when_gone(std::move(used), before);
    EXPECT_FALSE(reach(0, 16)) << "nothing is left of it";
}

TEST_F(direct_messages_with_host_peer, no_answer_leads_out_of_its_memory) {
    unsigned seed = std::random_device()();
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    char *begin = reach(0, 16).address, *end = begin + lent_bytes;
    size_t taken = 0;
    for (int round = 0; round < 1000; ++round) {
        end_.unpacked.clear();
        sent.clear();
        send_message one(messages_->services(), ep_, end_, 9);
        one.offered(first);
        auto any = [&](uint64_t likely) {
            return random() % 12 == 0 ? random() >> random() % 64 : likely;
        };
        control answer = {};
        answer.kind = control_kind::accept_slots;
        answer.flags = host_slots;
        answer.from = 33;
        answer.process = lent_.process;
        answer.handle = lent_.handle;
        answer.offset = any(random() % lent_bytes);
        answer.slot = static_cast<uint16_t>(any(random() % 5));
        answer.length = any(1 + random() % (lent_bytes / 2));
        EXPECT_TRUE(one.handle_answer(answer));
        for (const fake_end::range &range : end_.unpacked) {
            ++taken;
            ASSERT_LE(range.length, total - range.offset);
            ASSERT_GE(range.packed, begin);
            ASSERT_LE(range.packed, end);
            ASSERT_LE(range.length, static_cast<uint64_t>(end - range.packed));
        }
    }
    EXPECT_GT(taken, 100u);
}

}  // namespace
}  // namespace cuda_nc::uct
