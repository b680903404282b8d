// Host memory of another process: every byte that it moves, and what it refuses.
#include "uct/cuda_nc/one_sided/host_process.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "uct/cuda_nc/counters.hpp"
#include "uct/cuda_nc/one_sided/mover.hpp"
#include "uct/cuda_nc/one_sided/stub_worker.hpp"

namespace cuda_nc::uct {
namespace {

using direction = list_mover::direction;

constexpr size_t memory_size = 8 << 20;

// A child that does nothing. Both have `shared`, at one address.
class host_process_test : public testing::Test {
  protected:
    void SetUp() override {
        shared_ = static_cast<char *>(
            mmap(nullptr, memory_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
        ASSERT_NE(shared_, MAP_FAILED);
        child_ = fork();
        if (child_ == 0) {
            for (;;) {
                pause();
            }
        }
        ASSERT_GT(child_, 0);
        who_ = process_id_of(static_cast<uint32_t>(child_));
        peer_ = host_process::find(who_);
        if (peer_ == nullptr || !peer_->is_open()) {
            GTEST_SKIP() << "this system does not let processes reach each other's memory";
        }
    }
    void TearDown() override {
        end_child();
        munmap(shared_, memory_size);
    }
    void end_child() {
        if (child_ > 0) {
            kill(child_, SIGKILL);
            waitpid(child_, nullptr, 0);
            child_ = -1;
        }
    }

    char *shared_ = nullptr;
    pid_t child_ = -1;
    process_id who_ = {};
    std::shared_ptr<host_process> peer_;
};

TEST_F(host_process_test, moves_random_blocks_and_touches_no_gap) {
    std::mt19937 generator(7);
    for (const bool writes : {true, false}) {
        for (const size_t count : {size_t{1}, size_t{3}, host_process::most_blocks - 1,
                                   host_process::most_blocks, 5 * host_process::most_blocks + 1}) {
            std::vector<char> own(memory_size), expected(memory_size);
            std::vector<gpu::block_pair> pairs;
            char *const source = writes ? own.data() : shared_;
            char *const target = writes ? shared_ : own.data();
            for (size_t i = 0; i < memory_size; ++i) {
                source[i] = static_cast<char>(generator());
            }
            std::memset(target, 0x5a, memory_size);
            std::memset(expected.data(), 0x5a, memory_size);
            size_t from = 0, to = 0;
            for (size_t i = 0; i < count; ++i) {
                const size_t length = 1 + generator() % 700;
                // Some follow on each other, on one side or on both.
                from += generator() % 3 == 0 ? 0 : generator() % 600;
                to += generator() % 3 == 0 ? 0 : generator() % 600;
                pairs.push_back({source + from, target + to, length});
                std::memcpy(expected.data() + to, source + from, length);
                from += length;
                to += length;
            }
            std::shuffle(pairs.begin(), pairs.end(), generator);
            ASSERT_EQ(peer_->move(writes, pairs.data(), pairs.size()), UCS_OK);
            ASSERT_EQ(std::memcmp(target, expected.data(), memory_size), 0)
                << count << " blocks, writes " << writes;
        }
    }
}

TEST_F(host_process_test, memory_that_is_not_there_is_an_error) {
    char byte = 0;
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    char *hole =
        static_cast<char *>(mmap(nullptr, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(hole, MAP_FAILED);
    const gpu::block_pair all[] = {{&byte, shared_, 1}, {&byte, hole, 1}};
    EXPECT_EQ(peer_->move(true, all, 2), UCS_ERR_INVALID_ADDR);
    munmap(hole, page);
}

TEST_F(host_process_test, one_that_has_ended_is_not_written_to) {
    char byte = 0;
    const gpu::block_pair one = {&byte, shared_, 1};
    EXPECT_FALSE(peer_->has_ended());
    end_child();
    EXPECT_TRUE(peer_->has_ended());
    EXPECT_EQ(peer_->move(true, &one, 1), UCS_ERR_CONNECTION_RESET);
    EXPECT_EQ(host_process::find({who_.pid, who_.pid_space, who_.started + 1}), nullptr);
}

TEST_F(host_process_test, another_with_the_same_number_is_not_found) {
    EXPECT_EQ(host_process::find({who_.pid, who_.pid_space, who_.started + 1}), nullptr);
    EXPECT_EQ(host_process::find({}), nullptr);
    EXPECT_EQ(host_process::find(who_), peer_) << "it is known";
}

// A profiler's, for instance. The system ends a look early for it.
TEST_F(host_process_test, signals_do_not_end_it) {
    static std::atomic<int> signals{0};
    struct sigaction before = {}, counts = {};
    counts.sa_handler = [](int) { ++signals; };
    ASSERT_EQ(sigaction(SIGALRM, &counts, &before), 0);
    const itimerval often = {{0, 200}, {0, 200}}, never = {};
    ASSERT_EQ(setitimer(ITIMER_REAL, &often, nullptr), 0);
    bool has_ended = false;
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (signals < 500 && std::chrono::steady_clock::now() < limit) {
        has_ended = has_ended || peer_->has_ended();
    }
    setitimer(ITIMER_REAL, &never, nullptr);
    sigaction(SIGALRM, &before, nullptr);
    EXPECT_GT(signals, 0);
    EXPECT_FALSE(has_ended);
}

// Lists of it. The key covers a page that nobody may read too, before the shared memory.
class host_lists_test : public host_process_test {
  protected:
    void SetUp() override {
        host_process_test::SetUp();
        if (IsSkipped()) {
            return;
        }
        packed_key packed = make_host_key(reinterpret_cast<uintptr_t>(shared_), memory_size);
        EXPECT_EQ(packed.is_shared, sharing::host_memory);
        packed.base = packed.begin = 4096;
        packed.size = packed.length = UINT64_MAX - 4096;
        key_ = std::make_unique<remote_key>(packed, peer_);
        own_.assign(memory_size, 'o');
        std::memset(shared_, 's', memory_size);
    }
    int lane(direction dir) const { return list_mover::host_lane(*peer_, dir); }
    ucs_status_t add(direction dir, size_t at, size_t length) {
        return mover_.add(lane(dir), dir, own_.data() + at, *key_,
                          reinterpret_cast<uintptr_t>(shared_ + at), length);
    }
    // Nothing is there.
    ucs_status_t add_unreadable() {
        return mover_.add(lane(direction::get), direction::get, own_.data(), *key_, 4096, 8);
    }
    void run_until_end(const operation &one) {
        for (int i = 0; i < 1000 && !one.has_ended(); ++i) {
            mover_.progress();
        }
        EXPECT_TRUE(one.has_ended());
    }

    const ucx_api ucx_ = worker_calls();
    std::unique_ptr<remote_key> key_;
    std::vector<char> own_;
    list_mover mover_{ucx_, nullptr, nullptr};
};

TEST_F(host_lists_test, a_call_whose_first_list_fails_ends_with_an_error) {
    constexpr size_t number = 3 * host_process::most_blocks;
    operation call, next;
    ASSERT_EQ(add_unreadable(), UCS_OK);
    for (size_t i = 1; i < number; ++i) {
        ASSERT_EQ(add(direction::get, 64 * i, 8), UCS_OK);
    }
    mover_.complete_with(lane(direction::get), &call.end);
    operation other;  // in the list that the call goes on in
    ASSERT_EQ(add(direction::get, 0, 8), UCS_OK);
    mover_.complete_with(lane(direction::get), &other.end);
    run_until_end(call);
    EXPECT_EQ(call.end.status, UCS_ERR_INVALID_ADDR);
    run_until_end(other);
    EXPECT_EQ(other.end.status, UCS_OK);
    for (size_t i = 1; i < number; ++i) {
        ASSERT_EQ(std::memcmp(own_.data() + 64 * i, "sssssssso", 9), 0) << "those that are there";
    }
    ASSERT_EQ(add(direction::get, 0, 8), UCS_OK);
    mover_.complete_with(lane(direction::get), &next.end);
    run_until_end(next);
    EXPECT_EQ(next.end.status, UCS_OK) << "of a later call";
    EXPECT_EQ(mover_.flush(nullptr), UCS_OK) << "nor of any other endpoint";
}

TEST_F(host_lists_test, there_is_room_without_progress) {
    constexpr size_t length = 16 << 10;
    operation flush;
    for (size_t i = 0; i < 40 * memory_size / length; ++i) {
        ASSERT_EQ(add(direction::put, i * length % memory_size, length), UCS_OK) << i;
        mover_.complete_with(lane(direction::put), nullptr);
    }
    if (mover_.flush(&flush.end) == UCS_INPROGRESS) {
        run_until_end(flush);
    }
    EXPECT_EQ(std::memcmp(shared_, own_.data(), memory_size), 0);
}

// As Open MPI's windows do.
TEST_F(host_lists_test, a_program_that_progresses_after_each_put_has_few_lists) {
    const auto lists = [] { return counters::all().on_host.lists.load(); };
    const uint64_t before = lists();
    constexpr size_t number = host_process::most_blocks / 2;
    operation last;
    for (size_t i = 0; i < number; ++i) {
        ASSERT_EQ(add(direction::put, 64 * i, 8), UCS_OK);
        mover_.complete_with(lane(direction::put), i + 1 == number ? &last.end : nullptr);
        mover_.progress();
    }
    run_until_end(last);
    // The first one, and what has come in each 100 us since.
    EXPECT_LT(lists() - before, number / 4);
    for (size_t i = 0; i < number; ++i) {
        ASSERT_EQ(std::memcmp(shared_ + 64 * i, "oooooooos", 9), 0);
    }
}

// Nothing waits for the next put.
TEST_F(host_lists_test, a_put_now_and_then_is_moved_by_the_progress_behind_it) {
    for (size_t i = 0; i < 20; ++i) {
        operation one;
        ASSERT_EQ(add(direction::put, 64 * i, 8), UCS_OK);
        mover_.complete_with(lane(direction::put), &one.end);
        mover_.progress();
        mover_.progress();
        EXPECT_TRUE(one.has_ended()) << i;
        EXPECT_EQ(std::memcmp(shared_ + 64 * i, own_.data() + 64 * i, 8), 0) << i;
        std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
}

// Nor is a list that grows at each progress kept for long.
TEST_F(host_lists_test, a_list_that_grows_slowly_is_moved) {
    operation first, other;
    ASSERT_EQ(add(direction::put, 0, 8), UCS_OK);
    mover_.complete_with(lane(direction::put), &other.end);
    mover_.progress();
    ASSERT_EQ(add(direction::put, 64, 8), UCS_OK);  // gathers on, unless the machine is busy
    mover_.complete_with(lane(direction::put), &first.end);
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    for (size_t i = 2; !first.has_ended() && std::chrono::steady_clock::now() < limit; ++i) {
        ASSERT_EQ(add(direction::put, 64 * (i % 100), 8), UCS_OK);
        mover_.complete_with(lane(direction::put), nullptr);
        mover_.progress();
        std::this_thread::sleep_for(std::chrono::microseconds(30));
    }
    EXPECT_TRUE(first.has_ended());
    EXPECT_EQ(std::memcmp(shared_ + 64, own_.data() + 64, 8), 0);
}

TEST_F(host_lists_test, a_process_that_ends_fails_what_was_added_alone) {
    operation before, after;
    ASSERT_EQ(add(direction::put, 0, 64), UCS_OK);
    mover_.complete_with(lane(direction::put), &before.end);
    run_until_end(before);
    EXPECT_EQ(before.end.status, UCS_OK);
    ASSERT_EQ(add(direction::put, 64, 64), UCS_OK);
    mover_.complete_with(lane(direction::put), &after.end);
    end_child();
    run_until_end(after);
    EXPECT_EQ(after.end.status, UCS_ERR_CONNECTION_RESET);
    EXPECT_EQ(shared_[64], 's');
    mover_.forget_the_gone();
    EXPECT_TRUE(mover_.is_idle());
}

}  // namespace
}  // namespace cuda_nc::uct
