// What tests of pulls have in common.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "uct/cuda_nc/engine/admission.hpp"
#include "uct/cuda_nc/counters.hpp"
#include "uct/cuda_nc/memory/lending_child.hpp"
#include "uct/cuda_nc/memory/lent_memory.hpp"
#include "uct/cuda_nc/copy_bytes.hpp"
#include "uct/cuda_nc/memory/peer_memory.hpp"
#include "uct/cuda_nc/protocol/receive_message.hpp"
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

    // An offer, answered in the place of UCP's RTR or before it: whether that leaves.
    leaving ask() {
        sent.clear();
        sent_of_ucp.clear();
        end_.launched.clear();
        offer_early(99);
        return rtr_of(99);
    }
    // Receives beside that of `end_`, each into memory of its own.
    void prepare_receives(size_t number) {
        ASSERT_EQ(
            gpu::platform::instance().get_device(0)->allocate(number * target_bytes, &targets_),
            UCS_OK);
        receives_ = std::vector<receive>(number);
        buffer_finder = [](uint64_t word) noexcept -> user_buffer * {
            return word > 0x10000 && word <= 0x10000 + receives_.size()
                       ? &receives_[word - 0x10001].end
                       : nullptr;
        };
        for (size_t i = 0; i < number; ++i) {
            fake_end &end = receives_[i].end;
            end.what = end_.what;
            end.base = static_cast<char *>(targets_->address()) + i * target_bytes;
            end.state = 0x10001 + i;
            std::memcpy(receives_[i].request + request_state_offset, &end.state, sizeof(uint64_t));
        }
    }
    // As above, of one of these.
    leaving ask(size_t i) {
        request_ = receives_[i].request;
        offer_early(8 * (i + 1));
        return rtr_of(8 * (i + 1));
    }
    static bool all_are_launched() {
        return std::none_of(receives_.begin(), receives_.end(),
                            [](const receive &one) { return one.end.launched.empty(); });
    }
    static void end_receives() {
        for (receive &one : receives_) {
            if (one.end.message != nullptr) {
                one.end.message->leave();
            }
        }
        receives_.clear();
    }
    // A message that is pulled.
    void pulling() {
        EXPECT_EQ(ask(), leaving::never);
        EXPECT_NE(end_.message, nullptr);
        EXPECT_TRUE(sent.empty() && sent_of_ucp.empty()) << "the sender hears of the end alone";
    }
    // The receiver's number of the message.
    uint64_t number() const { return static_cast<receive_message *>(end_.message)->id(); }
    static long said(control_kind kind) {
        return std::count_if(sent.begin(), sent.end(),
                             [kind](const control &one) { return one.kind == kind; });
    }
    template <typename F>
    static void run_until(F &&done) {
        auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        while (!done()) {
            progress();
            std::this_thread::yield();
            ASSERT_LT(std::chrono::steady_clock::now(), limit);
        }
    }
    static void run_until_delivered() {
        run_until([] { return !ucp.rest_statuses.empty(); });
        EXPECT_EQ(ucp.rest_statuses, std::vector<ucs_status_t>{UCS_OK});
    }
    // The sender's request has been ended by UCP's ATS, and nothing else was said to it.
    static void expect_ats() {
        EXPECT_TRUE(sent.empty());
        ASSERT_EQ(sent_of_ucp.size(), 1u);
        EXPECT_EQ(sent_of_ucp[0].id, ats_id);
        end_of_pull seen = {};
        ASSERT_EQ(sent_of_ucp[0].bytes.size(), sizeof(seen));
        std::memcpy(&seen, sent_of_ucp[0].bytes.data(), sizeof(seen));
        EXPECT_EQ(seen.ats.request, 99u);
        EXPECT_EQ(seen.ats.status, UCS_OK);
        EXPECT_EQ(seen.ats.size, total);
        EXPECT_EQ(seen.message, 5u);
    }
    // The same, as failed.
    static void expect_ats_of_failure() {
        ASSERT_EQ(sent_of_ucp.size(), 1u);
        EXPECT_EQ(sent_of_ucp[0].id, ats_id);
        acknowledgement seen = {};
        ASSERT_EQ(sent_of_ucp[0].bytes.size(), failure_length) << "UCP takes a size for bytes";
        std::memcpy(&seen, sent_of_ucp[0].bytes.data(), failure_length);
        EXPECT_EQ(seen.request, 99u);
        EXPECT_EQ(seen.status, UCS_ERR_CANCELED);
    }
    // UCP's RTR has left, as UCP made it.
    void expect_rtr() {
        ASSERT_EQ(sent_of_ucp.size(), 1u);
        EXPECT_EQ(sent_of_ucp[0].id, rtr_id);
        rtr_head seen = {};
        ASSERT_EQ(sent_of_ucp[0].bytes.size(), sizeof(seen));
        std::memcpy(&seen, sent_of_ucp[0].bytes.data(), sizeof(seen));
        EXPECT_EQ(seen.send_request, 99u);
        EXPECT_EQ(seen.request, reinterpret_cast<uint64_t>(request_));
        EXPECT_EQ(seen.size, total);
        EXPECT_EQ(seen.offset, 0u);
    }
    // The sender packs fragments: it has been told so before it got UCP's RTR.
    void expect_fragments() {
        ASSERT_EQ(sent.size(), 1u);
        EXPECT_EQ(sent[0].kind, control_kind::decline);
        EXPECT_EQ(sent[0].to, 5u);
        EXPECT_EQ(sent[0].flags, known_receivers);
        expect_rtr();
        EXPECT_TRUE(ucp.lengths.empty()) << "the bytes are still to come";
        expect_first_fragment();
    }
    // UCP has it unpacked: the message ends, and says nothing.
    void expect_first_fragment() {
        const size_t told = sent.size() + sent_of_ucp.size();
        ASSERT_NE(end_.message, nullptr);
        end_.message->leave();
        EXPECT_EQ(end_.message, nullptr);
        EXPECT_EQ(sent.size() + sent_of_ucp.size(), told);
    }
    // Nothing was launched, and no RTR held back, but slots were lent.
    void expect_slots() {
        EXPECT_EQ(ask(), leaving::now);
        EXPECT_TRUE(end_.launched.empty());
        ASSERT_EQ(sent.size(), 1u);
        EXPECT_EQ(sent.back().kind, control_kind::accept_slots);
        say(control_kind::cancel, sent.back().from);
    }
    void expect_pull() {
        pulling();
        if (end_.message != nullptr) {
            end_.message->leave();
        }
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

    with_setting copy_engines_{"UCX_CUDA_NC_COPY_ENGINES", GetParam() ? "y" : "n"};
    struct receive {
        fake_end end;
        alignas(8) char request[256] = {};
    };
    static inline std::vector<receive> receives_;  // the finder knows no test
    std::unique_ptr<gpu::memory> target_, targets_;
    size_t sides_ = 0, regions_ = 0;
    unsigned promised_ = 0;
};

}  // namespace cuda_nc::uct
