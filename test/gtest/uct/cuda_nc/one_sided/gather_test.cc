// Puts and gets that are gathered: when they have ended, and what becomes of those that fail.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "ucs/gpu/child_process.hpp"
#include "uct/cuda_nc/copy_bytes.hpp"
#include "uct/cuda_nc/one_sided/mover.hpp"
#include "uct/cuda_nc/one_sided/stub_worker.hpp"

namespace cuda_nc::uct {
namespace {

using clock = std::chrono::steady_clock;
using direction = list_mover::direction;

// Of one block: it takes more pairs than a list has.
constexpr uint64_t list_length = list_mover::list_pairs * gpu::block_pair::best_length;
constexpr uint64_t long_block = list_length + 1000;
constexpr uint64_t memory_bytes = long_block + (64 << 20);
constexpr char last_byte = 0x5a;

// Memory in which the last bytes of a full list and of a long block are last_byte.
std::unique_ptr<gpu::memory> make_memory() {
    std::unique_ptr<gpu::memory> made;
    gpu::device *device = gpu::platform::instance().get_device(0);
    if (device != nullptr && device->allocate(memory_bytes, &made) == UCS_OK) {
        copy(made->address() + list_length - 1, &last_byte, 1);
        copy(made->address() + long_block - 1, &last_byte, 1);
    }
    return made;
}

packed_key key_of(const gpu::memory &memory) {
    return make_key(0, reinterpret_cast<uintptr_t>(memory.address()), memory.size(), nullptr);
}

// Memory of another process, and of this one.
class between_processes {
  public:
    explicit between_processes(const packed_key &there) : key_(there), local_(make_memory()) {}

    bool is_there() const { return local_ != nullptr; }
    char *local() const { return local_->address(); }
    ucs_status_t add(direction dir, uint64_t offset, uint64_t length) {
        return mover_.add(0, dir, local() + offset, key_, key_.base() + offset, length);
    }
    // The key of a process that is not there.
    ucs_status_t add_unreached() {
        packed_key gone = {};
        gone.base = 4096;
        gone.size = 4096;
        gone.is_shared = sharing::gpu_memory;
        remote_key nowhere(gone);
        return mover_.add(0, direction::get, local(), nowhere, 4096, 8);
    }
    void complete_with(operation &one) { mover_.complete_with(0, &one.end); }
    // As UCX's worker does, until it has ended.
    bool run_until_end(const operation &one) {
        const auto limit = clock::now() + std::chrono::seconds(60);
        while (!one.has_ended() && clock::now() < limit) {
            if (is_registered) {
                mover_.progress();
            }
        }
        return one.has_ended();
    }
    list_mover &mover() { return mover_; }

  private:
    const ucx_api ucx_ = worker_calls();
    remote_key key_;
    std::unique_ptr<gpu::memory> local_;
    list_mover mover_{ucx_, nullptr, nullptr};
};

// In the child.
TEST(gather_peer, DISABLED_lends_memory) {
    const std::unique_ptr<gpu::memory> memory = make_memory();
    ASSERT_NE(memory, nullptr);
    const packed_key key = key_of(*memory);
    ASSERT_TRUE(gpu::test::send_to_parent(&key, sizeof(key)));
    char byte;
    gpu::test::receive_from_parent(&byte, 1);
}

class gather_test : public testing::Test {
  protected:
    void SetUp() override {
        if (gpu::platform::instance().get_device(0) == nullptr) {
            GTEST_SKIP() << "no GPU here";
        }
        packed_key key;
        ASSERT_TRUE(child_.receive(&key, sizeof(key))) << child_.output();
        both_ = std::make_unique<between_processes>(key);
        ASSERT_TRUE(both_->is_there());
    }

    // And a while longer: the kernel moves the others of its bytes, and tells of its end.
    void await_copied(uint64_t offset) {
        const auto limit = clock::now() + std::chrono::seconds(60);
        for (char seen = 0; seen != last_byte && clock::now() < limit;) {
            copy(&seen, both_->local() + offset, 1);
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(500));
    }

