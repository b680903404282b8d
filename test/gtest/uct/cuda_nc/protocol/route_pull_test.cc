// Messages that the receiver's GPU takes from the sender's memory: offers, answers, ends and
// failures of them, and what a hostile sender makes of it.
#include <sys/resource.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <string>

#include "uct/cuda_nc/engine/stream_pool.hpp"
#include "uct/cuda_nc/protocol/pull_fixture.hpp"

namespace cuda_nc::uct {
namespace {

// In the child.
TEST(source_process, DISABLED_describes_memory) {
    gpu::device *device = gpu::platform::instance().get_device(0);
    ASSERT_NE(device, nullptr);
    std::unique_ptr<gpu::memory> memory;
    ASSERT_EQ(device->allocate(source_bytes, &memory), UCS_OK);
    std::vector<char> bytes(source_bytes);
    for (size_t i = 0; i < source_bytes; ++i) {
        bytes[i] = pattern(i);
    }
    copy(memory->address(), bytes.data(), source_bytes);
    fake_end end;
    end.what = blocks(64, 128);
    end.base = memory->address() + 4096;
    lent mine = {};
    mine.source = describe_source(end);
    std::unique_ptr<gpu::memory> another;
    size_t offset;
    ASSERT_EQ(device->allocate(2 * total, &another), UCS_OK);
    ASSERT_EQ(device->ipc_export(another->address(), &mine.handle, &offset), UCS_OK);
    lend(mine);
}

INSTANTIATE_TEST_SUITE_P(by, direct_messages_with_source, testing::Bool(), [](const auto &one) {
    return std::string(one.param ? "copy" : "kernel");
});

TEST_P(direct_messages_with_source, a_message_is_pulled_by_one_kernel_and_ended_by_ats) {
    const uint64_t received = counters::all().received_by_pull;
    pulling();
    ASSERT_EQ(end_.launched.size(), 1u);
    EXPECT_TRUE(end_.launched[0].pulls && end_.launched[0].source == nullptr);
    EXPECT_EQ(end_.launched[0].length, total);
    EXPECT_EQ(channels_promised(0), promised_ + end_.launched[0].geometry.channels);
    EXPECT_TRUE(ucp.lengths.empty()) << "UCP is still in the middle of its RTR";
    run_until_delivered();
    EXPECT_EQ(ucp.lengths, std::vector<uint64_t>{sizeof(rndv_header) + total});
    EXPECT_EQ(counters::all().received_by_pull, received + 1);
    EXPECT_EQ(end_.launched.size(), 1u);
    expect_ats();
    expect_bytes(*end_.what);
}

TEST_P(direct_messages_with_source, nobody_ends_a_pull_before_all_is_read) {
    const unsigned limit = channel_limit(0);
    ASSERT_TRUE(acquire_channels(0, gpu::direction::unpack, limit));  // the kernel waits
    pulling();
    ASSERT_NE(end_.message, nullptr);
    rest(number(), total, 0);  // logged
    say(control_kind::cancel, number());
    progress();
    EXPECT_TRUE(ucp.lengths.empty());
    EXPECT_TRUE(sent.empty() && sent_of_ucp.empty());
    release_channels(0, gpu::direction::unpack, limit);
    run_until_delivered();
    expect_ats();
    expect_bytes(*end_.what);
}

// The user may close the endpoint as soon as the receive is complete.
TEST_P(direct_messages_with_source, a_message_is_delivered_when_its_ats_has_left) {
    pulling();
    carrier_is_full = true;
    run_until([this] { return ports_lent() == sides_; });
    for (int i = 0; i < 100; ++i) {
        progress();
    }
    EXPECT_TRUE(ucp.rest_statuses.empty());
    carrier_is_full = false;
    run_until_delivered();
    expect_ats();
}

TEST_P(direct_messages_with_source, an_ats_that_finds_no_room_leaves_over_the_next_endpoint) {
    pulling();
    carrier_is_full = true;
    run_until([this] { return ports_lent() == sides_; });
    for (int i = 0; i < 100; ++i) {
        progress();
    }
    messages_->endpoint_closed(ep_);
    run_until_delivered();
    EXPECT_TRUE(sent_of_ucp.empty());
    carrier_is_full = false;
    messages_->endpoint_connected(ep_);
    expect_ats();
}

TEST_P(direct_messages_with_source, bytes_laid_out_otherwise_than_here_are_pulled) {
    end_.what = blocks(total, 0);
    pulling();
    ASSERT_EQ(end_.launched.size(), 1u);
    EXPECT_NE(end_.launched[0].source, nullptr);
    EXPECT_FALSE(end_.in_order);
    run_until_delivered();
    expect_bytes(*blocks(64, 128));
}

// Rows of a matrix with gaps, sent and received column by column.
TEST_P(direct_messages_with_source, of_layouts_that_are_alike_none_is_read_otherwise_than_it_lies) {
    layout_builder element;
    element.append(first_displacement, 8);
    constexpr int64_t rows = 64, columns = total / 8 / rows, pitch = 12 * columns;
    end_.what = element.finish()->repeat(rows, pitch)->repeat(columns, 8);
    say_alike(true);
    pulling();
    ASSERT_EQ(end_.launched.size(), 1u);
    EXPECT_TRUE(end_.in_order);
    EXPECT_EQ(end_.launched[0].layout->block_length, 8u * columns);
    run_until_delivered();
    expect_bytes(*end_.what);
}

// A face of a box and the halo where it belongs.
TEST_P(direct_messages_with_source, the_same_blocks_elsewhere_are_moved_as_if_they_lay_alike) {
    for (int64_t shift : {-192, -64, 8, 4096}) {
        describe(64, 128);
        source_.first_displacement += shift;
        pulling();
        ASSERT_EQ(end_.launched.size(), 1u);
        EXPECT_EQ(end_.launched[0].source, nullptr);
        run_until_delivered();
        ucp = {};
        source_.displacement_0 += shift;  // what the same blocks begin at
        expect_bytes(*end_.what);
    }
}

TEST_P(direct_messages_with_source, the_same_blocks_elsewhere_stay_inside_its_memory) {
    const auto size = static_cast<int64_t>(source_bytes);
    describe(64, 128);
    const int64_t first = source_.first_displacement, last = size - end_.what->upper_bound();
    source_.displacement_0 = 0;
    for (int64_t shift : {-first, last}) {
        source_.first_displacement = first + shift;
        expect_pull();
    }
    for (int64_t shift : {-first - 1, last + 1, size, -size}) {
        source_.first_displacement = first + shift;
        expect_slots();
    }
    source_.displacement_0 = INT64_MAX - 4096;
    source_.first_displacement = first + 8192;
    expect_slots();
}

TEST_P(direct_messages_with_source, a_kernel_that_is_done_at_once_ends_nothing_within_ucps_rtr) {
    end_.leaves_at_once = true;
    pulling();
    EXPECT_TRUE(ucp.lengths.empty());
    run_until_delivered();
    expect_ats();
    bool later;
    acquire_stream(0, &later)->finish();  // waits for the kernel
}

TEST_P(direct_messages_with_source,
       bytes_up_to_the_edges_of_its_memory_are_pulled_and_none_beyond) {
    const auto size = static_cast<int64_t>(source_bytes);
    for (bool alike : {true, false}) {
        say_alike(alike);
        for (int64_t least : {-end_.what->lower_bound(), size - end_.what->upper_bound()}) {
            source_.displacement_0 = least;
            expect_pull();
        }
        for (int64_t outside :
             {-end_.what->lower_bound() - 1, size - end_.what->upper_bound() + 1, size,
              -int64_t{total}, INT64_MIN, INT64_MAX, INT64_MAX - end_.what->upper_bound()}) {
            source_.displacement_0 = outside;
            expect_slots();
        }
    }
}

TEST_P(direct_messages_with_source, layouts_that_make_no_sense_are_not_pulled) {
    auto expect = [&](const char *what, auto &&change) {
        SCOPED_TRACE(what);
        describe(64, 128);
        change(source_);
        expect_slots();
    };
    describe(64, 128);
    expect_pull();  // it does, so far
    expect("a list", [](source_descriptor &one) { one.is_list = 1; });
    expect("no block", [](source_descriptor &one) { one.block_length = 0; });
    expect("dims", [](source_descriptor &one) { one.num_dims = max_dims + 1; });
    expect("more dims", [](source_descriptor &one) { one.num_dims = UINT32_MAX; });
    expect("short", [](source_descriptor &one) { --one.dims[0].count; });
    expect("long", [](source_descriptor &one) { ++one.dims[0].count; });
    expect("no bytes", [](source_descriptor &one) { one.dims[0].count = 0; });
    expect("64 bits", [](source_descriptor &one) { one.dims[0].count += uint64_t{1} << 58; });
    expect("128 bits", [](source_descriptor &one) {
        one.num_dims = 3;
        one.dims[0] = one.dims[1] = one.dims[2] = {UINT64_MAX, 64};
    });
    for (int64_t stride : {INT64_MIN, INT64_MAX}) {
        expect("stride", [stride](source_descriptor &one) {
            one.first_displacement = 4096;
            one.block_length = total / 2;
            one.dims[0] = {2, stride};
        });
    }
    expect("displacement", [](source_descriptor &one) { one.first_displacement = INT64_MAX; });
    expect("displacement", [](source_descriptor &one) { one.first_displacement = INT64_MIN; });
    expect("all", [](source_descriptor &one) { std::memset(&one, 0xff, sizeof(one)); });
}

TEST_P(direct_messages_with_source, no_terms_lead_out_of_its_memory) {
    unsigned seed = std::random_device()();
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const auto begin =
        reinterpret_cast<uintptr_t>(reach(source_.allocation, source_.address).address);
    int taken = 0;
    for (int round = 0; round < 20000; ++round) {
        auto any = [&](uint64_t likely) {
            return static_cast<int64_t>(random() % 20 == 0 ? random() >> random() % 64 : likely);
        };
        const uint64_t length = uint64_t{16} << random() % 10, rows = uint64_t{1} << random() % 6;
        describe(any(length), any(length << random() % 4));
        source_.displacement_0 = any(random() % source_bytes);
        source_.num_dims = 2;
        source_.dims[0].count = any(rows);
        source_.dims[1].count = any(total / length / rows);
        source_.dims[1].stride = -any(length * rows << random() % 3);
        const source found = reach_source(0, {terms_, source_}, *end_.what, total, UINT64_MAX);
        if (found) {
            ++taken;
            __int128 lower = reinterpret_cast<uintptr_t>(found.base);
            lower += source_.first_displacement - __int128{begin};
            __int128 upper = lower + source_.block_length;
            for (auto &dim : {source_.dims[0], source_.dims[1]}) {
                (dim.stride < 0 ? lower : upper) += __int128{dim.stride} * (dim.count - 1);
            }
            ASSERT_GE(lower, 0);
            ASSERT_LE(upper, source_bytes);
            ASSERT_EQ(found.what->packed_size(), total);
        }
    }
    EXPECT_GT(taken, 100);
}

TEST_P(direct_messages_with_source, memory_that_is_not_shared_is_not_pulled) {
    source_.allocation = 0;
    expect_slots();
    source_ = lent_.source;
    source_.address += 4096;  // another allocation
    source_.memory = {};
    expect_slots();
    source_ = lent_.source;
    terms_.process = own_process_id();
    ep_.process = {};  // of another peer
    expect_slots();
    terms_.process = lent_.process;
    ep_.process = {};
    end_.what = nullptr;  // nor is it where the target is not known
    expect_slots();
}

TEST_P(direct_messages_with_source, memory_that_could_not_be_opened_is_tried_again) {
    if (std::string(gpu::platform::instance().name()) != "sim") {
        GTEST_SKIP() << "a real GPU's memory takes no descriptor to open";
    }
    rlimit before = {};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    const rlimit none = {0, before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    EXPECT_FALSE(reach(7, source_.address));
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    bool reached = false;
    for (int i = 0; i < 600 && !reached; ++i) {
        usleep(100000);
        reached = static_cast<bool>(reach(7, source_.address));
    }
    EXPECT_TRUE(reached);
}

// Processes that are not known cannot be told apart, and each counts its allocations from 1.
TEST_P(direct_messages_with_source, allocations_of_processes_that_are_not_known_are_not_mixed_up) {
    peer_memory one = reach_user_memory(0, lent_.source.memory, {}, 7, 0);
    peer_memory other = reach_user_memory(0, lent_.handle, {}, 7, 0);
    EXPECT_FALSE(one && other.address == one.address);
}

TEST_P(direct_messages_with_source,
       messages_are_pulled_up_to_the_length_that_is_set_where_pipes_are) {
    for (bool pipes : {true, false}) {
        with_setting both("UCX_CUDA_NC_PIPE", pipes ? "y" : "n");
        {
            with_setting shorter("UCX_CUDA_NC_PULL_MAX", std::to_string(total - 1));
            expect_slots();
        }
        with_setting just("UCX_CUDA_NC_PULL_MAX", std::to_string(total));
        pipes ? expect_pull() : expect_slots();
    }
}

TEST_P(direct_messages_with_source, rows_of_another_gpu_are_copied_where_that_is_wanted) {
    const uint64_t copied = counters::all().received_by_copy;
    pulling();
    ASSERT_EQ(end_.launched.size(), 1u);
    EXPECT_EQ(end_.launched[0].copies, GetParam());
    EXPECT_EQ(copies_in_flight(0), GetParam() ? 1u : 0u);
    run_until_delivered();
    EXPECT_EQ(counters::all().received_by_copy, copied + (GetParam() ? 1 : 0));
    EXPECT_EQ(copies_in_flight(0), 0u);
    expect_bytes(*end_.what);
}

TEST_P(direct_messages_with_source, rows_on_the_same_gpu_go_by_a_kernel) {
    offer_from_our_gpu();
    expect_pull();
    EXPECT_FALSE(end_.launched[0].copies);
}

TEST_P(direct_messages_with_source, of_many_messages_few_are_copied) {
    for (uint64_t bytes : {uint64_t{2} << 20, uint64_t{4} << 20}) {
        const int most = bytes == uint64_t{2} << 20 ? 3 : 1;
        for (int i = 0; i < most; ++i) {
            EXPECT_TRUE(acquire_copy(0, bytes));
        }
        EXPECT_FALSE(acquire_copy(0, bytes));
        expect_pull();
        EXPECT_EQ(end_.launched[0].copies, GetParam() && most == 1) << "the message is a short one";
        for (int i = 0; i < most; ++i) {
            release_copy(0);
        }
        EXPECT_EQ(copies_in_flight(0), 0u);
    }
}

TEST_P(direct_messages_with_source, a_long_detour_is_made_on_one_gpu_alone) {
    describe(8, 16);
    expect_pull();
    describe(8, 32);  // 24 bytes beside 8
    expect_slots();
    offer_from_our_gpu();
    expect_pull();
}

// No pipe is offered here, so what remains is host memory. The second message reads as many bytes
// beside those wanted, which among others does not pay where there is a pipe.
TEST_P(direct_messages_with_source, one_among_others_is_pulled_rather_than_sent_through_the_host) {
    prepare_receives(2);
    for (size_t i = 0; i < receives_.size(); ++i) {
        EXPECT_EQ(ask(i), leaving::never);
        describe(8, 16);
    }
    EXPECT_TRUE(sent.empty());
    run_until(all_are_launched);
    end_receives();
}

// The first is alone, and begins at once. Copies share no launch, and wait for nobody.
TEST_P(direct_messages_with_source, what_the_carrier_still_holds_shares_the_next_launch) {
    constexpr size_t before = 2;
    const size_t number = GetParam() ? before : before + 1;
    prepare_receives(number);
    for (size_t i = 0; i < before; ++i) {
        EXPECT_EQ(ask(i), leaving::never);
    }
    static std::function<unsigned()> arrive;
    iface_.is_progressed = true;
    iface_.carrier = &carrier_;
    carrier_.ops.iface_progress = [](abi::uct_iface *) { return arrive(); };
    size_t next = before, asked = 0;
    arrive = [&] {
        ++asked;
        if (next == number) {
            return 0u;
        }
        EXPECT_EQ(ask(next++), leaving::never);
        return 1u;
    };
    const counters &all = counters::all();
    const uint64_t launches = all.launches, sides = all.launched_sides;
    progress();
    EXPECT_EQ(asked == 0, GetParam());
    EXPECT_EQ(next, number);
    EXPECT_EQ(all.launches, launches + 1);
    EXPECT_EQ(all.launched_sides, sides + number - 1);
    run_until(all_are_launched);
    end_receives();
    arrive = nullptr;
}

// A pull has a port while its kernel runs: there are fewer ports than messages.
TEST_P(direct_messages_with_source, more_messages_than_ports_are_pulled_one_after_the_other) {
    constexpr size_t number = 200;  // there are 64 ports for pulls alone
    prepare_receives(number);
    const size_t slots = regions_lent();
    sent.clear();
    for (size_t i = 0; i < number; ++i) {
        EXPECT_EQ(ask(i), leaving::never);
    }
    EXPECT_TRUE(sent.empty());
    EXPECT_EQ(regions_lent(), slots);
    run_until([this] { return ports_lent() == sides_ && all_are_launched(); });
    end_receives();
}

TEST_P(direct_messages_with_source, a_refused_launch_lets_the_rtr_go) {
    const uint64_t abandoned = counters::all().abandoned;
    end_.launch_status = UCS_ERR_UNSUPPORTED;  // which is not tried again
    pulling();
    run_until([] { return !sent_of_ucp.empty(); });
    expect_fragments();
    EXPECT_EQ(counters::all().abandoned, abandoned + 1);
    progress();
    EXPECT_EQ(sent_of_ucp.size(), 1u);
}

TEST_P(direct_messages_with_source, a_kernel_that_fails_lets_the_rtr_go_and_delivers_nothing) {
    if (std::strcmp(gpu::platform::instance().name(), "sim") != 0) {
        GTEST_SKIP() << "on a real GPU others' memory may be there, and a fault ends the process's";
    }
    const uint64_t abandoned = counters::all().abandoned;
    end_.base = target_->address() + target_bytes;  // no memory; logged
    pulling();
    run_until([] { return !sent_of_ucp.empty(); });
    expect_fragments();
    EXPECT_EQ(counters::all().abandoned, abandoned + 1);
}

TEST_P(direct_messages_with_source, a_receive_that_ends_while_it_pulls_leaves_memory_alone) {
    for (int pause : {0, 5}) {
        pulling();
        std::this_thread::sleep_for(std::chrono::milliseconds(pause));
        ASSERT_NE(end_.message, nullptr);
        end_.message->leave();
        std::vector<char> mark(target_bytes, 'x'), seen(target_bytes);
        copy(target_->address(), mark.data(), target_bytes);
        EXPECT_EQ(end_.message, nullptr);
        EXPECT_EQ(ports_lent(), sides_);
        expect_ats_of_failure();
        progress();
        EXPECT_TRUE(sent.empty() && sent_of_ucp.size() == 1);
        EXPECT_TRUE(ucp.lengths.empty());
        copy(seen.data(), target_->address(), target_bytes);
        EXPECT_TRUE(seen == mark);
    }
}

TEST_P(direct_messages_with_source, a_pull_whose_offer_is_withdrawn_stops_and_says_nothing) {
    const unsigned limit = channel_limit(0);
    ASSERT_TRUE(acquire_channels(0, gpu::direction::unpack, limit));  // the kernel waits
    pulling();
    const auto withdraw = [](uint64_t message, uint64_t author) {
        control one = {};
        one.version = protocol_version;
        one.kind = control_kind::withdraw;
        one.from = message;
        one.identity = author;
        one.offset = 99;
        return one;
    };
    for (control strange :
         {withdraw(5, identity + 1), withdraw(6, identity), withdraw(0, identity)}) {
        messages_->handle_control(&strange, length_of(strange.kind));
        EXPECT_NE(end_.message, nullptr);
    }
    control own = withdraw(5, identity);
    messages_->handle_control(&own, length_of(own.kind));
    EXPECT_EQ(end_.message, nullptr);
    EXPECT_EQ(ports_lent(), sides_);
    release_channels(0, gpu::direction::unpack, limit);
    messages_->handle_control(&own, length_of(own.kind));
    for (int i = 0; i < 100; ++i) {
        progress();
    }
    EXPECT_TRUE(sent.empty() && sent_of_ucp.empty() && ucp.lengths.empty());
}

TEST_P(direct_messages_with_source, a_pull_whose_endpoint_is_closed_lets_its_rtr_go) {
    for (bool has_room : {true, false}) {
        pulling();
        carrier_is_full = !has_room;
        messages_->endpoint_closed(ep_);
        carrier_is_full = false;
        has_room ? expect_fragments() : expect_first_fragment();
        EXPECT_EQ(ports_lent(), sides_);
        progress();
        EXPECT_EQ(sent_of_ucp.size(), has_room ? 1u : 0u) << "no endpoint leads there";
        messages_->endpoint_connected(ep_);
        expect_rtr();
    }
}

// ---- memory of other processes' users

TEST_P(direct_messages_with_source,
       an_allocation_is_opened_once_and_closed_when_its_owner_is_gone) {
    close_memory_of_the_gone();  // of tests before
    const size_t before = peer_allocations_open();
    peer_memory used = reach(7, 0);
    ASSERT_TRUE(used);
    EXPECT_EQ(reach(7, 0).address, used.address);
    expect_closed_when_gone(std::move(used), before);
}

// The endpoint is closed first, as where the system closes a process's connections before its GPUs.
TEST_P(direct_messages_with_source,
       an_allocation_is_closed_when_its_owner_goes_after_its_endpoint) {
    close_memory_of_the_gone();  // of tests before
    const size_t before = peer_allocations_open();
    ASSERT_TRUE(reach(7, 0));
    messages_->endpoint_closed(ep_);
    progress();
    EXPECT_EQ(peer_allocations_open(), before + 1) << "it lives";
    child_->kill();
    child_->wait();
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (peer_allocations_open() != before && std::chrono::steady_clock::now() < end) {
        progress();
    }
    EXPECT_EQ(peer_allocations_open(), before);
}

TEST_P(direct_messages_with_source, an_allocation_takes_the_place_of_one_that_was_freed) {
    close_memory_of_the_gone();
    const size_t before = peer_allocations_open();
    peer_memory used = reach(7, 0);
    ASSERT_TRUE(used);
    EXPECT_FALSE(reach(8, 0)) << "in use";
    EXPECT_EQ(reach(7, 0).address, used.address);
    used = {};
    EXPECT_TRUE(reach(8, 0));
    EXPECT_EQ(peer_allocations_open(), before + 1);
}

TEST_P(direct_messages_with_source, allocations_that_are_reached_by_turns_stay_open) {
    constexpr uint64_t number = 100;  // the same memory by other names
    std::vector<std::weak_ptr<gpu::memory>> seen(number);
    for (int round = 0; round < 4; ++round) {
        for (uint64_t i = 0; i < number; ++i) {
            const bool was_open = !seen[i].expired();
            peer_memory one = reach(100 + i, 4096 * (1 + i));
            ASSERT_TRUE(one);
            EXPECT_TRUE(round < 2 || was_open) << round << " " << i;
            seen[i] = one.keeper;
        }
    }
    const size_t open = peer_allocations_open();
    for (uint64_t i = 0; i < 20 * number; ++i) {  // such as are reached once do not stay
        ASSERT_TRUE(reach(10000 + i, 4096 * (10000 + i)));
    }
    EXPECT_LE(peer_allocations_open(), open);
}

TEST_P(direct_messages_with_source,
       an_allocation_that_cannot_be_opened_is_not_tried_again_at_once) {
    close_memory_of_the_gone();
    const size_t before = peer_allocations_open();
    source_.memory = {};
    EXPECT_FALSE(reach(7, 0));
    EXPECT_EQ(peer_allocations_open(), before + 1) << "known";
    EXPECT_FALSE(reach(7, 0));
    EXPECT_EQ(peer_allocations_open(), before + 1);
    source_.memory = lent_.source.memory;
    EXPECT_TRUE(reach(8, 0)) << "another one";
}

}  // namespace
}  // namespace cuda_nc::uct
