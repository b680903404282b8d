// What tests of pulls have in common.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <string>
#include <thread>

#include "uct/cuda_nc/engine/admission.hpp"
#include "uct/cuda_nc/counters.hpp"
#include "uct/cuda_nc/memory/lending_child.hpp"
#include "uct/cuda_nc/memory/lent_memory.hpp"
#include "uct/cuda_nc/memory/peer_memory.hpp"
#include "uct/cuda_nc/protocol/send_message.hpp"
#include "uct/cuda_nc/protocol/source.hpp"
#include "uct/cuda_nc/with_setting.hpp"

namespace cuda_nc::uct {

constexpr size_t source_bytes = 5 * total, target_bytes = 3 * total;
constexpr int64_t first_displacement = 192;

inline layout_ref blocks(uint64_t length, int64_t pitch) {
    layout_builder one;
    one.append(first_displacement, length);
    return one.finish()->repeat(total / length, pitch);
}

// What the sender's byte holds.
inline char pattern(uint64_t offset) {
    return static_cast<char>(offset * 0x9e3779b97f4a7c15u >> 56);
}

inline void copy(void *target, const void *source, size_t bytes) {
    std::unique_ptr<gpu::stream> stream;
    std::unique_ptr<gpu::event> done;
    gpu::device *device = gpu::platform::instance().get_device(0);
    ASSERT_EQ(device->create_stream(&stream), UCS_OK);
    ASSERT_EQ(device->create_event(&done), UCS_OK);
    ASSERT_EQ(stream->copy(target, source, bytes), UCS_OK);
    ASSERT_EQ(stream->record(*done), UCS_OK);
    ASSERT_EQ(done->synchronize(), UCS_OK);
}

// A receiver whose GPU's copy engines are used (true), or its kernels alone, and a sender in
// another process.
class direct_messages_with_source : public direct_messages_with_lender,
                                    public testing::WithParamInterface<bool> {
  protected:
    direct_messages_with_source()
        : direct_messages_with_lender("source_process.DISABLED_describes_memory") {}

    void SetUp() override {
        direct_messages_with_lender::SetUp();
        if (child_ == nullptr || HasFatalFailure()) {
            return;
        }
        gpu::device *device = gpu::platform::instance().get_device(0);
        ASSERT_EQ(device->allocate(target_bytes, &target_), UCS_OK);
        copy(target_->address(), std::vector<char>(target_bytes).data(), target_bytes);
        end_.what = blocks(64, 128);
        end_.base = target_->address();
        ucx_.uct_worker_progress_register_safe = [](void *, unsigned (*function)(void *), void *arg,
                                                    unsigned, int *id_p) {
            progress_ = function;
            argument_ = arg;
            *id_p = 1;
        };
        learn_requests();
        ucp = {};
        source_ = lent_.source;
        terms_.process = lent_.process;
        std::memcpy(terms_.gpu, "another", 7);
        say_alike(true);
        sides_ = ports_lent();
        regions_ = regions_lent();
        promised_ = channels_promised(0);
    }
    // Whatever became of a message, all is returned.
    void TearDown() override {
        if (target_ != nullptr) {
            EXPECT_EQ(end_.message, nullptr);
            EXPECT_EQ(ports_lent(), sides_);
            EXPECT_EQ(regions_lent(), regions_);
            EXPECT_EQ(channels_promised(0), promised_);
            EXPECT_EQ(channels_in_flight(0, gpu::direction::unpack), 0u);
            EXPECT_EQ(copies_in_flight(0), 0u);
            messages_.reset();
        }
        direct_messages_with_lender::TearDown();
    }

    // An offer, answered before UCP's RTR: the receiver's number of the message.
    uint64_t ask() {
        sent.clear();
        end_.launched.clear();
        offer_early(99);
        rtr(99);
        return sent.empty() ? 0 : sent.front().from;
    }
    uint64_t pulling() {
        uint64_t message = ask();
        EXPECT_EQ(said(control_kind::accept_pull), 1);
        EXPECT_EQ(sent.empty() ? control_kind::stop : sent.front().kind, control_kind::accept_pull);
        return message;
    }
    void end(uint64_t message) { rest(message, total, 0); }
    static long said(control_kind kind) {
        return std::count_if(sent.begin(), sent.end(),
                             [kind](const control &one) { return one.kind == kind; });
    }
    template <typename F>
    static void run_until(F &&done) {
        auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        while (!done()) {
            progress_(argument_);
            std::this_thread::yield();
            ASSERT_LT(std::chrono::steady_clock::now(), limit);
        }
    }
    void run_until_read() {
        run_until([this] { return !end_.launched.empty() && ports_lent() == sides_; });
        progress_(argument_);
        EXPECT_EQ(said(control_kind::pulled), 0) << "the sender's process might end before its FIN";
    }
    // Nothing was launched, and no pull was said, but slots were lent.
    void expect_slots() {
        uint64_t message = ask();
        EXPECT_TRUE(end_.launched.empty());
        ASSERT_EQ(sent.size(), 1u);
        EXPECT_EQ(sent.back().kind, control_kind::accept_slots);
        say(control_kind::cancel, message);
    }
    void expect_pull() {
        say(control_kind::cancel, pulling());
        EXPECT_EQ(end_.launched.size(), 1u);
    }
    void describe(uint64_t length, int64_t pitch) {  // unlike the target
        source_ = lent_.source;
        say_alike(false);
        source_.block_length = length;
        source_.dims[0] = {length != 0 ? total / length : 1, pitch};
    }
    void say_alike(bool alike) {
        terms_.hash_low = end_.what->hash().low ^ (alike ? 0 : 1);
        terms_.hash_high = end_.what->hash().high;
    }
    void expect_bytes(const layout &source) {
        std::vector<char> seen(target_bytes), expected(target_bytes);
        copy(seen.data(), target_->address(), target_bytes);
        for (uint64_t at = 0; at < total; ++at) {
            expected[end_.what->view().locate(at).displacement] =
                pattern(source_.displacement_0 + source.view().locate(at).displacement);
        }
        EXPECT_TRUE(seen == expected);
    }
    peer_memory reach(uint64_t id, uint64_t base) {
        return reach_user_memory(0, source_.memory, lent_.process, id, base);
    }

    inline static unsigned (*progress_)(void *);
    inline static void *argument_;
    with_setting copy_engines_{"UCX_CUDA_NC_COPY_ENGINES", GetParam() ? "y" : "n"};
    std::unique_ptr<gpu::memory> target_;
    size_t sides_ = 0, regions_ = 0;
    unsigned promised_ = 0;
};

}  // namespace cuda_nc::uct
