// Another process that lends memory to the transport under test until it is killed.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ucs/gpu/child_process.hpp"
#include "uct/cuda_nc/memory/lent.hpp"
#include "uct/cuda_nc/memory/peer_memory.hpp"
#include "uct/cuda_nc/protocol/messages_fixture.hpp"

namespace cuda_nc::uct {

constexpr uint64_t lent_bytes = 1 << 20;

// `in_child`: the test that calls lend() there.
class direct_messages_with_lender : public direct_messages_test {
  protected:
    explicit direct_messages_with_lender(const char *in_child) : in_child_(in_child) {}

    void SetUp() override {
        direct_messages_test::SetUp();
        if (messages_ == nullptr) {
            return;
        }
        child_ = std::make_unique<gpu::test::child_process>(in_child_, std::vector<std::string>{});
        ASSERT_TRUE(child_->receive(&lent_, sizeof(lent_))) << child_->output();
    }

    // Of its memory, opened beside `before` other allocations, `used` is the only use.
    void expect_closed_when_gone(peer_memory used, size_t before) {
        EXPECT_EQ(peer_allocations_open(), before + 1);
        child_->kill();
        child_->wait();
        close_memory_of_the_gone();
        EXPECT_EQ(peer_allocations_open(), before + 1) << "in use";
        used = {};
        close_memory_of_the_gone();
        EXPECT_EQ(peer_allocations_open(), before);
    }

    const char *in_child_;
    std::unique_ptr<gpu::test::child_process> child_;
    lent lent_ = {};
};

// In the child: tells the parent, and waits for its end or the parent's.
inline void lend(lent mine) {
    mine.process = own_process_id();
    ASSERT_TRUE(gpu::test::send_to_parent(&mine, sizeof(mine)));
    char byte;
    gpu::test::receive_from_parent(&byte, 1);
}

}  // namespace cuda_nc::uct
