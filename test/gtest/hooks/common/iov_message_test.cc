// Lists of buffers through the hooks, inside a real UCX over its own transports.
#include "hooks/common/iov_message.hpp"

#include <unistd.h>

#include <fstream>
#include <optional>

#include "hooks/common/receives.hpp"
#include "hooks/common/request_cancel.hpp"
#include "hooks/common/workers.hpp"
#include "hooks/common/sends.hpp"
#include "ucp/dt/oracle.hpp"
#include "ucp/dt/request_state.hpp"
#include "ucp/dt/settings_guard.hpp"
#include "ucp/dt/staging.hpp"
#include "ucp/dt/ucx_pair.hpp"

namespace cuda_nc::test {
namespace {

using hooks::iov_message;
using place = buffer::place;
using list = std::vector<ucp_dt_iov_t>;

const ucx_instance &this_ucx() {
    return *ucx_of(nullptr).ucx;
}

list list_of(const datatype &type, const buffer &memory) {
    list made;
    for (size_t i = 0; i < type.count; ++i) {
        for (const cuda_nc_block_t &one : type.blocks) {
            made.push_back({static_cast<char *>(memory.base()) +
                                static_cast<ptrdiff_t>(i) * type.extent + one.displacement,
                            one.length});
        }
    }
    return made;
}

ucp_request_param_t of_list(uint32_t more = 0) {
    ucp_request_param_t made = {};
    made.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE | more;
    made.datatype = ucp_dt_make_iov();
    return made;
}

// A second GPU where there is one.
place other_gpu() {
    return is_there(place::device1) ? place::device1 : place::device0;
}

size_t resident() {
    std::ifstream pages("/proc/self/statm");
    size_t all = 0, present = 0;
    pages >> all >> present;
    return present * static_cast<size_t>(getpagesize());
}

// One active message that has come.
struct arrival {
    void *data = nullptr;
    size_t length = 0;
    bool by_rendezvous = false;
    std::string header;
};

class iov_message_test : public ::testing::Test {
  protected:
    void SetUp() override {
        if (!is_there(place::device0)) {
            GTEST_SKIP() << "no GPU, simulated or real";
        }
        ASSERT_TRUE(pair_.ready());
        ucp_am_handler_param_t handler = {};
        handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                             UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
        handler.id = active_id;
        handler.flags = UCP_AM_FLAG_WHOLE_MSG | UCP_AM_FLAG_PERSISTENT_DATA;
        handler.cb = [](void *arg, const void *header, size_t header_length, void *data,
                        size_t length, const ucp_am_recv_param_t *param) {
            auto &test = *static_cast<iov_message_test *>(arg);
            test.arrived_.data = data;
            test.arrived_.length = length;
            test.arrived_.by_rendezvous = (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0;
            test.arrived_.header.assign(static_cast<const char *>(header), header_length);
            return test.rejects_ ? UCS_OK : UCS_INPROGRESS;
        };
        handler.arg = this;
        ASSERT_EQ(ucp_worker_set_am_recv_handler(pair_.worker(1), &handler), UCS_OK);
    }
    void TearDown() override {
        dt::release_unused();
        EXPECT_EQ(dt::device_staging::bytes_in_use(), 0u);
    }

    static constexpr unsigned active_id = 5;

    void *send(const list &from, const ucp_request_param_t &param) {
        return hooks::tag_send_nbx(pair_.endpoint(0, 1), from.data(), from.size(), ++tag_, &param,
                                   nullptr);
    }
    // Of the message that was sent last.
    void *receive(list &into, const ucp_request_param_t &param) {
        return hooks::tag_recv_nbx(pair_.worker(1), into.data(), into.size(), tag_, ~ucp_tag_t(0),
                                   &param, nullptr);
    }
    void *receive_active(list &into, const ucp_request_param_t &param) {
        return hooks::am_recv_data_nbx(pair_.worker(1), arrived_.data, into.data(), into.size(),
                                       &param, nullptr);
    }
    void await_active() {
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
        while (arrived_.header.empty()) {
            pair_.progress();
            ASSERT_LT(std::chrono::steady_clock::now(), end);
        }
    }

    // From one list to another by a call of UCP: t tag, s synchronous, m probed, e and r active
    // messages.
    void exchange(char call, const list &from, list into, size_t bytes) {
        ucp_request_param_t sending = of_list(), receiving = of_list();
        void *sent = nullptr, *received = nullptr;
        arrived_ = {};
        switch (call) {
            case 't':
                sent = send(from, sending);
                received = receive(into, receiving);
                break;
            case 's':
                sent = hooks::tag_send_sync_nbx(pair_.endpoint(0, 1), from.data(), from.size(),
                                                ++tag_, &sending, nullptr);
                received = receive(into, receiving);
                break;
            case 'm': {
                sent = send(from, sending);
                pair_.progress_until_unexpected(1, tag_);
                ucp_tag_recv_info_t info;
                ucp_tag_message_h message =
                    ucp_tag_probe_nb(pair_.worker(1), tag_, ~ucp_tag_t(0), 1, &info);
                EXPECT_EQ(info.length, bytes);
                received = hooks::tag_msg_recv_nbx(pair_.worker(1), into.data(), into.size(),
                                                   message, &receiving, nullptr);
                break;
            }
            default:
                sending.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
                sending.flags = call == 'r' ? UCP_AM_SEND_FLAG_RNDV : UCP_AM_SEND_FLAG_EAGER;
                sent = hooks::am_send_nbx(pair_.endpoint(0, 1), active_id, "head", 4, from.data(),
                                          from.size(), &sending, nullptr);
                await_active();
                EXPECT_EQ(arrived_.header, "head");
                EXPECT_EQ(arrived_.length, bytes);
                EXPECT_EQ(arrived_.by_rendezvous, call == 'r');
                received = receive_active(into, receiving);
        }
        EXPECT_EQ(pair_.wait(received), UCS_OK);
        EXPECT_EQ(pair_.wait(sent), UCS_OK);
    }

    ucx_pair pair_{"posix,self,tcp"};
    random_engine random_{1};
    ucp_tag_t tag_ = 1;
    arrival arrived_;
    bool rejects_ = false;
};

TEST_F(iov_message_test, random_lists_arrive_by_every_call) {
    const unsigned seed = std::random_device()();
    random_.seed(seed);
    SCOPED_TRACE("seed " + std::to_string(seed));
    const place places[] = {place::device0, other_gpu(), place::host};
    const size_t sizes[] = {1, 100, 3000, 9000, 60000, 300000};
    for (int i = 0; i < 120; ++i) {
        const size_t size = sizes[random_() % 6];
        datatype of_source = random_datatype(random_, size), of_target = of_source;
        if (random_() % 2 == 0) {  // of a list more than the message has
            of_target = random_datatype(random_, of_source.element_size() * of_source.count);
        }
        const buffer source(of_source, places[random_() % 3], random_);
        buffer target(of_target, places[random_() % 3], random_);
        if (source.packed_size() > target.packed_size()) {
            continue;
        }
        exchange("tsmer"[i % 5], list_of(of_source, source), list_of(of_target, target),
                 source.packed_size());
        const bytes packed = source.packed();
        target.expect(0, packed.data(), packed.size());
        ASSERT_TRUE(target.is_as_expected()) << "message " << i;
    }
}

// ---- what is served

class served_test : public iov_message_test {
  protected:
    void SetUp() override {
        iov_message_test::SetUp();
        if (!IsSkipped()) {
            on_gpu_.emplace(type_, place::device0, random_);
            list_ = list_of(type_, *on_gpu_);
        }
    }