    gpu::test::child_process child_{"gather_peer.DISABLED_lends_memory", {}};
    std::unique_ptr<between_processes> both_;
};

TEST_F(gather_test, a_block_longer_than_a_list_ends_with_its_last_byte) {
    const char nothing = 0;
    copy(both_->local() + list_length - 1, &nothing, 1);
    copy(both_->local() + long_block - 1, &nothing, 1);
    operation first, second;
    first.watched = both_->local() + long_block - 1;
    ASSERT_EQ(both_->add(direction::get, 0, long_block), UCS_OK);
    both_->complete_with(first);
    // It was alone in its list until now, and is cut as another one comes.
    ASSERT_EQ(both_->add(direction::get, long_block, 1), UCS_OK);
    both_->complete_with(second);
    // The first list, which is full, ends before the worker progresses and closes the second.
    await_copied(list_length - 1);
    both_->mover().progress();
    EXPECT_FALSE(first.has_ended());
    ASSERT_TRUE(both_->run_until_end(first));
    EXPECT_EQ(first.seen, last_byte);
    EXPECT_EQ(first.end.status, UCS_OK);
    EXPECT_TRUE(both_->run_until_end(second));
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

// As UCP waits, for all that it has added, where a request of its own finds no room.
TEST_F(gather_test, a_flush_waits_for_requests_that_found_no_room) {
    struct request {
        ucs_status_t (*func)(request *);  // first: UCX's
        between_processes *both;
        bool is_sent = false;
    } waiting = {[](request *self) {
                     const ucs_status_t status = self->both->add(direction::get, 0, 1);
                     self->is_sent = status == UCS_OK;
                     return status;
                 },
                 both_.get()};
    ucs_status_t status = UCS_OK;
    for (size_t i = 0; i <= list_mover::most_lists && status == UCS_OK; ++i) {
        status = both_->add(direction::get, 0, 1);
        both_->mover().flush(nullptr);  // closes the list
    }
    ASSERT_EQ(status, UCS_ERR_NO_RESOURCE);
    ASSERT_EQ(both_->mover().add_pending(&waiting, &waiting), UCS_OK);
    operation flush;
    ASSERT_EQ(both_->mover().flush(&flush.end), UCS_INPROGRESS);
    for (const auto limit = clock::now() + std::chrono::seconds(60);
         !waiting.is_sent && clock::now() < limit;) {
        both_->mover().progress();
        EXPECT_TRUE(waiting.is_sent || !flush.has_ended());
    }
    EXPECT_TRUE(both_->run_until_end(flush));
    EXPECT_TRUE(waiting.is_sent);
    EXPECT_EQ(flush.end.status, UCS_OK);
}

// In a child, whose second list finds no pinned memory.
TEST(gather_peer, DISABLED_has_room_for_one_list) {
    packed_key key;
    ASSERT_TRUE(gpu::test::receive_from_parent(&key, sizeof(key)));
    between_processes both(key);
    ASSERT_TRUE(both.is_there());
    const char before = 1, after = 2;

    // One that was accepted, and one during which memory runs out.
    operation accepted, small;
    ASSERT_EQ(both.add(direction::get, 0, long_block), UCS_OK);
    both.complete_with(accepted);
    EXPECT_EQ(both.add(direction::get, long_block, 1), UCS_ERR_NO_MEMORY);
    EXPECT_TRUE(both.run_until_end(accepted));
    EXPECT_EQ(accepted.end.status, UCS_ERR_NO_MEMORY);
    EXPECT_EQ(both.mover().flush(nullptr), UCS_ERR_NO_MEMORY) << "the failure";
    EXPECT_EQ(both.mover().flush(nullptr), UCS_OK);

    ASSERT_EQ(both.add(direction::get, long_block, 1), UCS_OK) << "the list is there again";
    both.complete_with(small);
    copy(both.local(), &before, 1);
    EXPECT_EQ(both.add(direction::get, 0, long_block), UCS_ERR_NO_MEMORY);
    copy(both.local(), &after, 1);  // the application uses its memory for something else
    EXPECT_TRUE(both.run_until_end(small));
    EXPECT_EQ(small.end.status, UCS_OK);
    EXPECT_EQ(both.mover().flush(nullptr), UCS_OK);
    char now = 0;
    copy(&now, both.local(), 1);
    EXPECT_EQ(now, after);
    const char done = 0;
    EXPECT_TRUE(gpu::test::send_to_parent(&done, 1));
}

TEST(gather_short_of_memory, what_does_not_fit_is_not_touched_any_more) {
    if (std::string(gpu::platform::instance().name()) != "sim") {
        GTEST_SKIP() << "injects failures into the simulated GPU";
    }
    const std::unique_ptr<gpu::memory> memory = make_memory();
    ASSERT_NE(memory, nullptr);
    const packed_key key = key_of(*memory);
    gpu::test::child_process child("gather_peer.DISABLED_has_room_for_one_list",
                                   {"UCX_CUDA_NC_SIM_FAULTS=pinned:2+"});
    ASSERT_TRUE(child.send(&key, sizeof(key)));
    char done;
    EXPECT_TRUE(child.receive(&done, 1)) << child.output();
    EXPECT_EQ(child.wait(), 0) << child.output();
}

}  // namespace
}  // namespace cuda_nc::uct
