// What a sender says of its memory, and what becomes of a message that is pulled from there.
#include "uct/cuda_nc/protocol/pull_fixture.hpp"

namespace cuda_nc::uct {
namespace {

class direct_messages_with_early_send : public direct_messages_test {
  protected:
    void SetUp() override {
        direct_messages_test::SetUp();
        if (messages_ == nullptr) {
            return;
        }
        gpu::device *device = gpu::platform::instance().get_device(0);
        ASSERT_EQ(device->allocate(target_bytes, &memory_), UCS_OK);
        allocation_ = gpu::platform::instance().query(memory_->address()).allocation;
        ASSERT_NE(allocation_.id, 0u);
        end_.what = blocks(64, 128);
        end_.base = memory_->address();
        end_.sending_side = true;
        end_.state = 0x7777;
        request_has(end_.state);
    }
    // The message, offered early, and what was said of its bytes.
    send_message &begin() {
        sent.clear();
        rts();
        EXPECT_EQ(sent.size(), 1u);
        EXPECT_EQ(sent.back().kind, control_kind::early_offer);
        return *static_cast<send_message *>(end_.message);
    }
    source_descriptor described() {
        begin();
        end_.message->leave();
        return sent.front().early.source;
    }
    void answer(control_kind kind, uint64_t message) {
        control one = {};
        one.version = protocol_version;
        one.kind = kind;
        one.identity = identity;
        one.to = message;
        one.from = 33;
        one.flags = known_receivers;
        messages_->handle_control(&one, length_of(kind));
    }

    // ATS for the send comes; `length`: its bytes.
    void ats(ucs_status_t status, uint64_t bytes, uint64_t message,
             size_t length = sizeof(end_of_pull)) {
        const end_of_pull one = {
            {reinterpret_cast<uint64_t>(request_), static_cast<int8_t>(status), bytes}, message};
        messages_->handle_ats(&one, length);
    }
    static long said_since_offer(control_kind kind) {
        return std::count_if(sent.begin(), sent.end(),
                             [kind](const control &one) { return one.kind == kind; });
    }

