// Both sides of a pipe, each driven as the transport does, between two streams of one GPU.
#include "uct/cuda_nc/pipe/drive.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "ucs/gpu/layout_move.hpp"
#include "uct/cuda_nc/counters.hpp"
#include "uct/cuda_nc/engine/admission.hpp"
#include "uct/cuda_nc/engine/stream_pool.hpp"
#include "uct/cuda_nc/iface.hpp"
#include "uct/cuda_nc/protocol/direct_messages.hpp"
#include "uct/cuda_nc/protocol/put_slots.hpp"
#include "uct/cuda_nc/memory/lent_memory.hpp"
#include "uct/cuda_nc/pipe/shape.hpp"

namespace cuda_nc::uct {
namespace {

using state = pipe_drive::state;

// The user's memory: blocks of 8 bytes with gaps of 8.
class strided_end final : public user_buffer {
  public:
    strided_end(gpu::device &where, gpu::direction dir, uint64_t bytes) : dir_(dir), bytes_(bytes) {
        EXPECT_EQ(where.allocate(2 * bytes, &memory_), UCS_OK);
        layout_.kind = shape::strided;
        layout_.num_blocks = layout_.num_dims = 1;
        layout_.list_size = layout_.block_length = 8;
        layout_.packed_size = bytes;
        layout_.by_list = layout_.by_block = fast_divide(8);
        layout_.dims[0] = {bytes / 8, 16};
        layout_.by_dim[0] = fast_divide(bytes / 8);
    }
    int device() const noexcept override { return 0; }
    uint64_t packed_bytes() const noexcept override { return bytes_; }
    ucs_status_t enqueue(uint64_t, uint64_t, char *, gpu::event &) noexcept override {
        return UCS_ERR_UNSUPPORTED;
    }
    ucs_status_t prepare(gpu::pipe_work &work, gpu::stream &,
                         bool /*in_memory_order*/) noexcept override {
        ++launches;
        if (refuses_all || refuse_launch == launches) {
            return UCS_ERR_IO_ERROR;
        }
        work.dir = dir_;
        work.layout = &layout_;
        work.base = memory_->address();
        return UCS_OK;
    }
    ucs_status_t enqueue_copies(uint64_t offset, uint64_t length, char *packed, bool,
                                gpu::event &done) noexcept override {
        if (copies_ == nullptr &&
            gpu::platform::instance().get_device(0)->create_stream(&copies_) != UCS_OK) {
            return UCS_ERR_NO_RESOURCE;
        }
        for (; length != 0; offset += 8, packed += 8, length -= 8) {
            EXPECT_EQ(copies_->copy(address() + 2 * offset, packed, 8), UCS_OK);
        }
        return copies_->record(done);
    }
    ucs_status_t describe(gpu::pipe_work &work, bool) noexcept override {
        work.dir = dir_;
        work.layout = &layout_;
        work.base = memory_->address();
        return tables_are_there ? UCS_OK : UCS_INPROGRESS;
    }
    char *address() const { return memory_->address(); }

    bool tables_are_there = true;
    int launches = 0;       // or attempts
    int refuse_launch = 0;  // the number of one that is refused
    bool refuses_all = false;

  private:
    gpu::direction dir_;
    uint64_t bytes_;
    layout_view layout_;
    std::unique_ptr<gpu::memory> memory_;
    std::unique_ptr<gpu::stream> copies_;
};

// Another message that wants channels.
class other_message final : public launch_client {
  public:
    other_message(uint64_t number, int device) : number_(number), device_(device) {}
    int device() const noexcept override { return device_; }
    uint64_t message() const noexcept override { return number_; }
    bool acquire_resources() noexcept override { return has_resources; }
    ucs_status_t prepare(gpu::stream &, gpu::pipe_work *) noexcept override {
        return UCS_ERR_UNSUPPORTED;
    }
    void launched(const std::shared_ptr<pooled_stream> &) noexcept override {}
    void launch_failed(ucs_status_t) noexcept override {}
    bool has_left() const noexcept override { return true; }

    bool has_resources = true;

