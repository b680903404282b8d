// Puts and gets that are gathered: when they have ended, and what becomes of those that fail.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "uct/cuda_nc/counters.hpp"
#include "uct/cuda_nc/one_sided/between_processes.hpp"

namespace cuda_nc::uct {
namespace {

using clock = std::chrono::steady_clock;

// In the child.
TEST(gather_peer, DISABLED_lends_memory) {
    const std::unique_ptr<gpu::memory> memory = make_memory();
    ASSERT_NE(memory, nullptr);
    const packed_key key = key_of(*memory);
    ASSERT_TRUE(gpu::test::send_to_parent(&key, sizeof(key)));
    char byte;
    gpu::test::receive_from_parent(&byte, 1);
}

TEST_F(gather_test, a_block_in_two_lists_ends_with_its_last_byte) {
    const char nothing = 0;
    copy(both_->local() + list_end - 1, &nothing, 1);
    copy(both_->local() + block_end - 1, &nothing, 1);
    operation before, first, second;
    ASSERT_EQ(both_->add(direction::get, 1, 1), UCS_OK);  // a byte that no later one writes
    both_->complete_with(before);  // so that the next ones do not begin at once
    first.watched = both_->local() + block_end - 1;
    ASSERT_EQ(both_->add_bytes(), UCS_OK);
    ASSERT_EQ(both_->add(direction::get, block_begin, block_end - block_begin), UCS_OK);
    both_->complete_with(first);
    ASSERT_EQ(both_->add(direction::get, block_end, 1), UCS_OK);
    both_->complete_with(second);
    // The first list, which is full, ends before the worker progresses and closes the second.
    await_copied(list_end - 1);
    both_->mover().progress();
    EXPECT_FALSE(first.has_ended());
    ASSERT_TRUE(both_->run_until_end(first));
    EXPECT_EQ(first.seen, last_byte);
    EXPECT_EQ(first.end.status, UCS_OK);
    EXPECT_TRUE(both_->run_until_end(second));
}

// They end one by one, and a short one between them too.
TEST_F(gather_test, long_blocks_are_copied_one_by_one) {
    constexpr uint64_t length = list_mover::always_copied_length;
    const uint64_t lists = counters::all().on_gpus.lists;
    const char nothing = 0;
    copy(both_->local() + block_end - 1, &nothing, 1);
    std::vector<operation> all(5);
    for (size_t i = 0; i < all.size(); ++i) {
        const bool is_short = i == 2;
        all[i].watched = both_->local() + block_end - 1;
        ASSERT_EQ(both_->add(direction::get, block_end - length * (i + 1), is_short ? 1 : length),
                  UCS_OK);
        both_->complete_with(all[i]);
    }
    for (const operation &one : all) {
        ASSERT_TRUE(both_->run_until_end(one));
        EXPECT_EQ(one.end.status, UCS_OK);
        EXPECT_EQ(one.seen, last_byte);
    }
    EXPECT_EQ(counters::all().on_gpus.lists, lists + all.size());
}

TEST_F(gather_test, one_that_fails_leaves_those_after_it_alone) {
    EXPECT_EQ(both_->add_unreached(), UCS_ERR_UNREACHABLE);
    for (int i = 0; i < 5000 && is_registered; ++i) {
        both_->mover().progress();
    }
    operation next;
    ASSERT_EQ(both_->add(direction::put, 0, 64), UCS_OK);
    both_->complete_with(next);
    EXPECT_TRUE(both_->run_until_end(next));
    EXPECT_EQ(both_->mover().flush(nullptr), UCS_OK);
}

// As a list of UCX's whose later element fails.
TEST_F(gather_test, what_was_added_before_one_that_fails_ends) {
    operation both;
    ASSERT_EQ(both_->add(direction::put, 0, 4096), UCS_OK);
    ASSERT_EQ(both_->add(direction::put, 4096, list_mover::list_bytes), UCS_OK);  // it is closed
    EXPECT_EQ(both_->add_unreached(), UCS_ERR_UNREACHABLE);
    both_->complete_with(both);
    both_->mover().fence();
    EXPECT_TRUE(both_->run_until_end(both));
}

// A request of UCP's that found no room: it adds a byte.
struct waiting_request {
    ucs_status_t (*func)(waiting_request *);  // first: UCX's
    between_processes *both;
    bool is_sent = false;

