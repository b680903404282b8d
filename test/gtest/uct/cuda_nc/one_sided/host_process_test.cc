// Host memory of another process: every byte that it moves, and what it refuses.
#include "uct/cuda_nc/one_sided/host_process.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

namespace cuda_nc::uct {
namespace {

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
        if (peer_ == nullptr || !peer_->is_open(shared_)) {
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
    EXPECT_FALSE(peer_->is_open(hole));
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

}  // namespace
}  // namespace cuda_nc::uct
