// Sends that UCX aborts, inside a real UCX: their states end when UCX is through with them, and no
// others.
#include "hooks/common/endpoints.hpp"

#include <list>

#include "hooks/common/sends.hpp"
#include "ucp/dt/datatype.hpp"
#include "ucp/dt/followed_send.hpp"
#include "ucp/dt/oracle.hpp"
#include "ucp/dt/request_state.hpp"
#include "ucp/dt/staging.hpp"
#include "ucp/dt/ucx_pair.hpp"

namespace cuda_nc::test {
namespace {

using place = buffer::place;

class aborted_sends : public ::testing::TestWithParam<place> {
  protected:
    void SetUp() override {
        if (!is_there(GetParam())) {
            GTEST_SKIP() << "no such GPU, simulated or real";
        }
        ASSERT_TRUE(pair_.ready());
        made_ = make_type();
    }
    void TearDown() override {
        if (made_ != 0) {
            cuda_nc_dt_destroy(made_);
            EXPECT_EQ(dt::find_operations(made_), nullptr) << "a message keeps the type";
        }
        EXPECT_EQ(dt::followed_send::num_followed(), 0u);
        dt::release_unused();
        EXPECT_EQ(dt::device_staging::bytes_in_use(), 0u);
    }

    ucp_datatype_t make_type() {
        ucp_datatype_t made = 0;
        EXPECT_EQ(cuda_nc_dt_create(type_.blocks.data(), type_.blocks.size(), type_.extent, &made),
                  UCS_OK);
        return made;
    }

    // To the other worker.
    ucp_ep_h connect(ucp_err_handling_mode_t mode) {
        ucp_address_t *address = nullptr;
        size_t length = 0;
        void *ep = nullptr;
        ucp_ep_params_t params = {};
        EXPECT_EQ(ucp_worker_get_address(pair_.worker(1), &address, &length), UCS_OK);
        params.field_mask =
            UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
        params.address = address;
        params.err_mode = mode;
        EXPECT_EQ(hooks::ep_create(pair_.worker(0), &params, &ep, nullptr), UCS_OK);
        ucp_worker_release_address(pair_.worker(1), address);
        return static_cast<ucp_ep_h>(ep);
    }

    void *send(ucp_ep_h ep, const buffer &source, ucp_datatype_t datatype) {
        ucp_request_param_t param = {};
        param.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE;
        param.datatype = datatype;
        return hooks::tag_send_nbx(ep, source.base(), type_.count, ++tag_, &param, nullptr);
    }

    // The target has the source's bytes, and gaps as they were.
    static void expect_all_of(const buffer &source, buffer &target) {
        const bytes packed = source.packed();
        target.expect(0, packed.data(), packed.size());
        EXPECT_TRUE(target.is_as_expected());
    }

    static void *close(ucp_ep_h ep, uint32_t flags) {
        ucp_request_param_t param = {};
        param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
        param.flags = flags;
        return ucp_ep_close_nbx(ep, &param);
    }

