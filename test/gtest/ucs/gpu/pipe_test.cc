// Pipes between two streams of a device, on every platform, against bytes counted one by one.
#include <chrono>
#include <random>
#include <thread>

#include "ucs/gpu/random_layouts.hpp"

namespace cuda_nc::gpu::test {
namespace {

using std::chrono::steady_clock;

// Memory and words of both sides, used by one message after the other.
class gpu_pipe : public random_layout_test {
  protected:
    static constexpr size_t ring_bytes = 1 << 20;

    struct side {
        std::unique_ptr<stream> on;
        std::unique_ptr<memory> state, words, report_memory;
        launch_tracker turns;
        uint64_t sequence = 0;  // last launched

        // Before a launch of the work.
        void begin(pipe_work *work_p) {
            turns.begin(work_p);
            turns.launched(*work_p);
            work_p->resumes = sequence == work_p->sequence;
            sequence = work_p->sequence;
        }
    };

    void SetUp() override {
        random_layout_test::SetUp();
        if (platform_ == nullptr) {
            return;
        }
        ring_ = allocate(ring_bytes);
        for (side *one : {&sender_, &receiver_}) {
            ASSERT_EQ(device_->create_stream(&one->on), UCS_OK);
            one->state = zeroed(sizeof(pipe_state));
            one->words = zeroed(max_pipe_channels * pipe_word_stride);
            one->report_memory = allocate_pinned(sizeof(pipe_report));
            std::memset(one->report_memory->address(), 0, sizeof(pipe_report));
        }
    }

    std::unique_ptr<memory> zeroed(size_t size) {
        std::unique_ptr<memory> made = allocate(size);
        put(made->address(), std::vector<char>(size));
        return made;
    }

    // Everything but the two layouts.
    pipe_work make_work(direction dir, const pipe_geometry &g, uint64_t length) {
        const side &one = dir == direction::pack ? sender_ : receiver_;
        pipe_work w;
        w.dir = dir;
        w.length = length;
        w.geometry = g;
        w.sequence = sequence_;
        w.ring = ring_->address();
        w.flags = receiver_.words->address();
        w.credits = sender_.words->address();
        w.state = reinterpret_cast<pipe_state *>(one.state->address());
        w.report = reinterpret_cast<pipe_report *>(one.report_memory->address());
        w.patience_us = 2000;
        return w;
    }

    void start(side &one, pipe_work &w) {
        one.begin(&w);
        size_t launched = 0;
        ASSERT_EQ(one.on->launch(&w, 1, &launched), UCS_OK);
        ASSERT_EQ(launched, 1u);
    }

    static void await_left(side &one) {
        auto limit = steady_clock::now() + std::chrono::seconds(20);
        while (!one.turns.has_left()) {
            ASSERT_LT(steady_clock::now(), limit) << "a kernel does not leave";
            std::this_thread::yield();
        }
    }

    // Launches a side again and again until its message is complete; returns the launches.
    int drive(side &one, pipe_work w) {
        for (int launches = 1; launches < 5000; ++launches) {
            start(one, w);
            await_left(one);
            if (HasFatalFailure() || one.turns.is_through()) {
                return launches;
            }
        }
        ADD_FAILURE() << "a message is not complete after 5000 launches";
        return 0;
    }

    // Packed bytes from `sent` on have come to those from `received` on; nothing else has changed.
    void expect_moved(const laid_out_buffer &from, uint64_t sent, const laid_out_buffer &to,
                      uint64_t received, uint64_t length) {
        std::vector<size_t> source = from.positions(), target = to.positions();
        std::vector<char> expected = to.image;
        for (uint64_t i = 0; i < length; ++i) {
            expected[target[received + i]] = from.image[source[sent + i]];
        }
        ASSERT_EQ(get(to.bytes->address(), to.image.size()), expected);
        ASSERT_EQ(get(from.bytes->address(), from.image.size()), from.image);
    }

    side &side_of(const pipe_work &w) {
        return w.state == reinterpret_cast<pipe_state *>(sender_.state->address()) ? sender_
                                                                                   : receiver_;
    }

    void next_message() { sequence_ += pipe_sequence_step * number(1, 3); }

    pipe_geometry random_geometry(uint64_t length) {
        pipe_geometry g;
        do {
            g.channels = static_cast<uint32_t>(number(1, number(0, 3) == 0 ? 40 : 6));
            g.chunk_size = 16u << number(0, 12);
            if (number(0, 2) == 0) {
                g.chunk_size += 16 * static_cast<uint32_t>(number(1, 5));
            }
            g.depth = static_cast<uint32_t>(number(1, 4));
        } while (g.ring_size() > ring_bytes || length / g.chunk_size > 20000);
        return g;
    }

