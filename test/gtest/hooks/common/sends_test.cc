// Which way UCP is told to send a datatype, from its first message on.
#include "hooks/common/sends.hpp"

#include <gtest/gtest.h>

#include "hooks/fakes.hpp"
#include "hooks/common/datatype_ops.hpp"
#include "ucs/base/settings.hpp"
#include "uct/cuda_nc/selection.hpp"
#include "uct/cuda_nc/thread_context.hpp"

namespace cuda_nc::hooks {
namespace {

using test::buffer;
using test::datatype;
using test::find_in_fake;

constexpr const char *ucp_library = "libucp_fake.so";
constexpr uint32_t has_type = UCP_OP_ATTR_FIELD_DATATYPE, fast = UCP_OP_ATTR_FLAG_FAST_CMPL,
                   multi = UCP_OP_ATTR_FLAG_MULTI_SEND;
constexpr size_t element_size = 32, extent = 96;

// Of the fake UCX, the only one here.
std::atomic<unsigned> &direct_interfaces() {
    return uct::direct_interfaces[ucx_of(nullptr).ucx->index];
}

class tag_send : public testing::Test {
  protected:
    tag_send() {
        setenv("UCX_CUDA_NC_DIRECT_THRESH", "64", 1);
        reload_config_for_test();
        ++direct_interfaces();
    }
    ~tag_send() override {
        --direct_interfaces();
        unsetenv("UCX_CUDA_NC_DIRECT_THRESH");
        reload_config_for_test();
    }
    uint32_t sent(ucp_datatype_t handle, const void *address, size_t count, uint32_t given = 0) {
        ucp_request_param_t param = {};
        param.op_attr_mask = has_type | given;
        param.datatype = handle;
        EXPECT_EQ(tag_send_nbx(nullptr, address, count, 0, &param, nullptr), nullptr);
        return sent_flags();
    }
    // Of the last send.
    static uint32_t sent_flags() {
        return find_in_fake<uint32_t (*)()>(ucp_library, "fake_ucp_sent_flags")() & ~has_type;
    }
    static uint64_t enrol(const datatype &type) {
        const void *operations =
            find_in_fake<const void *(*)()>("libfake_open_mpi.so", "fake_operations")();
        uint64_t handle = 0;
        EXPECT_EQ(
            create_generic(operations, const_cast<fake_datatype_t *>(type.get()), &handle, nullptr),
            UCS_OK);
        return handle;
    }
    // The first message of a type, of `count` elements.
    uint32_t first_sent(const char *address, size_t count, uint32_t given = 0) {
        datatype type("vector", {{0, 8}, {24, 8}, {48, 8}, {72, 8}}, extent);
        const uint64_t handle = enrol(type);
        const uint32_t flags = sent(handle, address, count, given);
        EXPECT_EQ(sent(handle, address, count, given), flags) << "as the next";
        destroy_datatype(handle, nullptr);
        return flags;
    }
};

TEST_F(tag_send, from_a_gpu_short_messages_are_eager_and_others_are_not) {
    buffer memory(1000 * extent, true);
    for (uint32_t given : {0u, fast, multi}) {
        EXPECT_EQ(first_sent(memory.address(), 1, given), fast);
        EXPECT_EQ(first_sent(memory.address(), 2, given), given & ~fast);
        EXPECT_EQ(first_sent(memory.address(), 1000, given), given & ~fast);
    }
}

TEST_F(tag_send, unless_set_short_messages_are_eager_where_they_should_be_buffered) {
    buffer memory(1000 * extent, true);
    unsetenv("UCX_CUDA_NC_DIRECT_THRESH");
    reload_config_for_test();
    EXPECT_EQ(first_sent(memory.address(), 1, fast), fast);
    EXPECT_EQ(first_sent(memory.address(), 1000, fast), 0u);
    for (uint32_t given : {0u, multi}) {
        EXPECT_EQ(first_sent(memory.address(), 1, given), given);
        EXPECT_EQ(first_sent(memory.address(), 1000, given), given);
    }
}

TEST_F(tag_send, from_host_memory_messages_below_64_kib_are_eager) {
    buffer memory(2048 * extent, false);
    for (uint32_t given : {0u, fast, multi}) {
        EXPECT_EQ(first_sent(memory.address(), 1, given), fast);
        EXPECT_EQ(first_sent(memory.address(), 2047, given), fast);
        EXPECT_EQ(first_sent(memory.address(), 2048, given), given);
    }
}

TEST_F(tag_send, what_is_not_served_has_no_part_in_the_choice_for_what_is) {
    buffer memory(extent, true);
    ucp_generic_dt_ops_t mine = {};
    uint64_t handle = 0;
    ASSERT_EQ(create_generic(&mine, nullptr, &handle, nullptr), UCS_OK);
    EXPECT_EQ(sent(handle, memory.address(), 1), fast);
    destroy_datatype(handle, nullptr);
}

// A datatype goes past scopes of ours, contiguous host memory does not.
TEST_F(tag_send, may_be_left_by_a_thread_that_is_cancelled) {
    buffer memory(2 * extent, true);
    const datatype type("vector", {{0, 8}, {24, 8}, {48, 8}, {72, 8}}, extent);
    const uint64_t handle = enrol(type);
    test::expect_leavable([&] { sent(handle, memory.address(), 2); });
    destroy_datatype(handle, nullptr);
    EXPECT_FALSE(uct::datatype_send::is_current());
    EXPECT_EQ(first_sent(memory.address(), 1), fast);
    char byte = 0;
    sent(ucp_dt_make_contig(1), &byte, 1);
    test::expect_leavable([&] { sent(ucp_dt_make_contig(1), &byte, 1); });
}

TEST_F(tag_send, contiguous_memory_is_left_alone) {
    buffer memory(extent, true);
    for (uint32_t given : {0u, fast, multi}) {
        EXPECT_EQ(sent(ucp_dt_make_contig(1), memory.address(), 96, given), given);
    }
}

int8_t leads_to_another_process(void *, void *attributes) {
    auto &lanes = static_cast<ucp_ep_attr_t *>(attributes)->transports;
    lanes.entries[0].transport_name = "cuda_nc";
    lanes.entries[0].device_name = "memory";
    lanes.num_entries = 1;
    return UCS_OK;
}

// As where UCX reads contiguous GPU memory by our gets: a rendezvous however short.
class buffered_send : public tag_send {
  protected:
    buffered_send() {
        set_query_(leads_to_another_process);
        uct::most_buffered = 63;
    }
    ~buffered_send() override {
        uct::most_buffered = 0;
        set_query_(nullptr);
    }
    bool is_passed(const char *address, size_t bytes, uint32_t given) {
        EXPECT_EQ(sent(ucp_dt_make_contig(1), address, bytes, given) & multi, given & multi);
        return find_in_fake<uint64_t (*)()>(ucp_library, "fake_ucp_sent_datatype")() ==
               ucp_dt_make_contig(1);
    }