    std::unique_ptr<gpu::memory> memory_;
    gpu::allocation_info allocation_;
};

TEST_F(direct_messages_with_early_send, a_list_of_blocks_is_described_by_its_hash) {
    layout_builder some;
    for (int64_t at : {0, 70, 100}) {
        some.append(at, 8);
    }
    end_.what = some.finish();
    const source_descriptor terms = described();
    EXPECT_NE(terms.allocation, 0u);
    EXPECT_EQ(terms.is_list, 1u);
    EXPECT_EQ(sent.front().early.offer.hash_low, end_.what->hash().low);
    EXPECT_EQ(sent.front().early.offer.hash_high, end_.what->hash().high);
}

TEST_F(direct_messages_with_early_send, bytes_up_to_the_edges_of_an_allocation_are_described) {
    const auto size = static_cast<int64_t>(allocation_.size);
    for (int64_t at : {-end_.what->lower_bound(), size - end_.what->upper_bound()}) {
        end_.base = allocation_.base + at;
        const source_descriptor terms = described();
        EXPECT_EQ(terms.allocation, allocation_.id);
        EXPECT_EQ(terms.address, reinterpret_cast<uintptr_t>(allocation_.base));
        EXPECT_EQ(terms.displacement_0, at);
        end_.base += at < 0 ? -1 : 1;
        EXPECT_EQ(described().allocation, 0u);
    }
}

TEST_F(direct_messages_with_early_send, what_cannot_be_pulled_is_not_described) {
    std::vector<char> on_host(target_bytes);
    end_.base = on_host.data();
    EXPECT_EQ(described().allocation, 0u);
    end_.base = allocation_.base;
    EXPECT_NE(described().allocation, 0u);
    with_setting shorter("UCX_CUDA_NC_PULL_MAX", std::to_string(total - 1));
    EXPECT_EQ(described().allocation, 0u);
}

TEST_F(direct_messages_with_early_send,
       a_short_message_of_a_layout_brings_a_port_until_one_is_pulled) {
    constexpr uint64_t short_one = 128 << 10;
    const auto brings_port = [this] {
        begin();
        return sent.front().early.offer.channels != 0;
    };
    const auto number = [this] { return static_cast<send_message *>(end_.message)->id(); };
    const auto leave = [this] { end_.message->leave(); };
    const auto is_pulled = [&] {
        ats(UCS_OK, end_.bytes, number());
        leave();
    };
    end_.bytes = short_one;
    for (int i = 0; i < 3; ++i) {
        EXPECT_TRUE(brings_port()) << "nothing is known of the peer";
        leave();
    }
    EXPECT_TRUE(brings_port());
    is_pulled();
    const size_t sides = ports_lent();
    for (int i = 0; i < 3; ++i) {
        EXPECT_FALSE(brings_port());
        EXPECT_EQ(ports_lent(), sides);
        leave();
    }
    end_.bytes = short_one + 1;
    EXPECT_TRUE(brings_port()) << "a longer one may be piped";
    is_pulled();
    end_.bytes = short_one;
    const layout_ref before = end_.what;
    end_.what = blocks(64, 256);
    EXPECT_TRUE(brings_port()) << "another layout";
    leave();
    end_.what = before;
    for (control_kind answered : {control_kind::accept_slots, control_kind::decline}) {
        EXPECT_FALSE(brings_port());
        answer(answered, number());
        leave();
        EXPECT_TRUE(brings_port()) << "that one was not pulled";
        is_pulled();
    }
    EXPECT_FALSE(brings_port());
    leave();
}

TEST_F(direct_messages_with_early_send, what_cannot_be_pulled_brings_a_port) {
    end_.bytes = 4096;
    ats(UCS_OK, end_.bytes, begin().id());
    end_.message->leave();
    begin();
    EXPECT_EQ(sent.front().early.offer.channels, 0u);
    end_.message->leave();
    with_setting none("UCX_CUDA_NC_PULL_MAX", "1024");
    begin();
    EXPECT_EQ(sent.front().early.source.allocation, 0u);
    EXPECT_NE(sent.front().early.offer.channels, 0u);
    end_.message->leave();
}

// UCP's own RTS meets the error.
TEST_F(direct_messages_with_early_send, an_rts_that_the_carrier_refuses_is_ucps) {
    const size_t sides = ports_lent();
    carrier_error = UCS_ERR_CONNECTION_RESET;
    EXPECT_EQ(rts_of(nullptr), leaving::now);
    carrier_error = UCS_OK;
    EXPECT_EQ(end_.message, nullptr);
    EXPECT_EQ(ports_lent(), sides);
    EXPECT_TRUE(sent.empty());
}

TEST_F(direct_messages_with_early_send, a_message_is_complete_when_it_has_been_pulled) {
    const uint64_t by_pull = counters::all().sent_by_pull;
    const size_t sides = ports_lent();
    send_message &one = begin();
    answer(control_kind::pulled, one.id());
    EXPECT_EQ(one.now(), send_message::state::offered) << "nobody pulls";
    EXPECT_FALSE(one.wants_fin());
    answer(control_kind::accept_pull, one.id());
    EXPECT_EQ(one.now(), send_message::state::moving);
    EXPECT_EQ(one.receiver(), 33u);
    EXPECT_EQ(ports_lent(), sides) << "it needs none";
    EXPECT_TRUE(one.wants_fin());
    one.fin_sent();
    EXPECT_FALSE(one.wants_fin());
    EXPECT_EQ(one.progress(), 0u);
    EXPECT_EQ(one.now(), send_message::state::moving);
    answer(control_kind::pulled, one.id());
    EXPECT_EQ(one.now(), send_message::state::complete);
    one.all_claimed();
    EXPECT_EQ(counters::all().sent_by_pull, by_pull + 1);
    end_.message->leave();
    EXPECT_EQ(sent.size(), 1u) << "nothing to cancel or withdraw";
    EXPECT_TRUE(end_.launched.empty() && end_.unpacked.empty());
}

TEST_F(direct_messages_with_early_send, a_message_is_complete_when_ats_comes) {
    const uint64_t by_pull = counters::all().sent_by_pull, early = counters::all().early;
    const size_t sides = ports_lent();
    send_message &one = begin();
    ats(UCS_OK, total, one.id());
    EXPECT_EQ(one.now(), send_message::state::complete);
    EXPECT_EQ(counters::all().sent_by_pull, by_pull + 1);
    EXPECT_EQ(counters::all().early, early + 1);
    EXPECT_EQ(ep_.known_receivers, receivers_known::yes);
    EXPECT_EQ(ports_lent(), sides);
    ats(UCS_OK, total, one.id());
    EXPECT_EQ(counters::all().sent_by_pull, by_pull + 1) << "it ends once";
    EXPECT_EQ(end_.reads, 1);
    answer(control_kind::accept_pull, one.id());
    EXPECT_EQ(one.now(), send_message::state::complete);
    end_.message->leave();  // as UCP's handler of ATS does
    EXPECT_EQ(said_since_offer(control_kind::withdraw), 0);
    EXPECT_EQ(ports_lent(), sides);
}

// UCP's own ATS: the receive was too short, or has failed, or nobody wants the bytes.
TEST_F(direct_messages_with_early_send, an_offer_whose_send_ends_otherwise_is_withdrawn) {
    const uint64_t by_pull = counters::all().sent_by_pull;
    const struct {
        ucs_status_t status;
        uint64_t bytes;
        uint64_t to;  // our message's number, from there on
        size_t length;
    } all[] = {{UCS_ERR_CANCELED, total, 0, sizeof(end_of_pull)},
               {UCS_ERR_CANCELED, total, 0, failure_length},
               {UCS_OK, total, 0, sizeof(acknowledgement)},
               {UCS_OK, total, 1, sizeof(end_of_pull)},
               {UCS_OK, total - 1, 0, sizeof(end_of_pull)},
               {UCS_OK, 0, 0, sizeof(end_of_pull)},
               {UCS_OK, total, 0, 0}};
    for (const auto &ending : all) {
        send_message &one = begin();
        ats(ending.status, ending.bytes, one.id() + ending.to, ending.length);
        EXPECT_EQ(one.now(), send_message::state::offered);
        end_.message->leave();
        EXPECT_EQ(said_since_offer(control_kind::withdraw), 1);
        EXPECT_EQ(sent.back().offset, reinterpret_cast<uint64_t>(request_));
    }
    EXPECT_EQ(counters::all().sent_by_pull, by_pull);
}

// The user's memory stays until UCP has ended the send: by the ATS that comes over the receiver's
// endpoint.
TEST_F(direct_messages_with_early_send, an_offer_outlives_its_endpoint) {
    const uint64_t id = begin().id();
    messages_->endpoint_closed(ep_);
    EXPECT_EQ(end_.message, nullptr);
    EXPECT_EQ(said_since_offer(control_kind::withdraw), 0);
    ats(UCS_OK, total, id);
    EXPECT_EQ(end_.message, nullptr);
}

TEST_F(direct_messages_with_early_send, nobody_but_its_peer_answers_an_offer) {
    send_message &one = begin();
    author_ = identity + 1;
    for (control_kind kind :
         {control_kind::accept_slots, control_kind::accept_network, control_kind::accept_pipe,
          control_kind::accept_pull, control_kind::decline, control_kind::stop}) {
        say(kind, one.id());
        EXPECT_EQ(one.now(), send_message::state::offered);
    }
    end_.message->leave();
}

TEST_F(direct_messages_with_early_send, a_pull_that_is_stopped_or_left_is_cancelled) {
    for (bool left : {false, true}) {
        send_message &one = begin();
        const uint64_t id = one.id();
        answer(control_kind::accept_pull, id);
        one.fin_sent();
        if (left) {
            end_.message->leave();
        } else {
            answer(control_kind::stop, id);
            answer(control_kind::pulled, id);
            EXPECT_EQ(one.now(), send_message::state::declined);
            EXPECT_FALSE(one.wants_fin());
            end_.message->leave();
        }
        ASSERT_EQ(sent.size(), 2u);
        EXPECT_EQ(sent.back().kind, control_kind::cancel);
        EXPECT_EQ(sent.back().to, 33u);
    }
}

TEST_F(direct_messages_with_early_send, a_pull_that_comes_too_late_is_cancelled) {
    send_message &one = begin();
    one.give_up();
    answer(control_kind::accept_pull, one.id());
    EXPECT_EQ(one.now(), send_message::state::declined);
    ASSERT_EQ(sent.size(), 2u);
    EXPECT_EQ(sent.back().kind, control_kind::cancel);
    EXPECT_EQ(sent.back().to, 33u);
    end_.message->leave();
}

// With UCP, which asks for the message's bytes through the endpoint's table.
class direct_messages_asked_for_data : public direct_messages_with_early_send {
  protected:
    void SetUp() override {
        direct_messages_with_early_send::SetUp();
        set_endpoint_ops(iface_.super.super.ops);
        ep_.super.iface = &iface_.super.super;
        carrier_.ops.ep_am_bcopy = [](abi::uct_ep *ep, uint8_t id, abi::uct_pack_callback write,
                                      void *arg, unsigned flags) {
            char message[8192];
            return id == rndv_data_id ? static_cast<ssize_t>(write(message, arg))
                                      : carrier_am_bcopy(ep, id, write, arg, flags);
        };
    }
    // As the datatype packs; `answer_` is what it was told.
    static size_t pack(void *destination, void *record) {
        auto &test = **static_cast<direct_messages_asked_for_data **>(record);
        std::memset(destination, 0, sizeof(rndv_header));
        size_t length = 4096;
        pack_call *call = pack_call::current();
        test.answer_ = call != nullptr ? call->ask(test.end_, 0, &length) : pack_answer::fragment;
        return sizeof(rndv_header) + (test.answer_ == pack_answer::fin ? total : length);
    }
    __attribute__((no_sanitize("address"))) ssize_t ask_for_data(endpoint &on) {
        iface_.messages = std::move(messages_);
        auto *on_stack = this;  // as UCP's record
        auto **record = old_protocols_ ? in_request_.get() : &on_stack;
        ssize_t sent = on.super.iface->ops.ep_am_bcopy(&on.super, rndv_data_id, pack, record, 0);
        messages_ = std::move(iface_.messages);
        return sent;
    }
    // A pulled message, whose receiver has the end.
    uint64_t begin_pull() {
        const uint64_t id = begin().id();
        answer(control_kind::accept_pull, id);
        EXPECT_EQ(ask_for_data(ep_), UCS_ERR_NO_RESOURCE);
        EXPECT_TRUE(static_cast<send_message *>(end_.message)->fin_is_sent());
        return id;
    }
    void expect_ends_by_pull(uint64_t id, endpoint &on) {
        EXPECT_EQ(ask_for_data(on), UCS_ERR_NO_RESOURCE);
        EXPECT_EQ(answer_, pack_answer::wait);
        answer(control_kind::pulled, id);
        EXPECT_EQ(ask_for_data(on), static_cast<ssize_t>(sizeof(rndv_header) + total));
        EXPECT_EQ(answer_, pack_answer::fin);
        if (end_.message != nullptr) {
            end_.message->leave();
        }
        EXPECT_EQ(sent.size(), 1u) << "nothing to cancel";
    }