    side sender_, receiver_;
    std::unique_ptr<memory> ring_;
    uint64_t sequence_ = pipe_sequence_step;
};
INSTANTIATE_TEST_SUITE_P(all, gpu_pipe, testing::ValuesIn(platform_names()), name_of_platform());

TEST_P(gpu_pipe, random_layouts_arrive_in_random_layouts) {
    for (int round = 0; round < 120; ++round) {
        SCOPED_TRACE("round " + std::to_string(round) + " of seed " + std::to_string(seed_));
        laid_out_buffer from = random_buffer(), to = random_buffer();
        uint64_t length = std::min(from.total(), to.total());
        length = number(0, 2) == 0 ? number(1, length) : length;
        pipe_geometry g = random_geometry(length);
        pipe_work send = make_work(direction::pack, g, length);
        const layout_view there = on_device(from.layout->view());
        send.layout = &there;
        send.base = from.zero_address();
        send.packed_offset = number(0, from.total() - length);
        pipe_work receive = make_work(direction::unpack, g, length);
        const layout_view here = on_device(to.layout->view());
        receive.layout = &here;
        receive.base = to.zero_address();
        receive.packed_offset = number(0, to.total() - length);
        ASSERT_EQ(finish(*stream_), UCS_OK);  // the tables are there

        std::thread other([&] { drive(sender_, send); });
        drive(receiver_, receive);
        other.join();
        ASSERT_FALSE(HasFailure());

        expect_moved(from, send.packed_offset, to, receive.packed_offset, length);
        ASSERT_FALSE(HasFatalFailure());
        next_message();
        tables_.clear();
    }
}

// Without a sender: alone in a launch, and several in one.
TEST_P(gpu_pipe, pulls_bring_random_layouts_to_random_layouts) {
    for (int round = 0; round < 120; ++round) {
        SCOPED_TRACE("round " + std::to_string(round) + " of seed " + std::to_string(seed_));
        const bool alike = number(0, 1) == 0;
        laid_out_buffer from = random_buffer();
        laid_out_buffer to = alike ? random_buffer(from) : random_buffer();
        const uint64_t length = std::min(from.total(), to.total());
        pipe_geometry g = random_geometry(length);
        g.chunk_size = std::min(g.chunk_size, max_pull_chunk);
        pipe_work pull = make_work(direction::unpack, g, length);
        pull.pulls = true;
        const layout_view there = on_device(from.layout->view());
        pull.source = alike ? nullptr : &there;
        pull.source_base = from.zero_address();
        const layout_view here = on_device(to.layout->view());
        pull.layout = &here;
        pull.on_host = number(0, 3) != 0 ? &to.layout->view() : nullptr;
        pull.base = to.zero_address();
        pull.ring = pull.flags = pull.credits = nullptr;
        ASSERT_EQ(finish(*stream_), UCS_OK);  // the tables are there
        if (number(0, 2) == 0) {
            ASSERT_EQ(drive(receiver_, pull), 1);
        } else if (number(0, 1) == 0) {  // without words of any side
            pull.state = nullptr;
            pull.report = nullptr;
            pull.launch_number = 1;
            size_t launched = 0;
            ASSERT_EQ(receiver_.on->launch(&pull, 1, &launched), UCS_OK);
            ASSERT_EQ(launched, 1u);
            ASSERT_EQ(finish(*receiver_.on), UCS_OK);
        } else {  // the other side's words serve the second
            pipe_work both[2] = {pull, pull};
            both[1].state = reinterpret_cast<pipe_state *>(sender_.state->address());
            both[1].report = reinterpret_cast<pipe_report *>(sender_.report_memory->address());
            receiver_.begin(&both[0]);
            sender_.begin(&both[1]);
            size_t launched = 0;
            ASSERT_EQ(receiver_.on->launch(both, 2, &launched), UCS_OK);
            ASSERT_EQ(launched, 2u);
            await_left(receiver_);
            await_left(sender_);
            ASSERT_TRUE(receiver_.turns.is_through() && sender_.turns.is_through());
        }
        ASSERT_FALSE(HasFailure());

        expect_moved(from, 0, to, 0, length);
        ASSERT_FALSE(HasFatalFailure());
        next_message();
        tables_.clear();
    }
}

// By the copy engines, where the layouts are rows.
TEST_P(gpu_pipe, copies_bring_rows_to_rows) {
    ASSERT_TRUE(device_->copies_rows());
    for (int round = 0; round < 120; ++round) {
        SCOPED_TRACE("round " + std::to_string(round) + " of seed " + std::to_string(seed_));
        const uint64_t width = number(1, 300), rows = number(1, 40), slices = number(1, 9);
        auto buffer = [&] {
            std::vector<layout_dim> dims;
            const uint64_t pitch = width + number(0, 100), of_slice = rows + number(0, 5);
            const bool plain = number(0, 2) == 0;
            if (!plain) {
                dims.push_back({rows, static_cast<int64_t>(pitch)});
                dims.push_back({slices, static_cast<int64_t>(pitch * of_slice)});
            }
            const uint64_t block = plain ? width * rows * slices : width;
            return random_buffer(std::make_shared<hand_made_layout>(
                std::vector<piece>{{static_cast<int64_t>(number(0, 99)), block}}, dims));
        };
        laid_out_buffer from = buffer(), to = buffer();
        const uint64_t length = from.total();
        pipe_work pull = make_work(direction::unpack, {1, max_pull_chunk, 1}, length);
        pull.pulls = pull.copies = true;
        pull.source = &from.layout->view();
        pull.source_base = from.zero_address();
        pull.layout = &to.layout->view();
        pull.base = to.zero_address();
        pull.ring = pull.flags = pull.credits = nullptr;
        pipe_work both[2] = {pull, pull};
        both[1].copies = false;  // a kernel's, which does not go with it
        both[1].state = reinterpret_cast<pipe_state *>(sender_.state->address());
        both[1].report = reinterpret_cast<pipe_report *>(sender_.report_memory->address());
        if (number(0, 1) == 0) {
            std::swap(both[0], both[1]);
        }
        size_t launched = 0;
        side_of(both[0]).begin(&both[0]);
        side_of(both[1]).turns.begin(&both[1]);
        ASSERT_EQ(receiver_.on->launch(both, 2, &launched), UCS_OK);
        ASSERT_EQ(launched, 1u);
        await_left(side_of(both[0]));
        ASSERT_TRUE(side_of(both[0]).turns.is_through());
        ASSERT_FALSE(HasFailure());

        expect_moved(from, 0, to, 0, length);
        ASSERT_FALSE(HasFatalFailure());
        next_message();
    }
}

// Values come again after a while: none of before is taken for one of now.
TEST(launch_tracker, a_launch_has_left_when_all_of_its_groups_have) {
    std::mt19937 random(20261121);
    pipe_report report = {};
    launch_tracker turns;
    for (uint64_t round = 0; round < 3 * pipe_left_period; ++round) {
        pipe_work work;
        work.report = &report;
        work.geometry.channels = random() % 64 == 0 ? max_pipe_channels : 1 + random() % 40;
        turns.begin(&work);
        turns.launched(work);
        const uint32_t size = pipe_group_size(work.geometry.channels);
        const uint32_t groups = work.geometry.channels / size;
        ASSERT_LE(groups, max_pipe_groups);
        bool through = true;
        for (uint32_t i = 0, group = random() % groups; i < groups; ++i) {
            ASSERT_FALSE(turns.has_left()) << round;
            const bool group_through = random() % 8 != 0;
            through &= group_through;
            report.groups[(group + i) % groups].left = pipe_left(work.launch_number, group_through);
        }
        ASSERT_TRUE(turns.has_left()) << round;
        ASSERT_EQ(turns.is_through(), through) << round;
    }
}

class gpu_pipe_plain : public gpu_pipe {
  protected:
    void SetUp() override {
        gpu_pipe::SetUp();
        if (platform_ == nullptr) {
            return;
        }
        from_ = allocate(2 * size);
        to_ = allocate(2 * size);
        bytes_ = random_bytes(2 * size, random_);
        put(from_->address(), bytes_);
        put(to_->address(), std::vector<char>(2 * size));
        pipe_geometry g;
        g.channels = 4;
        g.chunk_size = 1024;
        g.depth = 2;
        send_ = make_work(direction::pack, g, size);
        receive_ = make_work(direction::unpack, g, size);
        layout_ = strided(size / 8, 8, 16);
        send_.layout = receive_.layout = &layout_;
        send_.base = from_->address();
        receive_.base = to_->address();
    }

