// Receives that are cancelled, inside a real UCX: their states end, and no others.
#include <unistd.h>

#include <fstream>

#include "hooks/common/request_cancel.hpp"
#include "hooks/common/workers.hpp"
#include "ucp/dt/oracle.hpp"
#include "ucp/dt/request_state.hpp"
#include "ucp/dt/staging.hpp"
#include "ucp/dt/ucx_pair.hpp"

namespace cuda_nc::test {
namespace {

using place = buffer::place;

// Bytes of memory that this process has in use.
size_t resident() {
    std::ifstream pages("/proc/self/statm");
    size_t all = 0, present = 0;
    pages >> all >> present;
    return present * static_cast<size_t>(getpagesize());
}

class cancel_test : public ::testing::TestWithParam<place> {
  protected:
    void SetUp() override {
        if (!is_there(GetParam())) {
            GTEST_SKIP() << "no such GPU, simulated or real";
        }
        ASSERT_TRUE(pair_.ready());
        ucp_worker_params_t params = {};
        void *worker = nullptr;
        ASSERT_EQ(hooks::worker_create(pair_.context(), &params, &worker, nullptr), UCS_OK);
        ucp_worker_destroy(static_cast<ucp_worker_h>(worker));
        ASSERT_EQ(cuda_nc_dt_create(type_.blocks.data(), type_.blocks.size(), type_.extent, &made_),
                  UCS_OK);
    }
    void TearDown() override {
        if (made_ != 0) {
            cuda_nc_dt_destroy(made_);
        }
        dt::release_unused();
        EXPECT_EQ(dt::device_staging::bytes_in_use(), 0u);
    }

    void cancel(void *request) { hooks::request_cancel(pair_.worker(1), request, nullptr); }

    ucx_pair pair_{"posix,self,tcp"};
    random_engine random_{1};
    datatype type_ = uneven_words(2);
    ucp_datatype_t made_ = 0;
    ucp_tag_t tag_ = 1;
};

TEST_P(cancel_test, cancelled_receives_leave_no_memory) {
    buffer target(type_, GetParam(), random_);
    auto post_and_cancel = [&](int times) {
        for (int i = 0; i < times; ++i) {
            void *request = pair_.receive(1, target.base(), type_.count, made_, tag_);
            ASSERT_TRUE(UCS_PTR_IS_PTR(request));
            cancel(request);
            ASSERT_EQ(pair_.wait(request), UCS_ERR_CANCELED);
        }
    };
    post_and_cancel(1000);
    const size_t before = resident();
    post_and_cancel(20000);
    EXPECT_LT(resident(), before + (size_t{1} << 20));  // 50 bytes each
}

// Some are cancelled in time, some too late; all that end without an error have the right bytes.
TEST_P(cancel_test, a_receive_that_has_its_message_is_not_harmed) {
    buffer source(type_, GetParam(), random_);
    const bytes packed = source.packed();
    unsigned cancelled = 0;
    for (int i = 0; i < 300; ++i) {
        buffer target(type_, GetParam(), random_);
        const bool sent_first = i % 2 == 0;
        void *send = nullptr;
        if (sent_first) {
            send = pair_.send(0, 1, source.base(), type_.count, made_, ++tag_);
        } else {
            ++tag_;
        }
        void *receive = pair_.receive(1, target.base(), type_.count, made_, tag_);
        for (int turn = 0; turn < i % 7; ++turn) {
            pair_.progress();
        }
        if (UCS_PTR_IS_PTR(receive)) {
            cancel(receive);
        }
        const ucs_status_t status = pair_.wait(receive);
        if (status == UCS_ERR_CANCELED) {
            ++cancelled;
            bytes plain(packed.size());
            send = sent_first ? send : pair_.send(0, 1, source.base(), type_.count, made_, tag_);
            void *again = pair_.receive(1, plain.data(), plain.size(), ucp_dt_make_contig(1), tag_);
            EXPECT_EQ(pair_.wait(again), UCS_OK);
            EXPECT_EQ(plain, packed);
        } else {
            EXPECT_EQ(status, UCS_OK);
            target.expect(0, packed.data(), packed.size());
        }
        EXPECT_TRUE(target.is_as_expected());
        EXPECT_EQ(pair_.wait(send), UCS_OK);
    }
    EXPECT_GE(cancelled, 150u);
}

INSTANTIATE_TEST_SUITE_P(all, cancel_test, testing::Values(place::host, place::device0),
                         [](const auto &one) { return name_of(one.param); });

}  // namespace
}  // namespace cuda_nc::test