  private:
    uint64_t number_;
    int device_;
};

class pipe_drive_test : public testing::Test {
  protected:
    static constexpr uint64_t bytes = 300000;  // a multiple of 8

    void SetUp() override {
        if (gpu::platform::instance().num_devices() == 0) {
            GTEST_SKIP() << "no GPU, not even a simulated one";
        }
        device_ = gpu::platform::instance().get_device(0);
        ASSERT_EQ(device_->create_stream(&stream_), UCS_OK);
        ASSERT_EQ(device_->create_event(&mark_), UCS_OK);
        ucx_.uct_worker_progress_register_safe = [](void *, unsigned (*)(void *), void *, unsigned,
                                                    int *id_p) { *id_p = 1; };
        ucx_.uct_worker_progress_unregister_safe = [](void *, int *id_p) { *id_p = -1; };
        iface_.ucx = &ucx_;
        messages_ = std::make_unique<direct_messages>(iface_);
        from_ = std::make_unique<strided_end>(*device_, gpu::direction::pack, bytes);
        to_ = std::make_unique<strided_end>(*device_, gpu::direction::unpack, bytes);
        source_.resize(2 * bytes);
        for (char &byte : source_) {
            byte = static_cast<char>(random_());
        }
        copy(from_->address(), source_.data());
        copy(to_->address(), std::vector<char>(2 * bytes).data());
        pack_side_ = acquire_port(0);
        unpack_side_ = acquire_port(0);
        ASSERT_NE(pack_side_, nullptr);
        ASSERT_NE(unpack_side_, nullptr);
        make_drives();
    }
    void TearDown() override {
        if (device_ == nullptr) {
            return;
        }
        end_message();
        EXPECT_EQ(channels_in_flight(0, gpu::direction::pack), 0u);
        EXPECT_EQ(channels_in_flight(0, gpu::direction::unpack), 0u);
        release_port(pack_side_);
        release_port(unpack_side_);
    }
    void make_drives() {
        message_services &all = messages_->services();
        send_ = std::make_unique<pipe_drive>(all.schedule, all.events, all.looks, 1);
        receive_ = std::make_unique<pipe_drive>(all.schedule, all.events, all.looks, 2);
    }
    void end_message() {
        send_.reset();
        receive_.reset();
        if (ring_) {
            release_region(ring_);
            ring_ = {};
        }
    }

    void copy(void *target, const void *source) {
        ASSERT_EQ(stream_->copy(target, source, 2 * bytes), UCS_OK);
        ASSERT_EQ(stream_->record(*mark_), UCS_OK);
        ASSERT_EQ(mark_->synchronize(), UCS_OK);
    }

    void begin(uint64_t segment = bytes, uint64_t room = 1 << 20) {
        gpu::pipe_work work;
        work.geometry = choose_geometry(std::min(bytes, segment), channel_limit(0), room);
        ASSERT_TRUE(work.geometry.valid());
        ring_ = acquire_region(0, work.geometry.ring_size());
        ASSERT_TRUE(ring_);
        work.sequence = std::max(pack_side_->sequence, unpack_side_->sequence);
        work.ring = ring_.address;
        work.flags = unpack_side_->words;
        work.credits = pack_side_->words;
        send_->begin(*pack_side_, *from_, gpu::direction::pack, work, bytes, segment, false);
        receive_->begin(*unpack_side_, *to_, gpu::direction::unpack, work, bytes, segment, false);
        channels_ = work.geometry.channels;
    }

    void begin_pull() {
        gpu::pipe_work work;
        work.pulls = true;
        work.source_base = from_->address();
        work.geometry = gpu::choose_pull_geometry(bytes, channel_limit(0), false);
        channels_ = work.geometry.channels;
        receive_->begin_pull(*to_, work, bytes, false);
    }
    void run_pull() {
        const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        receive_->try_launch();
        while (receive_->now() != state::complete && receive_->now() != state::failed) {
            messages_->services().schedule.launch_all();
            receive_->progress();
            std::this_thread::yield();
            ASSERT_LT(std::chrono::steady_clock::now(), limit);
        }
        ASSERT_EQ(receive_->now(), state::complete);
    }
    void expect_pulled() {
        std::vector<char> seen(2 * bytes);
        copy(seen.data(), to_->address());
        for (size_t i = 0; i < seen.size(); ++i) {
            ASSERT_EQ(seen[i], i % 16 < 8 ? source_[i] : 0) << i;
        }
    }