    std::list<bytes> targets_;  // of receives that never end
    ucx_pair pair_{"posix,self,tcp"};
    random_engine random_{1};
    datatype type_ = uneven_words(3000);  // by rendezvous
    ucp_datatype_t made_ = 0;
    ucp_tag_t tag_ = 1;
};

// Before the endpoint is connected, and when the receiver knows of the messages.
TEST_P(aborted_sends, end_with_a_forced_close) {
    const buffer source(type_, GetParam(), random_);
    for (const int turns : {0, 1, 1000}) {
        ucp_ep_h ep = connect(UCP_ERR_HANDLING_MODE_PEER);
        std::vector<void *> requests;
        for (int i = 0; i < 10; ++i) {
            requests.push_back(send(ep, source, made_));
        }
        for (int i = 0; i < turns; ++i) {
            pair_.progress();
        }
        EXPECT_EQ(close(ep, UCP_EP_CLOSE_FLAG_FORCE), nullptr);
        for (void *one : requests) {
            ASSERT_TRUE(UCS_PTR_IS_PTR(one));
            EXPECT_EQ(pair_.wait(one), UCS_ERR_CANCELED);
        }
    }
}

// In every moment of a message that the receiver takes. What it waits for then it does not get.
TEST_P(aborted_sends, end_in_the_middle) {
    const buffer source(type_, GetParam(), random_);
    unsigned aborted = 0;
    for (int turns = 0; turns < 60; ++turns) {
        ucp_ep_h ep = connect(UCP_ERR_HANDLING_MODE_PEER);
        for (int i = 0; i < 200; ++i) {
            pair_.progress();  // it is connected
        }
        void *sent = send(ep, source, made_);
        bytes &target = targets_.emplace_back(source.packed().size());
        pair_.receive(1, target.data(), target.size(), ucp_dt_make_contig(1), tag_);
        for (int i = 0; i < turns; ++i) {
            ucp_worker_progress(pair_.worker(i % 2));
        }
        EXPECT_EQ(close(ep, UCP_EP_CLOSE_FLAG_FORCE), nullptr);
        const ucs_status_t status = pair_.wait(sent);
        EXPECT_TRUE(status == UCS_OK || status == UCS_ERR_CANCELED) << ucs_status_string(status);
        aborted += status == UCS_ERR_CANCELED ? 1 : 0;
    }
    EXPECT_GE(aborted, 2u);
}

// A close without force leaves the sends to UCX, which goes on with them.
TEST_P(aborted_sends, go_on_where_the_close_waits_for_them) {
    const buffer source(type_, GetParam(), random_);
    buffer target(type_, GetParam(), random_);
    ucp_ep_h ep = connect(UCP_ERR_HANDLING_MODE_PEER);
    void *sent = send(ep, source, made_);
    void *received = pair_.receive(1, target.base(), type_.count, made_, tag_);
    EXPECT_EQ(pair_.wait(sent), UCS_OK);
    EXPECT_EQ(pair_.wait(received), UCS_OK);
    EXPECT_EQ(pair_.wait(close(ep, 0)), UCS_OK);
    expect_all_of(source, target);
}

// One endpoint's close ends no send of another one.
TEST_P(aborted_sends, of_others_are_not_harmed) {
    const buffer source(type_, GetParam(), random_);
    buffer target(type_, GetParam(), random_);
    ucp_ep_h lost = connect(UCP_ERR_HANDLING_MODE_PEER);
    ucp_ep_h kept = connect(UCP_ERR_HANDLING_MODE_PEER);
    void *aborted = send(lost, source, made_);
    void *sent = send(kept, source, made_);
    const ucp_tag_t tag = tag_;
    EXPECT_EQ(close(lost, UCP_EP_CLOSE_FLAG_FORCE), nullptr);
    EXPECT_EQ(pair_.wait(aborted), UCS_ERR_CANCELED);
    void *received = pair_.receive(1, target.base(), type_.count, made_, tag);
    EXPECT_EQ(pair_.wait(received), UCS_OK);
    EXPECT_EQ(pair_.wait(sent), UCS_OK);
    EXPECT_EQ(close(kept, UCP_EP_CLOSE_FLAG_FORCE), nullptr);
    expect_all_of(source, target);
}

// The sends keep it until UCX is through with them, which is later than the close.
TEST_P(aborted_sends, keep_a_type_that_is_destroyed) {
    const buffer source(type_, GetParam(), random_);
    ucp_ep_h ep = connect(UCP_ERR_HANDLING_MODE_PEER);
    const ucp_datatype_t other = make_type();
    void *first = send(ep, source, other), *second = send(ep, source, other);
    cuda_nc_dt_destroy(other);
    EXPECT_NE(dt::find_operations(other), nullptr);
    EXPECT_EQ(close(ep, UCP_EP_CLOSE_FLAG_FORCE), nullptr);
    EXPECT_EQ(pair_.wait(first), UCS_ERR_CANCELED);
    EXPECT_EQ(pair_.wait(second), UCS_ERR_CANCELED);
    EXPECT_EQ(dt::find_operations(other), nullptr);
}

struct told {
    int times = 0;
    void *request = nullptr;
    ucs_status_t status = UCS_OK;
};

// The program's own callback is called as if nothing were between.
TEST_P(aborted_sends, tell_the_program) {
    const buffer source(type_, GetParam(), random_);
    buffer target(type_, GetParam(), random_);
    ucp_ep_h ep = connect(UCP_ERR_HANDLING_MODE_PEER);
    told good, aborted;
    ucp_request_param_t param = {};
    param.op_attr_mask =
        UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    param.datatype = made_;
    param.cb.send = [](void *request, ucs_status_t status, void *user_data) {
        auto *to = static_cast<told *>(user_data);
        *to = {to->times + 1, request, status};
    };
    auto send_to = [&](told *to) {
        param.user_data = to;
        return hooks::tag_send_nbx(ep, source.base(), type_.count, ++tag_, &param, nullptr);
    };
    void *sent = send_to(&good);
    ASSERT_TRUE(UCS_PTR_IS_PTR(sent));
    void *received = pair_.receive(1, target.base(), type_.count, made_, tag_);
    EXPECT_EQ(pair_.wait(received), UCS_OK);
    EXPECT_EQ(pair_.wait(sent), UCS_OK);
    EXPECT_EQ(good.times, 1);
    EXPECT_EQ(good.request, sent);
    EXPECT_EQ(good.status, UCS_OK);
    sent = send_to(&aborted);
    EXPECT_EQ(close(ep, UCP_EP_CLOSE_FLAG_FORCE), nullptr);
    EXPECT_EQ(pair_.wait(sent), UCS_ERR_CANCELED);
    EXPECT_EQ(aborted.times, 1);
    EXPECT_EQ(aborted.request, sent);
    EXPECT_EQ(aborted.status, UCS_ERR_CANCELED);
}

// A program may give its request back before it has ended, if it is not told.
TEST_P(aborted_sends, may_have_been_forgotten_by_the_program) {
    const buffer source(type_, GetParam(), random_);
    buffer target(type_, GetParam(), random_);
    ucp_ep_h ep = connect(UCP_ERR_HANDLING_MODE_PEER);
    void *sent = send(ep, source, made_);
    ASSERT_TRUE(UCS_PTR_IS_PTR(sent));
    ucp_request_free(sent);
    void *received = pair_.receive(1, target.base(), type_.count, made_, tag_);
    EXPECT_EQ(pair_.wait(received), UCS_OK);
    for (int i = 0; i < 1000; ++i) {
        pair_.progress();
    }
    EXPECT_EQ(close(ep, UCP_EP_CLOSE_FLAG_FORCE), nullptr);
    expect_all_of(source, target);
}

TEST_P(aborted_sends, are_none_where_an_endpoint_cannot_be_closed_by_force) {
    const buffer source(type_, GetParam(), random_);
    buffer target(type_, GetParam(), random_);
    ucp_ep_h ep = connect(UCP_ERR_HANDLING_MODE_NONE);
    void *sent = send(ep, source, made_);
    EXPECT_EQ(UCS_PTR_STATUS(close(ep, UCP_EP_CLOSE_FLAG_FORCE)), UCS_ERR_INVALID_PARAM);
    void *received = pair_.receive(1, target.base(), type_.count, made_, tag_);
    EXPECT_EQ(pair_.wait(received), UCS_OK);
    EXPECT_EQ(pair_.wait(sent), UCS_OK);
    EXPECT_EQ(pair_.wait(close(ep, 0)), UCS_OK);
}

INSTANTIATE_TEST_SUITE_P(all, aborted_sends, testing::Values(place::host, place::device0),
                         [](const auto &one) { return name_of(one.param); });

}  // namespace
}  // namespace cuda_nc::test
