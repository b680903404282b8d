// Messages between GPUs of two hosts, over a network that is a stub.
#include "uct/cuda_nc/peers.hpp"
#include "uct/cuda_nc/protocol/network_fixture.hpp"
#include "uct/cuda_nc/selection.hpp"
#include "uct/cuda_nc/protocol/send_message.hpp"
#include "uct/cuda_nc/with_setting.hpp"

namespace cuda_nc::uct {
namespace {

class network_connects : public network_test, public testing::WithParamInterface<uint64_t> {
  protected:
    void SetUp() override {
        network_test::SetUp();
        if (!IsSkipped()) {
            net_->connects = GetParam();
            connect();
        }
    }
};

TEST_P(network_connects, every_byte_comes_by_the_network_however_slow_and_full_it_is) {
    const uint64_t sent = counters::all().sent_by_network,
                   received = counters::all().received_by_network;
    uint64_t number = 0;
    for (unsigned full : {0u, 40u, 80u}) {
        net_->full = full;
        for (uint64_t length : {uint64_t{16} << 10, uint64_t{100001}, uint64_t{3 << 20} + 1}) {
            EXPECT_TRUE(transfer(length)) << length;
            ++number;
        }
    }
    EXPECT_EQ(counters::all().sent_by_network, sent + number);
    EXPECT_EQ(counters::all().received_by_network, received + number);
    EXPECT_EQ(number_of(control_kind::accept_network), number);
    EXPECT_GT(number_of(control_kind::early_offer), 0u) << "where the carrier has room at once";
    EXPECT_EQ(regions_lent(), lent_);
}

// The stub's UCP asks for 4096 bytes at a time.
TEST_P(network_connects, messages_of_any_size_are_offered_where_they_need_no_first_bytes) {
    with_setting all("UCX_CUDA_NC_DIRECT_THRESH", "1");
    using known = receivers_known;
    for (uint64_t length : {1, 100, 1024, 1025, 4096, 4097, 20000}) {
        for (known receivers : {known::yes, known::perhaps, known::no}) {
            left_.end().known_receivers = receivers;
            const size_t early = number_of(control_kind::early_offer);
            EXPECT_EQ(transfer(length), receivers != known::no || length > 4096) << length;
            EXPECT_EQ(number_of(control_kind::early_offer) - early,
                      receivers == known::yes || (receivers == known::perhaps && length <= 1024));
        }
        EXPECT_TRUE(transfer(20000)) << "whose answer says that all is well";
        EXPECT_EQ(left_.end().known_receivers, known::yes);
    }
}

INSTANTIATE_TEST_SUITE_P(kinds, network_connects,
                         testing::Values(abi::cap_flag::connect_to_ep,
                                         abi::cap_flag::connect_to_iface,
                                         abi::cap_flag::connect_to_iface |
                                             abi::cap_flag::connect_to_ep));

// Several messages at once, in both directions.
class network_exchange : public network_test {
  protected:
    void exchange(size_t number) {
        struct message {
            std::vector<char> bytes;
            fake_network_sender from;
            fake_network_receiver to;
        };
        std::vector<std::unique_ptr<message>> all;
        for (size_t i = 0; i < number; ++i) {
            const uint64_t length = 10000 + net_->random() % (1 << 20);
            all.emplace_back(new message{random_bytes(length), fake_network_sender(length),
                                         fake_network_receiver(length)});
            all.back()->from.fill(all.back()->bytes);
            all.back()->from.send((i % 2 == 0 ? left_ : right_).ep, all.back()->to);
        }
        EXPECT_TRUE(progress_until([&] {
            return std::all_of(all.begin(), all.end(), [](const auto &one) {
                return one->from.is_complete() && one->to.is_complete();
            });
        }));
        for (const auto &one : all) {
            EXPECT_TRUE(one->to.read() == one->bytes);
        }
    }
};

TEST_F(network_exchange, many_messages_go_both_ways_at_once) {
    connect();
    net_->full = 20;
    exchange(6);
    EXPECT_TRUE(progress_until([&] { return regions_lent() == lent_; }));
}

TEST_F(network_exchange, every_byte_comes_whatever_fails) {
    SCOPED_TRACE("seed " + std::to_string(net_->seed));
    connect();
    for (int round = 0; round < 12; ++round) {
        net_->full = static_cast<unsigned>(net_->random() % 60);
        net_->slow = static_cast<unsigned>(net_->random() % 60);
        net_->puts_until_error = static_cast<int>(net_->random() % 8);
        net_->puts_until_refusal = static_cast<int>(net_->random() % 12);
        exchange(1 + net_->random() % 6);
    }
}

// So that UCP prefers a rendezvous for them.
TEST_F(network_test, while_a_datatype_is_sent_copies_are_said_to_be_slow) {
    net_->api.uct_iface_estimate_perf = [](abi::uct_iface *, abi::uct_perf_attr_t *attr) {
        attr->bandwidth = {8e9, 16e9};
        return UCS_OK;
    };
    auto bandwidth = [&](int operation) {
        abi::uct_perf_attr_t attr = {};
        attr.field_mask = abi::perf_attr::bandwidth;
        attr.operation = operation;
        auto *ops = static_cast<const abi::uct_iface_internal_ops_1_22 *>(
            left_.inside().super.internal_ops);
        EXPECT_EQ(ops->iface_estimate_perf(left_.iface, &attr), UCS_OK);
        EXPECT_EQ(attr.bandwidth.shared, 2 * attr.bandwidth.dedicated);
        return attr.bandwidth.dedicated;
    };
    auto expect_slowness = [&](double slowness) {
        open(left_);
        EXPECT_EQ(bandwidth(abi::perf_attr::am_bcopy), 8e9);
        {
            datatype_send scope;
            EXPECT_EQ(bandwidth(abi::perf_attr::am_bcopy), 8e9 / slowness);
            EXPECT_EQ(bandwidth(abi::perf_attr::am_bcopy + 1), 8e9);
        }
        EXPECT_EQ(bandwidth(abi::perf_attr::am_bcopy), 8e9);
        close(left_);
    };
    expect_slowness(slowness_between_hosts);
    net_->reaches = 0;
    expect_slowness(slowness_within_machine);
    with_setting off("UCX_CUDA_NC_DIRECT", "n");
    expect_slowness(1);
}

TEST_F(network_test, an_allocation_is_registered_once_on_each_side) {
    connect();
    EXPECT_TRUE(transfer(1 << 20));
    EXPECT_TRUE(transfer(1 << 20));
    EXPECT_LE(net_->registered_ever, 2u);
    EXPECT_EQ(net_->registrations.size(), net_->registered_ever);
}

TEST_F(network_test, where_gpu_memory_is_refused_messages_go_by_host_memory_without_being_offered) {
    connect();
    net_->takes_gpu_memory = false;
    EXPECT_FALSE(transfer(100000));
    EXPECT_FALSE(left_.end().may_go_direct);
    const size_t seen = net_->controls.size();
    EXPECT_FALSE(transfer(100000));
    EXPECT_EQ(net_->controls.size(), seen);
    EXPECT_EQ(regions_lent(), lent_);
}

TEST_F(network_test, a_sender_whose_memory_is_refused_gives_back_what_it_was_lent) {
    connect();
    carrier_memory &network = *left_.domain.gpu_memory;
    region part = acquire_region(0, 1);
    net_->takes_gpu_memory = false;
    EXPECT_EQ(network.find(part), nullptr);
    net_->takes_gpu_memory = true;
    EXPECT_EQ(network.find(part), nullptr) << "it is not asked again";
    release_region(part);
    EXPECT_FALSE(transfer(1 << 20));
    EXPECT_FALSE(left_.end().may_go_direct);
    EXPECT_TRUE(progress_until([&] { return regions_lent() == lent_; }));
}

TEST_F(network_test, where_no_memory_is_left_a_message_goes_by_host_memory) {
    connect();
    std::vector<region> all;
    constexpr size_t step = 256 << 10;  // four slots of the shortest
    for (region one = acquire_region(0, step); one; one = acquire_region(0, step)) {
        all.push_back(one);
    }
    EXPECT_FALSE(transfer(100000)) << "nothing to lend";
    release_region(all.back());
    all.pop_back();
    EXPECT_FALSE(transfer(100000)) << "nothing to put from";
    EXPECT_TRUE(progress_until([&] { return regions_lent() == lent_ + all.size(); }));
    for (const region &one : all) {
        release_region(one);
    }
    EXPECT_TRUE(left_.end().may_go_direct);
    EXPECT_TRUE(transfer(100000));
}

TEST_F(network_test, after_a_put_is_refused_the_message_goes_by_host_memory) {
    connect();
    for (int puts : {0, 1, 3}) {
        net_->puts_until_refusal = puts;
        EXPECT_FALSE(transfer(2 << 20)) << puts;
        EXPECT_TRUE(progress_until([&] { return regions_lent() == lent_; })) << puts;
    }
    net_->puts_until_refusal = -1;
    EXPECT_TRUE(transfer(2 << 20));
}

TEST_F(network_test, what_a_failed_put_may_still_write_to_is_lent_to_nobody) {
    connect();
    EXPECT_TRUE(transfer(2 << 20));
    net_->puts_until_error = 2;
    EXPECT_FALSE(transfer(2 << 20));
    EXPECT_TRUE(
        progress_until([&] { return net_->callbacks.size() <= 2 && regions_lent() == lent_ + 1; }));
    EXPECT_TRUE(transfer(2 << 20)) << "others go on";
    close_endpoint(right_);
    EXPECT_EQ(regions_lent(), lent_ + 1);
    disconnect();
    EXPECT_EQ(regions_lent(), lent_);
}

TEST_F(network_test, where_a_side_cannot_lend_or_put_all_is_as_without) {
    {
        with_setting off("UCX_CUDA_NC_NETWORK_SLOTS", "n");
        open(left_);
        EXPECT_EQ(left_.inside().gpu_memory, nullptr);
        EXPECT_EQ(left_.inside().address.flags, takes_offers);
        close(left_);
    }
    open(left_);
    address_header header = left_.inside().address;
    EXPECT_EQ(header.flags, takes_offers | puts_gpu_memory);
    ++header.identity;
    ++header.host;
    auto connected_to = [&](const address_header &other) {
        char address[sizeof(header) + sizeof(void *)] = {};
        std::memcpy(address, &other, sizeof(other));
        abi::uct_ep_params params = {};
        params.field_mask = abi::ep_param::iface | abi::ep_param::iface_addr;
        params.iface = left_.iface;
        params.iface_addr = address;
        EXPECT_EQ(left_.iface->ops.ep_create(&params, &left_.ep), UCS_OK);
        const endpoint seen = left_.end();
        close_endpoint(left_);
        return seen;
    };
    EXPECT_TRUE(connected_to(header).may_go_direct && connected_to(header).by_network);
    header.flags = takes_offers;
    EXPECT_FALSE(connected_to(header).may_go_direct || connected_to(header).by_network)
        << "the other one cannot";
    header.host = left_.inside().address.host;
    header.flags = puts_gpu_memory;
    EXPECT_FALSE(connected_to(header).may_go_direct) << "it has UCX_CUDA_NC_DIRECT=n";
    header.flags |= takes_offers;
    EXPECT_TRUE(connected_to(header).may_go_direct && !connected_to(header).by_network)
        << "on one machine";
}

TEST_F(network_test, addresses_of_endpoints_say_whose_they_are_where_only_endpoints_connect) {
    connect();
    abi::uct_iface_attr attr = {};
    ASSERT_EQ(left_.iface->ops.iface_query(left_.iface, &attr), UCS_OK);
    EXPECT_EQ(attr.ep_addr_len, sizeof(address_header) + sizeof(void *));
    EXPECT_EQ(left_.end().peer, right_.inside().address.identity);
    EXPECT_EQ(find_peer(left_.inside(), left_.end().peer), &left_.end());
    char address[64] = {};
    right_.iface->ops.ep_get_address(right_.ep, address);
    const abi::uct_ep_connect_to_ep_params too_short = {abi::connect_param::ep_addr_length, 0,
                                                        sizeof(address_header) - 1};
    EXPECT_EQ(connect_to_ep(left_.ep, nullptr, address, &too_short), UCS_ERR_UNREACHABLE);
    EXPECT_EQ(left_.iface->ops.ep_connect_to_ep(left_.ep, nullptr, address), UCS_OK);
    ++address[0];
    EXPECT_EQ(left_.iface->ops.ep_connect_to_ep(left_.ep, nullptr, address), UCS_ERR_UNREACHABLE)
        << "another version";
    disconnect();
    net_->connects |= abi::cap_flag::connect_to_iface;
    open(left_);
    ASSERT_EQ(left_.iface->ops.iface_query(left_.iface, &attr), UCS_OK);
    EXPECT_EQ(attr.ep_addr_len, sizeof(void *));
}

TEST_F(network_test, another_host_answers_by_slots_for_the_network_or_not_at_all) {
    connect();
    fake_network_sender end(1 << 20);
    message_services &owner = left_.inside().messages->services();
    control answer = {};
    answer.from = 33;
    answer.slot = 4;
    answer.length = 65536;
    answer.process = own_process_id();
    for (control_kind kind :
         {control_kind::accept_slots, control_kind::accept_pipe, control_kind::accept_pull}) {
        send_message one(owner, left_.end(), end, 9);
        EXPECT_EQ(one.offer().content().channels, 0u);
        EXPECT_EQ(one.offer().content().process.pid, 0u);
        EXPECT_EQ(one.offer().source().allocation, 0u);
        one.offered(0);
        answer.kind = kind;
        EXPECT_TRUE(one.handle_answer(answer));
        EXPECT_EQ(one.now(), send_message::state::declined);
    }
    left_.end().by_network = false;
    send_message near(owner, left_.end(), end, 10);
    near.offered(0);
    answer.kind = control_kind::accept_network;
    answer.network.key_length = 8;
    EXPECT_TRUE(near.handle_answer(answer));
    EXPECT_EQ(near.now(), send_message::state::declined);
    EXPECT_EQ(net_->puts, 0u);
}

TEST_F(network_test, nothing_that_a_receiver_lends_leads_out_of_our_slots) {
    connect();
    SCOPED_TRACE("seed " + std::to_string(net_->seed));
    fake_network_sender end(1 << 20);
    message_services &owner = left_.inside().messages->services();
    region theirs = acquire_region(0, 1 << 20);
    const carrier_memory::registration *known = right_.domain.gpu_memory->find(theirs);
    ASSERT_NE(known, nullptr);
    auto any = [&](uint64_t likely) {
        return net_->random() % 8 == 0 ? net_->random() >> net_->random() % 64 : likely;
    };
    for (int round = 0; round < 300; ++round) {
        control answer = {};
        answer.kind = control_kind::accept_network;
        answer.from = 33;
        answer.slot = static_cast<uint16_t>(any(1 + net_->random() % 4));
        answer.length = any(1 + net_->random() % (256 << 10));
        answer.flags = static_cast<uint32_t>(any(0));
        answer.network.address = any(reinterpret_cast<uintptr_t>(theirs.address));
        answer.network.key_length = static_cast<uint32_t>(any(8));
        std::memcpy(answer.network.key, known->key, sizeof(known->key));
        send_message one(owner, left_.end(), end, 9);
        one.offered(0);
        EXPECT_TRUE(one.handle_answer(answer));
        const unsigned enough = net_->puts + static_cast<unsigned>(net_->random() % 10);
        EXPECT_TRUE(progress_until([&] {  // the stub looks at what is put
            one.progress();
            control empty = {};
            empty.kind = control_kind::slot_empty;
            empty.slot = static_cast<uint16_t>(net_->random() % 5);
            one.handle(empty);
            return one.now() != send_message::state::moving || net_->puts >= enough;
        }));
    }
    EXPECT_GT(net_->puts, 100u);
    EXPECT_TRUE(progress_until([&] { return regions_lent() == lent_ + 1; }));
    release_region(theirs);
}

// With all four slots on their way.
class network_in_the_middle : public network_test {
  protected:
    void SetUp() override {
        network_test::SetUp();
        if (IsSkipped()) {
            return;
        }
        connect();
        net_->stuck = true;
        from_ = std::make_unique<fake_network_sender>(length);
        to_ = std::make_unique<fake_network_receiver>(length);
        from_->fill(random_bytes(length));
        from_->send(left_.ep, *to_);
        ASSERT_TRUE(progress_until([&] { return net_->puts == ring::most_slots; }));
        EXPECT_EQ(regions_lent(), lent_ + 2);
    }
    static constexpr uint64_t length = 4 << 20;
    std::unique_ptr<fake_network_sender> from_;
    std::unique_ptr<fake_network_receiver> to_;
};

TEST_F(network_in_the_middle, a_sender_that_leaves_says_so_after_its_last_put) {
    purge(left_.ep);
    from_.reset();
    for (int i = 0; i < 1000; ++i) {
        net_->step();
    }
    EXPECT_EQ(number_of(control_kind::cancel), 0u);
    EXPECT_EQ(regions_lent(), lent_ + 2);
    net_->stuck = false;
    EXPECT_TRUE(progress_until([&] { return regions_lent() == lent_; }));
    EXPECT_EQ(number_of(control_kind::cancel), 1u);
}

TEST_F(network_in_the_middle, a_receiver_that_leaves_keeps_its_memory_until_the_sender_is_through) {
    to_->message->leave();
    EXPECT_TRUE(progress_until([&] { return number_of(control_kind::stop) == 1; }));
    for (int i = 0; i < 1000; ++i) {
        net_->step();
    }
    EXPECT_EQ(regions_lent(), lent_ + 2);
    net_->stuck = false;
    EXPECT_TRUE(progress_until([&] { return from_->is_complete() && regions_lent() == lent_; }));
}

TEST_F(network_in_the_middle, memory_lent_to_a_lost_sender_is_kept_until_the_interface_is_closed) {
    close_endpoint(right_);
    to_.reset();
    for (int i = 0; i < 1000; ++i) {
        net_->step();
    }
    EXPECT_EQ(regions_lent(), lent_ + 2);
    close(right_);
    EXPECT_EQ(regions_lent(), lent_ + 1);
    net_->stuck = false;
}

TEST_F(network_in_the_middle, a_lost_receiver_leaves_nothing_behind_in_the_sender) {
    close_endpoint(left_);
    EXPECT_TRUE(progress_until([&] { return regions_lent() == lent_ + 1; })) << "the receiver's";
    from_.reset();
    EXPECT_EQ(number_of(control_kind::slot_full), 0u);
}

TEST_F(network_in_the_middle, a_peer_can_be_answered_as_long_as_an_endpoint_leads_to_it) {
    interface &iface = interface::of(left_.iface);
    ASSERT_EQ(iface.peers.size(), 1u);
    endpoint second = {};
    second.peer = left_.end().peer;
    second.carrier = left_.end().carrier;
    add_peer(iface, second);
    admit_newcomers(iface);
    ASSERT_EQ(find_peer(iface, second.peer), &second);
    close_endpoint(left_);
    ASSERT_EQ(iface.peers.size(), 1u);
    EXPECT_EQ(iface.peers.begin()->second, &second);
    EXPECT_EQ(second.older, nullptr);
    iface.peers.clear();
    net_->stuck = false;
}

TEST_F(network_in_the_middle, interfaces_may_be_closed) {
    disconnect();
    EXPECT_EQ(regions_lent(), lent_);
}

}  // namespace
}  // namespace cuda_nc::uct