    bool is_served(const list &what, const ucp_request_param_t &param = of_list(),
                   iov_message::use how = iov_message::use::send,
                   const ucx_instance &ucx = this_ucx()) {
        return iov_message(ucx, what.data(), what.size(), param, how).is_served();
    }
    datatype type_ = strided_words(24, 100);
    std::optional<buffer> on_gpu_;
    list list_;
};

TEST_F(served_test, lists_on_one_gpu_and_no_others) {
    EXPECT_TRUE(is_served(list_));
    EXPECT_TRUE(is_served(list_, of_list(), iov_message::use::receive));
    EXPECT_FALSE(is_served(list_of(type_, buffer(type_, place::host, random_))));
    EXPECT_FALSE(is_served({}));
    EXPECT_FALSE(is_served({{on_gpu_->base(), 0}, {on_gpu_->base(), 0}}));
    for (const place elsewhere : {place::host, place::device1}) {
        if (!is_there(elsewhere)) {
            continue;
        }
        const buffer other(type_, elsewhere, random_);
        list mixed = list_;
        mixed.push_back({other.base(), 0});
        EXPECT_TRUE(is_served(mixed)) << "no byte of it lies elsewhere";
        mixed.push_back({other.base(), 8});
        EXPECT_FALSE(is_served(mixed));
    }
}

TEST_F(served_test, a_byte_may_be_sent_twice_but_not_received_twice) {
    list twice = list_;
    twice.push_back(twice[7]);
    EXPECT_TRUE(is_served(twice));
    EXPECT_FALSE(is_served(twice, of_list(), iov_message::use::receive));
}

TEST_F(served_test, not_where_settings_or_the_release_forbid_it) {
    ucx_instance older = this_ucx();
    older.minor = 18;
    EXPECT_FALSE(is_served(list_, of_list(), iov_message::use::send, older));
    EXPECT_FALSE(is_served(list_, of_list(1u << 12))) << "a field that we do not know";
    const settings_guard guard({{"IOV", "n"}});
    EXPECT_FALSE(is_served(list_));
}

TEST_F(served_test, ucp_is_not_told_of_the_memory) {
    ucp_request_param_t given = of_list(UCP_OP_ATTR_FIELD_MEMORY_TYPE | UCP_OP_ATTR_FIELD_MEMH |
                                        UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FLAG_NO_IMM_CMPL);
    given.memory_type = UCS_MEMORY_TYPE_CUDA;
    given.user_data = this;
    const iov_message message(this_ucx(), list_.data(), list_.size(), given,
                              iov_message::use::send);
    ASSERT_TRUE(message.is_served());
    EXPECT_EQ(message.param().op_attr_mask, UCP_OP_ATTR_FIELD_DATATYPE |
                                                UCP_OP_ATTR_FIELD_USER_DATA |
                                                UCP_OP_ATTR_FLAG_NO_IMM_CMPL);
    EXPECT_EQ(message.param().user_data, this);
    EXPECT_EQ(message.param().datatype & UCP_DATATYPE_CLASS_MASK, UCP_DATATYPE_GENERIC);
    given.memory_type = UCS_MEMORY_TYPE_HOST;
    EXPECT_FALSE(is_served(list_, given)) << "the caller knows better";
}

// ---- how requests end

TEST_F(iov_message_test, the_callers_request_callback_and_data_are_used) {
    const datatype type = strided_words(24, 3000);
    const buffer source(type, place::device0, random_);
    buffer target(type, other_gpu(), random_);
    list from = list_of(type, source), into = list_of(type, target);
    ucp_context_attr_t attributes = {};
    attributes.field_mask = UCP_ATTR_FIELD_REQUEST_SIZE;
    ASSERT_EQ(ucp_context_query(pair_.context(), &attributes), UCS_OK);
    std::vector<char> own(attributes.request_size + 64);
    ucp_tag_recv_info_t got = {};
    ucp_request_param_t receiving =
        of_list(UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                UCP_OP_ATTR_FIELD_REQUEST | UCP_OP_ATTR_FLAG_NO_IMM_CMPL);
    receiving.request = own.data() + attributes.request_size;
    receiving.user_data = &got;
    receiving.cb.recv = [](void *, ucs_status_t status, const ucp_tag_recv_info_t *info,
                           void *user_data) {
        EXPECT_EQ(status, UCS_OK);
        *static_cast<ucp_tag_recv_info_t *>(user_data) = *info;
    };
    void *sent = send(from, of_list(UCP_OP_ATTR_FLAG_NO_IMM_CMPL));
    ASSERT_TRUE(UCS_PTR_IS_PTR(sent));
    EXPECT_EQ(receive(into, receiving), receiving.request);
    EXPECT_EQ(pair_.wait(sent), UCS_OK);
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (got.length == 0 && std::chrono::steady_clock::now() < end) {
        pair_.progress();
    }
    EXPECT_EQ(got.length, source.packed_size());
    EXPECT_EQ(got.sender_tag, tag_);
    const bytes packed = source.packed();
    target.expect(0, packed.data(), packed.size());
    EXPECT_TRUE(target.is_as_expected());
}

TEST_F(iov_message_test, a_receive_that_ends_at_once_tells_what_it_got) {
    const datatype type = strided_words(24, 10);
    const buffer source(type, place::device0, random_);
    buffer target(type, other_gpu(), random_);
    list into = list_of(type, target);
    void *sent = send(list_of(type, source), of_list());
    pair_.progress_until_unexpected(1, tag_);
    ucp_tag_recv_info_t got = {};
    ucp_request_param_t receiving = of_list(UCP_OP_ATTR_FIELD_RECV_INFO);
    receiving.recv_info.tag_info = &got;
    EXPECT_EQ(receive(into, receiving), nullptr);
    EXPECT_EQ(got.length, 80u);
    EXPECT_EQ(pair_.wait(sent), UCS_OK);
    const bytes packed = source.packed();
    target.expect(0, packed.data(), packed.size());
    EXPECT_TRUE(target.is_as_expected());
}

TEST_F(iov_message_test, what_cannot_end_at_once_as_it_must_has_no_resource) {
    const datatype type = strided_words(24, 10);
    const buffer source(type, place::device0, random_);
    buffer target(type, other_gpu(), random_);
    list into = list_of(type, target);
    for (int i = 0; i < 100; ++i) {
        EXPECT_EQ(
            UCS_PTR_STATUS(send(list_of(type, source), of_list(UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL))),
            UCS_ERR_NO_RESOURCE);
        EXPECT_EQ(UCS_PTR_STATUS(receive(into, of_list(UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL))),
                  UCS_ERR_NO_RESOURCE);
    }
    EXPECT_TRUE(target.is_as_expected());
}

TEST_F(iov_message_test, a_message_that_is_too_long_is_truncated) {
    for (size_t count : {size_t(20), size_t(2000), size_t(100000)}) {
        const datatype of_source = strided_words(24, count),
                       of_target = strided_words(16, count / 2);
        const buffer source(of_source, place::device0, random_);
        const buffer target(of_target, other_gpu(), random_);
        list into = list_of(of_target, target);
        void *sent = send(list_of(of_source, source), of_list());
        EXPECT_EQ(pair_.wait(receive(into, of_list())), UCS_ERR_MESSAGE_TRUNCATED);
        EXPECT_EQ(pair_.wait(sent), UCS_OK);
    }
}

TEST_F(iov_message_test, an_active_message_that_nobody_wants_ends) {
    const datatype type = strided_words(24, 20000);
    const buffer source(type, place::device0, random_);
    const list from = list_of(type, source);
    rejects_ = true;
    ucp_request_param_t sending = of_list(UCP_OP_ATTR_FIELD_FLAGS);
    sending.flags = UCP_AM_SEND_FLAG_RNDV;
    for (int i = 0; i < 20; ++i) {
        EXPECT_EQ(pair_.wait(hooks::am_send_nbx(pair_.endpoint(0, 1), active_id, "x", 1,
                                                from.data(), from.size(), &sending, nullptr)),
                  UCS_OK);
    }
}

// UCX passes over the datatype of such a message.
TEST_F(iov_message_test, an_active_message_that_must_not_end_at_once_keeps_its_datatype) {
    const datatype type = strided_words(24, 40);
    const buffer source(type, place::device0, random_);
    buffer target(type, other_gpu(), random_);
    list from = list_of(type, source), into = list_of(type, target);
    const ucp_request_param_t sending = of_list(UCP_OP_ATTR_FLAG_NO_IMM_CMPL);
    void *sent = hooks::am_send_nbx(pair_.endpoint(0, 1), active_id, "x", 1, from.data(),
                                    from.size(), &sending, nullptr);
    ASSERT_TRUE(UCS_PTR_IS_PTR(sent));
    await_active();
    EXPECT_EQ(pair_.wait(receive_active(into, of_list(UCP_OP_ATTR_FLAG_NO_IMM_CMPL))), UCS_OK);
    EXPECT_EQ(pair_.wait(sent), UCS_OK);
    const bytes packed = source.packed();
    target.expect(0, packed.data(), packed.size());
    EXPECT_TRUE(target.is_as_expected());
}

TEST_F(iov_message_test, cancelled_receives_leave_no_memory) {
#ifdef __SANITIZE_ADDRESS__
    GTEST_SKIP() << "the address sanitizer keeps freed memory; it finds by itself what is lost";
#endif
    ucp_worker_params_t params = {};
    void *worker = nullptr;
    ASSERT_EQ(hooks::worker_create(pair_.context(), &params, &worker, nullptr), UCS_OK);
    ucp_worker_destroy(static_cast<ucp_worker_h>(worker));
    const datatype type = strided_words(24, 4000);
    const buffer target(type, place::device0, random_);
    const list whole = list_of(type, target);
    // More lists than are kept, so that each receive is the last to hold its own.
    auto post_and_cancel = [&](size_t times) {
        for (size_t i = 0; i < times; ++i) {
            list some(whole.begin() + static_cast<ptrdiff_t>(i % 2000),
                      whole.begin() + static_cast<ptrdiff_t>(i % 2000 + 5));
            ++tag_;
            void *request = receive(some, of_list());
            ASSERT_TRUE(UCS_PTR_IS_PTR(request));
            hooks::request_cancel(pair_.worker(1), request, nullptr);
            ASSERT_EQ(pair_.wait(request), UCS_ERR_CANCELED);
        }
    };
    post_and_cancel(2000);
    const size_t before = resident();
    post_and_cancel(10000);
    EXPECT_LT(resident(), before + (size_t{1} << 20));
    EXPECT_TRUE(target.is_as_expected());
}

// The list of each is given up long before its message comes.
TEST_F(iov_message_test, many_receives_wait) {
    constexpr size_t number = 1000;
    std::vector<datatype> types;
    std::vector<std::unique_ptr<buffer>> sources, targets;
    std::vector<void *> requests;
    for (size_t i = 0; i < number; ++i) {
        types.push_back(strided_words(24 + 8 * static_cast<ptrdiff_t>(i % 7), 1 + i % 40));
        sources.push_back(std::make_unique<buffer>(types[i], place::device0, random_));
        targets.push_back(std::make_unique<buffer>(types[i], place::device0, random_));
        list into = list_of(types[i], *targets[i]);
        ++tag_;
        requests.push_back(receive(into, of_list()));
    }
    tag_ -= number;
    for (size_t i = 0; i < number; ++i) {
        requests.push_back(send(list_of(types[i], *sources[i]), of_list()));
    }
    for (void *one : requests) {
        ASSERT_EQ(pair_.wait(one), UCS_OK);
    }
    for (size_t i = 0; i < number; ++i) {
        const bytes packed = sources[i]->packed();
        targets[i]->expect(0, packed.data(), packed.size());
        ASSERT_TRUE(targets[i]->is_as_expected()) << i;
    }
}

TEST_F(iov_message_test, a_list_may_have_100000_entries) {
    datatype type;
    for (size_t i = 0; i < 100000; ++i) {
        type.blocks.push_back({static_cast<ptrdiff_t>(i * 40 + i * i % 11), 1 + i % 20});
    }
    type.count = 1;
    const buffer source(type, place::device0, random_);
    buffer target(type, other_gpu(), random_);
    exchange('t', list_of(type, source), list_of(type, target), source.packed_size());
    const bytes packed = source.packed();
    target.expect(0, packed.data(), packed.size());
    EXPECT_TRUE(target.is_as_expected());
}

}  // namespace
}  // namespace cuda_nc::test