    pack_answer answer_ = pack_answer::fragment;
    bool old_protocols_ = false;
    // As UCP's requests: not on the stack.
    std::unique_ptr<direct_messages_asked_for_data *> in_request_ =
        std::make_unique<direct_messages_asked_for_data *>(this);
};

// They would take what FIN claims for more than the carrier takes at once.
TEST_F(direct_messages_asked_for_data, nothing_is_offered_by_ucps_old_protocols) {
    ep_.may_go_direct = true;
    for (bool old : {true, false}) {
        old_protocols_ = old;
        const ssize_t sent = ask_for_data(ep_);
        EXPECT_EQ(answer_, old ? pack_answer::fragment : pack_answer::wait);
        EXPECT_EQ(sent, old ? static_cast<ssize_t>(sizeof(rndv_header) + 4096)
                            : static_cast<ssize_t>(UCS_ERR_NO_RESOURCE));
        EXPECT_EQ(end_.message == nullptr, old);
    }
    end_.message->leave();
}

TEST_F(direct_messages_asked_for_data,
       a_pulled_message_ends_as_it_began_where_no_more_are_offered) {
    const uint64_t id = begin_pull();
    ep_.may_go_direct = false;
    expect_ends_by_pull(id, ep_);
}

TEST_F(direct_messages_asked_for_data, a_pulled_message_ends_as_it_began_over_another_ucp_lane) {
    const uint64_t id = begin_pull();
    endpoint other = ep_;
    expect_ends_by_pull(id, other);
}

TEST_P(direct_messages_with_source,
       a_message_by_pipe_or_slots_is_not_complete_when_pulled_is_said) {
    const unsigned limit = channel_limit(0);
    ASSERT_TRUE(acquire_channels(0, gpu::direction::pack, limit));  // it stays under way
    for (bool by_pipe : {false, true}) {
        send_message one(messages_->services(), ep_, end_, 9);
        one.offer().bring_port();
        one.offered(0);
        control answer = {};
        answer.slot = 1;
        answer.process = lent_.process;
        answer.handle = lent_.handle;
        answer.length = 4096;
        if (by_pipe) {
            answer.pipe = {2,     4096,  2,           0, one.offer().content().sequence,
                           total, total, lent_.handle};
        }
        answer.kind = by_pipe ? control_kind::accept_pipe : control_kind::accept_slots;
        EXPECT_TRUE(one.handle_answer(answer));
        ASSERT_EQ(one.now(), send_message::state::moving);
        control pulled = {};
        pulled.kind = control_kind::pulled;
        one.handle(pulled);
        EXPECT_EQ(one.now(), send_message::state::moving);
        answer.kind = control_kind::accept_pull;
        EXPECT_FALSE(one.handle_answer(answer));
        EXPECT_FALSE(one.wants_fin());
    }
    say(control_kind::ended, 9);
    release_channels(0, gpu::direction::pack, limit);
}

}  // namespace
}  // namespace cuda_nc::uct