    explicit waiting_request(between_processes *all) noexcept
        : func([](waiting_request *self) {
              const ucs_status_t status = self->both->add(direction::get, 0, 1);
              self->is_sent = status == UCS_OK;
              return status;
          }),
          both(all) {
        ucs_status_t status = UCS_OK;
        for (size_t i = 0; i <= list_mover::most_lists && status == UCS_OK; ++i) {
            status = both->add(direction::get, 1 + i, 1);  // no two write one byte
            both->mover().flush(nullptr);                  // closes the list
        }
        EXPECT_EQ(status, UCS_ERR_NO_RESOURCE);
        EXPECT_EQ(both->mover().add_pending(all, this), UCS_OK);
    }
    template <typename function>
    void run_until_sent(function look) {
        for (const auto limit = clock::now() + std::chrono::seconds(60);
             !is_sent && clock::now() < limit;) {
            look();
            both->mover().progress();
        }
        EXPECT_TRUE(is_sent);
    }
};

// As UCP waits, for all that it has added, where a request of its own finds no room.
TEST_F(gather_test, a_flush_waits_for_requests_that_found_no_room) {
    waiting_request waiting(both_.get());
    operation flush;
    ASSERT_EQ(both_->mover().flush(&flush.end), UCS_INPROGRESS);
    waiting.run_until_sent([&] { EXPECT_FALSE(flush.has_ended()); });
    EXPECT_TRUE(both_->run_until_end(flush));
    EXPECT_EQ(flush.end.status, UCS_OK);
}

TEST_F(gather_test, a_fence_lets_nothing_pass_requests_that_found_no_room) {
    waiting_request waiting(both_.get());
    both_->mover().fence();
    both_->mover().fence();
    waiting.run_until_sent([&] {  // another lane, which has room
        EXPECT_EQ(both_->add(direction::put, 4096, 8, list_mover::unreached), UCS_ERR_NO_RESOURCE);
    });
    operation after;  // it finds room once the lists before it end: the fence needs only to be over
    ASSERT_EQ(both_->add_when_room(direction::put, 4096, 8), UCS_OK);
    both_->complete_with(after);
    EXPECT_TRUE(both_->run_until_end(after));
    EXPECT_EQ(after.end.status, UCS_OK);
}

// What is added later need not wait for it, but still for what was added before.
TEST_F(gather_test, a_fence_behind_a_request_that_is_purged_is_none_for_later_ones) {
    waiting_request waiting(both_.get());
    both_->mover().fence();
    both_->mover().purge_pending(both_.get(), nullptr, nullptr);
    operation after;
    ASSERT_EQ(both_->add_when_room(direction::put, 4096, 8), UCS_OK);
    both_->complete_with(after);
    EXPECT_TRUE(both_->run_until_end(after));
    EXPECT_FALSE(waiting.is_sent);
}

// In a child, whose third list gets no event: its is the sixth, behind those of copies. The first
// list is under way all the time.
TEST(gather_peer, DISABLED_has_room_for_two_lists) {
    packed_key key;
    ASSERT_TRUE(gpu::test::receive_from_parent(&key, sizeof(key)));
    between_processes both(key);
    ASSERT_TRUE(both.is_there());
    const char before = 1, after = 2;

    // Those that were accepted, and one during which the driver has none.
    operation busy, accepted;
    ASSERT_EQ(both.add(direction::get, 1, 1), UCS_OK);  // a byte that no later one writes
    both.complete_with(busy);
    ASSERT_EQ(both.add_bytes(), UCS_OK);
    both.complete_with(accepted);
    copy(both.local() + block_begin, &before, 1);
    EXPECT_EQ(both.add(direction::get, block_begin, block_end - block_begin), UCS_ERR_NO_MEMORY);
    // The application uses its memory for something else.
    copy(both.local() + block_begin, &after, 1);
    EXPECT_TRUE(both.run_until_end(accepted));
    EXPECT_EQ(accepted.end.status, UCS_OK);
    EXPECT_EQ(both.mover().flush(nullptr), UCS_OK);
    char now = 0;
    copy(&now, both.local() + block_begin, 1);
    EXPECT_EQ(now, after);
    const char done = 0;
    EXPECT_TRUE(gpu::test::send_to_parent(&done, 1));
}

// In a child, whose first kernel moves nothing.
TEST(gather_peer, DISABLED_goes_on_after_a_kernel_that_failed) {
    packed_key key;
    ASSERT_TRUE(gpu::test::receive_from_parent(&key, sizeof(key)));
    between_processes both(key);
    ASSERT_TRUE(both.is_there());
    char byte = 0;
    copy(both.local() + block_end - 1, &byte, 1);

    operation failed, later;
    ASSERT_EQ(both.add(direction::get, 0, 64), UCS_OK);
    ASSERT_EQ(both.add(direction::get, 1000, 64), UCS_OK);
    both.complete_with(failed);
    EXPECT_TRUE(both.run_until_end(failed));
    EXPECT_NE(failed.end.status, UCS_OK);
    EXPECT_EQ(both.mover().flush(nullptr), UCS_OK) << "its completion has told of it";

    ASSERT_EQ(both.add(direction::get, 0, 64), UCS_OK);
    ASSERT_EQ(both.add(direction::get, block_end - 64, 64), UCS_OK);
    both.complete_with(later);
    EXPECT_TRUE(both.run_until_end(later));
    EXPECT_EQ(later.end.status, UCS_OK);
    copy(&byte, both.local() + block_end - 1, 1);
    EXPECT_EQ(byte, last_byte);

    // Who gave no completion hears of it when it flushes.
    ASSERT_EQ(both.add(direction::get, 0, 64), UCS_OK);
    ASSERT_EQ(both.add(direction::get, 1000, 64), UCS_OK);
    both.mover().complete_with(0, nullptr);
    operation flush;
    ASSERT_EQ(both.mover().flush(&flush.end), UCS_INPROGRESS);
    EXPECT_TRUE(both.run_until_end(flush));
    EXPECT_NE(flush.end.status, UCS_OK);
    EXPECT_TRUE(gpu::test::send_to_parent(&byte, 1));
}

// In a child, where only copies of one block succeed at first, as over two allocations.
TEST(gather_peer, DISABLED_gets_blocks_that_follow_each_other) {
    packed_key key;
    ASSERT_TRUE(gpu::test::receive_from_parent(&key, sizeof(key)));
    between_processes both(key);
    ASSERT_TRUE(both.is_there());
    char byte = 0;
    constexpr uint64_t half = (block_end - block_begin) / 2;
    for (int i = 0; i < 2; ++i) {
        copy(both.local() + block_end - 1, &byte, 1);
        operation both_blocks;
        ASSERT_EQ(both.add(direction::get, block_begin, half), UCS_OK);
        ASSERT_EQ(both.add(direction::get, block_begin + half, half), UCS_OK);
        both.complete_with(both_blocks);
        EXPECT_TRUE(both.run_until_end(both_blocks));
        EXPECT_EQ(both_blocks.end.status, UCS_OK);
        copy(&byte, both.local() + block_end - 1, 1);
        EXPECT_EQ(byte, last_byte);
        byte = 0;
    }
    EXPECT_TRUE(gpu::test::send_to_parent(&byte, 1));
}

// In a child, where the first two attempts to map the peer's memory fail. A put has no other way.
TEST(gather_peer, DISABLED_gets_what_could_not_be_mapped) {
    packed_key packed;
    ASSERT_TRUE(gpu::test::receive_from_parent(&packed, sizeof(packed)));
    between_processes both(packed);
    ASSERT_TRUE(both.is_there());
    const remote_key key(packed);
    EXPECT_FALSE(key.reach(0, false));
    EXPECT_FALSE(key.reach(0, false)) << "not tried again at once";
    operation get;
    ASSERT_EQ(both.add(direction::get, block_end - 64, 64), UCS_OK);
    both.complete_with(get);
    EXPECT_TRUE(both.run_until_end(get));
    EXPECT_EQ(get.end.status, UCS_OK);
    char byte = 0;
    copy(&byte, both.local() + block_end - 1, 1);
    EXPECT_EQ(byte, last_byte);
    EXPECT_TRUE(gpu::test::send_to_parent(&byte, 1));
}

TEST(gather_with_faults, memory_that_could_not_be_mapped_is_tried_at_once) {
    run_with_faults("gather_peer.DISABLED_gets_what_could_not_be_mapped",
                    {"UCX_CUDA_NC_SIM_FAULTS=ipc_open:1,ipc_open:2"});
}

TEST(gather_with_faults, what_does_not_fit_is_not_touched_any_more) {
    run_with_faults("gather_peer.DISABLED_has_room_for_two_lists",
                    {"UCX_CUDA_NC_SIM_FAULTS=event:6"});
}

TEST(gather_with_faults, blocks_that_cannot_be_copied_as_one_are_moved) {
    // The three copies before are the test's own.
    for (const char *faults : {"copy:4", "copy:4,launch:1+"}) {
        SCOPED_TRACE(faults);
        run_with_faults("gather_peer.DISABLED_gets_blocks_that_follow_each_other",
                        {std::string("UCX_CUDA_NC_SIM_FAULTS=") + faults, "UCX_CUDA_NC_MOVER=n"});
    }
}

TEST(gather_with_faults, a_kernel_that_failed_harms_no_later_list) {
    run_with_faults("gather_peer.DISABLED_goes_on_after_a_kernel_that_failed",
                    {"UCX_CUDA_NC_SIM_FAULTS=kernel:1,kernel:3", "UCX_CUDA_NC_MOVER=n"});
}

}  // namespace
}  // namespace cuda_nc::uct