    // Message `number` asks for channels for packing.
    scheduler::admission ask(uint64_t number, unsigned channels, int device = 0,
                             bool has_resources = true) {
        other_message one(number, device);
        one.has_resources = has_resources;
        return messages_->services().schedule.admit(one, gpu::direction::pack, channels);
    }
    bool admits(uint64_t number, unsigned channels, int device = 0) {
        return ask(number, channels, device) == scheduler::admission::admitted;
    }

    // One tells the other of its launches, where `tell`.
    void step(bool tell = true) {
        send_->progress();
        if (send_->consume_launch_notice() && tell) {
            receive_->peer_launched(send_->segment());
        }
        receive_->progress();
        messages_->services().schedule.launch_all();
        if (receive_->consume_launch_notice() && tell) {
            send_->peer_launched(receive_->segment());
        }
    }
    void run(bool tell = true) {
        auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        auto moving = [](const pipe_drive &one) {
            return one.now() == state::waiting || one.now() == state::ready ||
                   one.now() == state::running;
        };
        while (moving(*send_) || moving(*receive_)) {
            step(tell);
            std::this_thread::yield();
            ASSERT_LT(std::chrono::steady_clock::now(), limit);
        }
    }
    void expect_arrived() {
        ASSERT_EQ(send_->now(), state::complete);
        ASSERT_EQ(receive_->now(), state::complete);
        std::vector<char> seen(2 * bytes);
        copy(seen.data(), to_->address());
        for (size_t i = 0; i < seen.size(); ++i) {
            ASSERT_EQ(seen[i], i % 16 < 8 ? source_[i] : 0) << i;
        }
    }

