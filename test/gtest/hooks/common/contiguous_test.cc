// Which contiguous messages are ours, inside a real UCX.
#include "hooks/common/contiguous.hpp"

#include <vector>

#include "cuda_nc/cuda_nc.h"
#include "ucp/dt/settings_guard.hpp"
#include "ucp/dt/ucx_pair.hpp"
#include "ucs/backend/sim/options.hpp"

namespace cuda_nc::test {
namespace {

ucp_request_param_t of_datatype(ucp_datatype_t type) {
    ucp_request_param_t made = {};
    made.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE;
    made.datatype = type;
    return made;
}

TEST(contiguous_bytes_test, datatypes) {
    const ucp_request_param_t none = {};
    EXPECT_EQ(hooks::contiguous_bytes(none, 100), 100u);
    EXPECT_EQ(hooks::contiguous_bytes(of_datatype(ucp_dt_make_contig(8)), 100), 800u);
    EXPECT_EQ(hooks::contiguous_bytes(of_datatype(ucp_dt_make_iov()), 100), 0u);
    EXPECT_EQ(hooks::contiguous_bytes(of_datatype(UCP_DATATYPE_GENERIC), 100), 0u);
    EXPECT_EQ(hooks::contiguous_bytes(of_datatype(UCP_DATATYPE_STRIDED), 100), 0u);
}

TEST(contiguous_bytes_test, only_long_messages_are_looked_at) {
    const ucp_request_param_t none = {};
    const uint64_t before = uct::least_contiguous;
    uct::least_contiguous = uct::contiguous_length;
    EXPECT_FALSE(hooks::is_long_contiguous(none, uct::contiguous_length - 1));
    EXPECT_TRUE(hooks::is_long_contiguous(none, uct::contiguous_length));
    EXPECT_FALSE(hooks::is_long_contiguous(of_datatype(ucp_dt_make_iov()), 1 << 20));
    uct::least_contiguous = UINT64_MAX;  // no interface moves messages from GPU to GPU
    EXPECT_FALSE(hooks::is_long_contiguous(none, 1 << 30));
    uct::least_contiguous = before;
}

class contiguous_test : public ::testing::Test {
  protected:
    void SetUp() override {
        if (std::string(gpu::platform::instance().name()) != "sim") {
            GTEST_SKIP() << "asks for memory of the simulated GPU";
        }
        ASSERT_TRUE(pair_.ready());
    }
    void TearDown() override {
        for (void *one : memory_) {
            cuda_nc_sim_free(one);
        }
    }

    void *allocate() {
        memory_.push_back(cuda_nc_sim_malloc(100000));
        return memory_.back();
    }
    static const ucx_instance &this_ucx() { return *ucx_of(nullptr).ucx; }
    // So often that what was remembered of the address before is forgotten.
    static bool ask(const void *buffer) {
        bool answer = false;
        for (int i = 0; i < 1000; ++i) {
            answer = hooks::is_memory_for_us(this_ucx(), buffer);
        }
        return answer;
    }

    ucx_pair pair_{"posix,self"};
    std::vector<void *> memory_;
};

TEST_F(contiguous_test, memory_that_processes_share_is_ucx_own) {
    EXPECT_FALSE(ask(allocate()));
    const std::vector<char> on_host(100000);
    EXPECT_FALSE(ask(on_host.data()));
}

TEST_F(contiguous_test, memory_of_a_pool_is_ours) {
    settings_guard set({{"SIM_SHARED", "n"}});
    EXPECT_TRUE(ask(allocate()));
    EXPECT_TRUE(ask(static_cast<char *>(memory_.back()) + 99999));
}

TEST_F(contiguous_test, managed_memory_is_ours) {
    settings_guard set({{"SIM_SHARED", "managed"}});
    EXPECT_TRUE(ask(allocate()));
    EXPECT_TRUE(ask(static_cast<char *>(memory_.back()) + 99999));
}

TEST_F(contiguous_test, all_gpu_memory_is_ours_where_a_setting_says_so) {
    settings_guard set({{"CONTIGUOUS", "y"}});
    EXPECT_TRUE(ask(allocate()));
    const std::vector<char> on_host(100000);
    EXPECT_FALSE(ask(on_host.data()));
}

// What goes by our transport is tested with it: test/uct/test_contiguous.py.
TEST_F(contiguous_test, endpoints_without_our_transport_are_ucx_own) {
    settings_guard set({{"SIM_SHARED", "n"}});
    ASSERT_TRUE(ask(allocate()));
    EXPECT_FALSE(hooks::is_better_ours(this_ucx(), pair_.endpoint(0, 1), memory_.back()));
    ucx_pair alone("self");
    ASSERT_TRUE(alone.ready());
    EXPECT_FALSE(hooks::is_better_ours(this_ucx(), alone.endpoint(0, 0), memory_.back()));
}

TEST_F(contiguous_test, it_is_noticed_that_memory_has_become_another) {
    const void *buffer = allocate();
    EXPECT_FALSE(ask(buffer));
    gpu::sim::set_sharing(gpu::platform::instance(), buffer, gpu::sharing::none);
    EXPECT_TRUE(ask(buffer));
    gpu::sim::set_sharing(gpu::platform::instance(), buffer, gpu::sharing::by_handle);
    EXPECT_FALSE(ask(buffer));
}

}  // namespace
}  // namespace cuda_nc::test