  private:
    using query = int8_t (*)(void *, void *);
    void (*const set_query_)(query) = find_in_fake<void (*)(query)>(ucp_library,
                                                                    "fake_ucp_set_ep_query");
};

TEST_F(buffered_send, of_few_contiguous_bytes_goes_eagerly_by_our_datatype) {
    buffer memory(extent, true);
    for (size_t bytes : {size_t(1), size_t(63)}) {
        EXPECT_FALSE(is_passed(memory.address(), bytes, fast));
        EXPECT_EQ(sent_flags(), fast);
    }
}

TEST_F(buffered_send, others_are_ucp_own) {
    buffer memory(extent, true), on_host(extent, false);
    EXPECT_TRUE(is_passed(memory.address(), 64, fast)) << "too long";
    EXPECT_TRUE(is_passed(memory.address(), 0, fast));
    EXPECT_TRUE(is_passed(memory.address(), 8, 0)) << "MPI_Isend";
    EXPECT_TRUE(is_passed(memory.address(), 8, multi));
    EXPECT_TRUE(is_passed(on_host.address(), 8, fast));
    ucp_request_param_t param = {};
    param.op_attr_mask = has_type | fast;
    param.datatype = ucp_dt_make_contig(1);
    for (int i = 0; i < 2; ++i) {
        if (i == 0) {
            tag_send_sync_nbx(nullptr, memory.address(), 8, 0, &param, nullptr);
        } else {
            am_send_nbx(nullptr, 0, nullptr, 0, memory.address(), 8, &param, nullptr);
        }
        EXPECT_EQ(find_in_fake<uint64_t (*)()>(ucp_library, "fake_ucp_sent_datatype")(),
                  param.datatype);
    }
}

TEST_F(buffered_send, of_an_mpi_that_does_not_say_so) {
    buffer memory(extent, true);
    {
        const buffered_send_scope no_send(false);
        EXPECT_TRUE(is_passed(memory.address(), 8, 0));
    }
    {
        const buffered_send_scope send(true);
        EXPECT_FALSE(is_passed(memory.address(), 8, 0));
        EXPECT_EQ(sent_flags(), fast);
        EXPECT_TRUE(is_passed(memory.address(), 64, 0));
    }
    EXPECT_TRUE(is_passed(memory.address(), 8, 0));
}

TEST_F(tag_send, synchronous_and_active_messages_are_sent_as_others_are) {
    buffer memory(1000 * extent, true);
    datatype type("vector", {{0, 8}, {24, 8}, {48, 8}, {72, 8}}, extent);
    const void *operations =
        find_in_fake<const void *(*)()>("libfake_open_mpi.so", "fake_operations")();
    ucp_request_param_t param = {};
    param.op_attr_mask = has_type;
    ASSERT_EQ(create_generic(operations, const_cast<fake_datatype_t *>(type.get()), &param.datatype,
                             nullptr),
              UCS_OK);
    for (const auto &[count, expected] : {std::pair<size_t, uint32_t>{1, fast}, {2, 0}}) {
        tag_send_sync_nbx(nullptr, memory.address(), count, 0, &param, nullptr);
        EXPECT_EQ(sent_flags(), expected);
        am_send_nbx(nullptr, 0, nullptr, 0, memory.address(), count, &param, nullptr);
        EXPECT_EQ(sent_flags(), expected);
    }
    destroy_datatype(param.datatype, nullptr);
}

// ---- lists

class sent_list : public tag_send {
  protected:
    ucp_request_param_t of_list(uint32_t more = 0, uint32_t flags = 0) {
        ucp_request_param_t param = {};
        param.op_attr_mask = has_type | more;
        param.datatype = ucp_dt_make_iov();
        param.flags = flags;
        return param;
    }
    static bool is_ours() {
        const auto sent = find_in_fake<uint64_t (*)()>(ucp_library, "fake_ucp_sent_datatype")();
        return (sent & UCP_DATATYPE_CLASS_MASK) == UCP_DATATYPE_GENERIC;
    }
    static uint32_t sent_am_flags() {
        return find_in_fake<uint32_t (*)()>(ucp_library, "fake_ucp_sent_am_flags")();
    }
    buffer on_gpu_{1000, true}, on_host_{1000, false};
    std::vector<ucp_dt_iov_t> list_ = {{on_gpu_.address(), 40}, {on_gpu_.address() + 100, 40}};
};

TEST_F(sent_list, on_a_gpu_is_a_datatype_and_a_rendezvous_from_the_threshold_on) {
    ucp_request_param_t param = of_list(fast);
    tag_send_nbx(nullptr, list_.data(), 2, 0, &param, nullptr);
    EXPECT_TRUE(is_ours());
    EXPECT_EQ(sent_flags(), 0u);
    list_[1].length = 20;
    tag_send_nbx(nullptr, list_.data(), 2, 0, &param, nullptr);
    EXPECT_TRUE(is_ours());
    EXPECT_EQ(sent_flags(), fast);
}

TEST_F(sent_list, without_direct_messages_flags_stay) {
    --direct_interfaces();
    const ucp_request_param_t param = of_list(multi);
    tag_send_sync_nbx(nullptr, list_.data(), 2, 0, &param, nullptr);
    EXPECT_TRUE(is_ours());
    EXPECT_EQ(sent_flags(), multi);
    ++direct_interfaces();
}

TEST_F(sent_list, in_host_memory_passes_unchanged) {
    const ucp_request_param_t param = of_list(multi);
    list_ = {{on_host_.address(), 40}, {on_host_.address() + 100, 40}};
    tag_send_nbx(nullptr, list_.data(), 2, 0, &param, nullptr);
    EXPECT_FALSE(is_ours());
    EXPECT_EQ(sent_flags(), multi);
}

TEST_F(sent_list, an_active_message_that_must_not_end_at_once_is_a_rendezvous) {
    constexpr uint32_t not_at_once = UCP_OP_ATTR_FLAG_NO_IMM_CMPL,
                       has_flags = UCP_OP_ATTR_FIELD_FLAGS;
    ucp_request_param_t param = of_list(not_at_once);
    am_send_nbx(nullptr, 0, nullptr, 0, list_.data(), 2, &param, nullptr);
    EXPECT_TRUE(is_ours());
    EXPECT_EQ(sent_flags(), has_flags);
    EXPECT_EQ(sent_am_flags(), UCP_AM_SEND_FLAG_RNDV);
    param = of_list(not_at_once | has_flags, UCP_AM_SEND_FLAG_REPLY);
    am_send_nbx(nullptr, 0, nullptr, 0, list_.data(), 2, &param, nullptr);
    EXPECT_EQ(sent_am_flags(), UCP_AM_SEND_FLAG_REPLY | UCP_AM_SEND_FLAG_RNDV);
    // UCX's own business, as without us
    param = of_list(not_at_once | has_flags, UCP_AM_SEND_FLAG_EAGER);
    am_send_nbx(nullptr, 0, nullptr, 0, list_.data(), 2, &param, nullptr);
    EXPECT_FALSE(is_ours());
    EXPECT_EQ(sent_flags(), not_at_once | has_flags);
}

TEST_F(tag_send, nothing_changes_where_no_interface_moves_messages_between_gpus) {
    buffer memory(2 * extent, true);
    --direct_interfaces();
    for (uint32_t given : {0u, fast, multi}) {
        EXPECT_EQ(first_sent(memory.address(), 2, given), given);
    }
    ++direct_interfaces();
}

TEST_F(sent_list, may_be_left_by_a_thread_that_is_cancelled) {
    ucp_request_param_t param = of_list();
    test::expect_leavable([&] { tag_send_nbx(nullptr, list_.data(), 2, 0, &param, nullptr); });
    EXPECT_FALSE(uct::datatype_send::is_current());
}

}  // namespace
}  // namespace cuda_nc::hooks