    gpu::device *device_ = nullptr;
    std::unique_ptr<gpu::stream> stream_;
    std::unique_ptr<gpu::event> mark_;
    ucx_api ucx_ = {};
    interface iface_ = {};
    std::unique_ptr<direct_messages> messages_;
    std::unique_ptr<strided_end> from_, to_;
    std::vector<char> source_;
    pipe_port *pack_side_ = nullptr, *unpack_side_ = nullptr;
    std::unique_ptr<pipe_drive> send_, receive_;
    region ring_;
    unsigned channels_ = 0;
    std::mt19937_64 random_{20261121};
};

TEST_F(pipe_drive_test, a_message_arrives) {
    begin();
    run();
    expect_arrived();
}

TEST_F(pipe_drive_test, a_pull_is_an_order_where_there_is_a_mover) {
    const uint64_t before = counters::all().orders;
    begin_pull();
    run_pull();
    expect_pulled();
    const uint64_t orders = counters::all().orders - before;
    EXPECT_EQ(orders + static_cast<uint64_t>(to_->launches), 1u);
    // A real GPU's mover takes orders where its kernel is there.
    if (device_->get_mover() != nullptr && device_->properties().name == "simulated GPU") {
        EXPECT_EQ(orders, 1u);
    }
}

TEST_F(pipe_drive_test, a_pull_whose_tables_are_not_there_is_launched) {
    const uint64_t before = counters::all().orders;
    to_->tables_are_there = false;
    begin_pull();
    run_pull();
    expect_pulled();
    EXPECT_EQ(counters::all().orders, before);
    EXPECT_EQ(to_->launches, 1);
}

TEST_F(pipe_drive_test, an_order_needs_no_channels) {
    if (device_->properties().name != "simulated GPU") {
        GTEST_SKIP() << "a real GPU's mover need not take it";
    }
    const unsigned limit = channel_limit(0);
    ASSERT_TRUE(acquire_channels(0, gpu::direction::unpack, limit));
    begin_pull();
    run_pull();
    expect_pulled();
    EXPECT_EQ(to_->launches, 0);
    EXPECT_EQ(channels_promised(0), 0u);
    release_channels(0, gpu::direction::unpack, limit);
}

TEST_F(pipe_drive_test, a_mover_is_asked_for_a_megabyte_of_long_work_at_once) {
    scheduler &schedule = messages_->services().schedule;
    other_message first(1, 0), second(2, 0);
    EXPECT_FALSE(schedule.may_take((1 << 20) + 1)) << "longer than an order may be";
    ASSERT_EQ(schedule.order(first), scheduler::admission::admitted);
    EXPECT_FALSE(schedule.may_take(1 << 20));
    EXPECT_TRUE(schedule.may_take(512 << 10));
    ASSERT_TRUE(schedule.launch(second));
    EXPECT_FALSE(schedule.may_take(512 << 10));
    EXPECT_TRUE(schedule.may_take(gpu::longest_of_many)) << "short ones go side by side";
    schedule.cancel(first);
    schedule.cancel(second);
    schedule.end_order(0);
}

TEST_F(pipe_drive_test, a_long_pull_that_begins_beside_others_is_launched) {
    scheduler &schedule = messages_->services().schedule;
    const uint64_t before = counters::all().orders;
    other_message all[4] = {{1, 0}, {2, 0}, {3, 0}, {4, 0}};
    for (other_message &one : all) {
        ASSERT_EQ(schedule.order(one), scheduler::admission::admitted);
    }
    // It waits for channels, and goes on so when nothing else is under way any more.
    const unsigned limit = channel_limit(0);
    ASSERT_TRUE(acquire_channels(0, gpu::direction::unpack, limit));
    begin_pull();
    receive_->try_launch();
    EXPECT_EQ(receive_->now(), state::waiting);
    for (other_message &one : all) {
        schedule.cancel(one);
        schedule.end_order(0);
    }
    receive_->try_launch();
    EXPECT_EQ(receive_->now(), state::waiting);
    release_channels(0, gpu::direction::unpack, limit);
    run_pull();
    expect_pulled();
    EXPECT_EQ(counters::all().orders, before);
    EXPECT_EQ(to_->launches, 1);
    EXPECT_TRUE(schedule.empty()) << "it stands in no line any more";
}

TEST_F(pipe_drive_test, a_pull_that_is_no_order_waits_for_channels) {
    const unsigned limit = channel_limit(0);
    ASSERT_TRUE(acquire_channels(0, gpu::direction::unpack, limit));
    to_->tables_are_there = false;
    begin_pull();
    receive_->try_launch();
    messages_->services().schedule.launch_all();
    EXPECT_EQ(receive_->now(), state::waiting);
    EXPECT_EQ(to_->launches, 0);
    EXPECT_NE(channels_promised(0), 0u);
    release_channels(0, gpu::direction::unpack, limit);
    run_pull();
    expect_pulled();
    EXPECT_EQ(to_->launches, 1);
    EXPECT_EQ(channels_promised(0), 0u);
}

TEST_F(pipe_drive_test, a_pull_that_is_stopped_before_its_order_is_given_is_gone) {
    const uint64_t before = counters::all().orders;
    begin_pull();
    receive_->try_launch();
    EXPECT_EQ(receive_->now(), state::ready);
    receive_->stop();
    messages_->services().schedule.launch_all();
    EXPECT_EQ(receive_->now(), state::failed);
    EXPECT_EQ(counters::all().orders, before);
    EXPECT_EQ(to_->launches, 0);
    EXPECT_TRUE(messages_->services().schedule.empty());
}

// On return the order does not touch the target any more.
TEST_F(pipe_drive_test, a_pull_that_was_ordered_is_stopped) {
    begin_pull();
    receive_->try_launch();
    messages_->services().schedule.launch_all();
    receive_->stop();
    EXPECT_EQ(receive_->now(), state::failed);
    const std::vector<char> nothing(2 * bytes);
    copy(to_->address(), nothing.data());
    std::vector<char> seen(2 * bytes);
    copy(seen.data(), to_->address());
    EXPECT_EQ(seen, nothing);
}

TEST_F(pipe_drive_test, a_message_goes_round_in_a_small_ring) {
    begin(bytes, 8192);
    run();
    expect_arrived();
}

TEST_F(pipe_drive_test, a_message_of_several_segments_arrives) {
    begin(65536);
    run();
    EXPECT_GE(from_->launches, 5);
    expect_arrived();
}

TEST_F(pipe_drive_test, sides_are_used_again) {
    for (int round = 0; round < 5; ++round) {
        copy(to_->address(), std::vector<char>(2 * bytes).data());
        begin(bytes, round % 2 == 0 ? 1 << 20 : 16384);
        run();
        expect_arrived();
        end_message();
        make_drives();
    }
}

// Neither side hears of the other: time alone brings them together.
TEST_F(pipe_drive_test, sides_that_hear_nothing_meet_all_the_same) {
    begin(bytes, 8192);
    run(false);
    expect_arrived();
}

TEST_F(pipe_drive_test, a_side_waits_for_channels_that_another_message_has) {
    const unsigned limit = channel_limit(0);
    ASSERT_TRUE(admits(9, limit, 0));
    begin();
    const auto start = std::chrono::steady_clock::now();
    while (std::chrono::steady_clock::now() - start < std::chrono::milliseconds(30)) {
        step();
        std::this_thread::yield();
    }
    EXPECT_EQ(from_->launches, 0);
    EXPECT_EQ(send_->now(), state::waiting);
    messages_->services().schedule.end_admission(0, gpu::direction::pack, limit);
    run();
    expect_arrived();
}

TEST_F(pipe_drive_test, a_message_arrives_though_another_worker_keeps_all_channels) {
    const unsigned limit = channel_limit(0);
    ASSERT_TRUE(acquire_channels(0, gpu::direction::pack, limit));
    ASSERT_TRUE(acquire_channels(0, gpu::direction::unpack, limit));
    begin();
    step();
    EXPECT_EQ(send_->now(), state::waiting) << "at first";
    run();
    expect_arrived();
    release_channels(0, gpu::direction::pack, limit);
    release_channels(0, gpu::direction::unpack, limit);
}

TEST_F(pipe_drive_test, messages_on_one_gpu_do_not_wait_for_channels_of_another) {
    const unsigned limit = channel_limit(0);
    if (channel_limit(1) == 0) {
        GTEST_SKIP() << "one GPU";
    }
    ASSERT_TRUE(admits(6, limit, 0));
    EXPECT_FALSE(admits(7, 1, 0));
    EXPECT_TRUE(admits(8, 1, 1));
    messages_->services().schedule.end_admission(1, gpu::direction::pack, 1);
    messages_->services().schedule.end_admission(0, gpu::direction::pack, limit);
}

TEST_F(pipe_drive_test, messages_get_channels_in_their_order) {
    const unsigned limit = channel_limit(0);
    ASSERT_TRUE(admits(9, limit, 0));
    EXPECT_FALSE(admits(7, limit, 0));
    messages_->services().schedule.end_admission(0, gpu::direction::pack, limit);
    EXPECT_FALSE(admits(8, 1, 0)) << "message 7 was first";
    ASSERT_TRUE(admits(7, limit, 0));
    messages_->services().schedule.end_admission(0, gpu::direction::pack, limit);
    ASSERT_TRUE(admits(8, 1, 0));
    messages_->services().schedule.end_admission(0, gpu::direction::pack, 1);
}

TEST_F(pipe_drive_test, orders_wait_in_line_while_the_mover_has_many) {
    using admission = scheduler::admission;
    scheduler &schedule = messages_->services().schedule;
    std::vector<std::unique_ptr<other_message>> others;
    auto order = [&](uint64_t number, int device = 0) {
        others.push_back(std::make_unique<other_message>(number, device));
        return schedule.order(*others.back());
    };
    for (uint64_t number = 1; number <= scheduler::most_orders; ++number) {
        ASSERT_EQ(order(number), admission::admitted);
    }
    EXPECT_EQ(order(1001), admission::waits);
    EXPECT_EQ(order(1000), admission::waits);
    EXPECT_EQ(order(1002, 1), admission::admitted) << "on another GPU";
    EXPECT_FALSE(schedule.empty());
    schedule.end_order(0);
    EXPECT_EQ(order(1001), admission::waits) << "message 1000 was first";
    EXPECT_EQ(order(1000), admission::admitted);
    EXPECT_EQ(order(1001), admission::waits);
    schedule.stop_waiting(1001);
    for (const auto &one : others) {
        schedule.cancel(*one);
    }
    EXPECT_TRUE(schedule.empty());
}

TEST_F(pipe_drive_test, whose_resources_do_not_come_keeps_no_channels_and_its_place_in_line) {
    using admission = scheduler::admission;
    EXPECT_EQ(ask(7, 1, 0, false), admission::waits);
    EXPECT_EQ(channels_in_flight(0, gpu::direction::pack), 0u);
    EXPECT_EQ(ask(8, 1), admission::waits) << "message 7 was first";
    EXPECT_EQ(ask(7, 1), admission::admitted);
    EXPECT_EQ(ask(8, 1), admission::admitted);
    messages_->services().schedule.end_admission(0, gpu::direction::pack, 2);
    EXPECT_EQ(ask(9, 1, 0, false), admission::waits);
    auto refused = [this] { return ask(9, 1, 0, false) == admission::refused; };
    const auto begun = std::chrono::steady_clock::now();
    while (!refused()) {
        ASSERT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(20));
        std::this_thread::yield();
    }
    EXPECT_EQ(ask(10, 1), admission::admitted);
    messages_->services().schedule.end_admission(0, gpu::direction::pack, 1);
}

TEST_F(pipe_drive_test, a_launch_that_is_refused_is_tried_again) {
    for (strided_end *refused : {from_.get(), to_.get()}) {
        refused->refuse_launch = 1;
        begin(bytes, 8192);
        run();
        expect_arrived();
        EXPECT_GE(refused->launches, 2);
        end_message();
        make_drives();
    }
}

// Where the sender is through the ring has all bytes that are not there yet.
TEST_F(pipe_drive_test, what_no_kernel_takes_from_the_ring_is_copied) {
    to_->refuses_all = true;
    begin();
    run();
    ASSERT_EQ(send_->now(), state::complete);
    ASSERT_EQ(receive_->now(), state::failed);
    EXPECT_EQ(receive_->empty_ring(), UCS_OK);
    std::vector<char> seen(2 * bytes);
    copy(seen.data(), to_->address());
    for (size_t i = 0; i < seen.size(); ++i) {
        ASSERT_EQ(seen[i], i % 16 < 8 ? source_[i] : 0) << i;
    }
}

TEST_F(pipe_drive_test, a_side_whose_launches_are_refused_fails_and_the_other_can_be_stopped) {
    from_->refuses_all = true;
    begin(bytes, 8192);
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (send_->now() != state::failed) {
        step();
        ASSERT_LT(std::chrono::steady_clock::now(), limit);
    }
    EXPECT_FALSE(send_->is_broken());
    receive_->stop();
    EXPECT_EQ(receive_->now(), state::failed);
    EXPECT_FALSE(receive_->is_broken());
    end_message();
    make_drives();
    from_->refuses_all = false;
    begin();  // over the same words
    run();
    expect_arrived();
}

TEST_F(pipe_drive_test, sides_stopped_in_the_middle_leave_memory_alone) {
    for (int round = 0; round < 10; ++round) {
        begin(bytes, 8192);
        auto some = random_() % 200;
        for (uint64_t i = 0; i < some; ++i) {
            step();
        }
        send_->stop();
        receive_->stop();
        std::vector<char> mark(2 * bytes, 'x'), seen(2 * bytes);
        copy(to_->address(), mark.data());
        std::this_thread::yield();
        copy(seen.data(), to_->address());
        ASSERT_EQ(seen, mark);
        end_message();
        make_drives();
    }
    copy(to_->address(), std::vector<char>(2 * bytes).data());
    begin();
    run();
    expect_arrived();
}

}  // namespace
}  // namespace cuda_nc::uct