    void expect_arrived() {
        std::vector<char> result = get(to_->address(), 2 * size);
        for (size_t i = 0; i < 2 * size; ++i) {
            ASSERT_EQ(result[i], i % 16 < 8 ? bytes_[i] : 0) << i;
        }
    }

    static constexpr size_t size = 64 << 10;
    std::unique_ptr<memory> from_, to_;
    std::vector<char> bytes_;
    layout_view layout_;
    pipe_work send_, receive_;
};
INSTANTIATE_TEST_SUITE_P(all, gpu_pipe_plain, testing::ValuesIn(platform_names()),
                         name_of_platform());

TEST_P(gpu_pipe_plain, a_kernel_without_a_peer_leaves_and_goes_on_later) {
    // The sender fills the ring and leaves; launched again it finds no credit and leaves again.
    for (int i = 0; i < 2; ++i) {
        start(sender_, send_);
        await_left(sender_);
        EXPECT_FALSE(sender_.turns.is_through());
    }
    // The receiver empties the ring and leaves.
    start(receiver_, receive_);
    await_left(receiver_);
    EXPECT_FALSE(receiver_.turns.is_through());
    std::thread other([&] { drive(sender_, send_); });
    drive(receiver_, receive_);
    other.join();
    expect_arrived();
}

TEST_P(gpu_pipe_plain, an_aborted_message_is_left_at_once_and_the_next_one_arrives) {
    send_.patience_us = 10000000;
    start(sender_, send_);
    put(sender_.state->address() + offsetof(pipe_state, abort),
        std::vector<char>(reinterpret_cast<char *>(&send_.sequence),
                          reinterpret_cast<char *>(&send_.sequence + 1)));
    auto begin = steady_clock::now();
    await_left(sender_);
    EXPECT_LT(steady_clock::now() - begin, std::chrono::seconds(5));
    EXPECT_FALSE(sender_.turns.is_through());
    next_message();
    send_.sequence = receive_.sequence = sequence_;
    send_.patience_us = 2000;
    std::thread other([&] { drive(sender_, send_); });
    drive(receiver_, receive_);
    other.join();
    expect_arrived();
}

// A ring smaller than the message: neither ends unless the other runs too.
TEST_P(gpu_pipe_plain, sides_of_one_launch_run_side_by_side) {
    send_.patience_us = receive_.patience_us = 10000000;
    sender_.begin(&send_);
    receiver_.begin(&receive_);
    pipe_work both[] = {send_, receive_};
    size_t launched = 0;
    ASSERT_EQ(sender_.on->launch(both, 2, &launched), UCS_OK);
    ASSERT_EQ(launched, 2u);
    await_left(sender_);
    await_left(receiver_);
    EXPECT_TRUE(sender_.turns.is_through());
    EXPECT_TRUE(receiver_.turns.is_through());
    expect_arrived();
}

TEST_P(gpu_pipe_plain, of_the_last_chunks_no_credit_is_returned) {
    std::thread other([&] { drive(sender_, send_); });
    drive(receiver_, receive_);
    other.join();
    std::vector<char> words = get(sender_.words->address(), send_.geometry.words_size());
    for (uint32_t channel = 0; channel < send_.geometry.channels; ++channel) {
        uint64_t chunks = size / send_.geometry.chunk_size / send_.geometry.channels;
        EXPECT_EQ(*pipe_word(words.data(), channel), send_.sequence + chunks - send_.geometry.depth)
            << channel;
    }
}

TEST_P(gpu_pipe_plain, senseless_numbers_are_refused) {
    send_.launch_number = 1;
    auto refused = [&](auto &&change) {
        pipe_work wrong = send_;
        change(wrong);
        pipe_work both[] = {send_, wrong};
        size_t launched = 0;
        return sender_.on->launch(&wrong, 1, &launched) == UCS_ERR_INVALID_PARAM &&
               sender_.on->launch(both, 2, &launched) == UCS_ERR_INVALID_PARAM;
    };
    EXPECT_TRUE(refused([](pipe_work &w) { w.geometry.channels = 0; }));
    EXPECT_TRUE(refused([](pipe_work &w) { w.geometry.channels = max_pipe_channels + 1; }));
    EXPECT_TRUE(refused([](pipe_work &w) { w.geometry.chunk_size = 24; }));
    EXPECT_TRUE(refused([](pipe_work &w) { w.geometry.chunk_size = 0; }));
    EXPECT_TRUE(refused([](pipe_work &w) { w.geometry.depth = 0; }));
    EXPECT_TRUE(refused([](pipe_work &w) { w.length = 0; }));
    EXPECT_TRUE(refused([](pipe_work &w) { w.length = size + 1; }));
    EXPECT_TRUE(refused([](pipe_work &w) { w.packed_offset = 1; }));
    EXPECT_TRUE(refused([](pipe_work &w) { w.sequence = 7; }));
    EXPECT_TRUE(refused([](pipe_work &w) { w.launch_number = 0; }));
    EXPECT_EQ(finish(*sender_.on), UCS_OK);
}

}  // namespace
}  // namespace cuda_nc::gpu::test
