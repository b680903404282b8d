// Calls of two libraries, each with a UCX of its own.
#include "hooks/two_ucx.hpp"

#include <sys/mman.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "hooks/common/datatype_ops.hpp"
#include "hooks/common/request_cancel.hpp"
#include "hooks/common/sends.hpp"
#include "hooks/common/workers.hpp"
#include "plugin/preload/resolve.h"
#include "uct/cuda_nc/selection.hpp"

namespace cuda_nc::hooks {
namespace {

using namespace test;

const void *page(uintptr_t number) {
    return reinterpret_cast<const void *>(number << 12);
}

int live_in(const char *ucp) {
    return find_in_fake<int (*)()>(ucp, "fake_ucp_live")();
}

uint64_t create_in(const char *user) {
    ucp_generic_dt_ops_t mine = {};
    mine.start_pack = reinterpret_cast<void *(*)(void *, const void *, size_t)>(
        const_cast<void *>(code_of(user)));
    uint64_t handle = 0;
    EXPECT_EQ(create_generic(&mine, nullptr, &handle, nullptr), UCS_OK);
    return handle;
}

TEST(two_ucx, a_datatype_is_created_and_destroyed_by_the_ucx_of_its_operations) {
    in_own_process([] {
        const uint64_t first = create_in(first_user), second = create_in(second_user);
        EXPECT_EQ(live_in(first_ucp), 1);
        EXPECT_EQ(live_in(second_ucp), 1);
        destroy_datatype(second, code_of(first_user));
        EXPECT_EQ(live_in(first_ucp), 1);
        EXPECT_EQ(live_in(second_ucp), 0);
        destroy_datatype(first, code_of(second_user));
        EXPECT_EQ(live_in(first_ucp), 0);
    });
}

uint32_t sent_flags(const char *user, const char *ucp, uint64_t datatype) {
    ucp_request_param_t param = {};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE;
    param.datatype = datatype;
    char byte = 0;
    EXPECT_EQ(tag_send_nbx(nullptr, &byte, 1, 0, &param, user != nullptr ? code_of(user) : nullptr),
              nullptr);
    return find_in_fake<uint32_t (*)()>(ucp, "fake_ucp_sent_flags")();
}

TEST(two_ucx, flags_change_in_the_ucx_with_direct_messages_alone) {
    in_own_process([] {
        const uint64_t first = create_in(first_user), second = create_in(second_user);
        ++uct::direct_interfaces[ucx_of(code_of(first_user)).ucx->index];
        constexpr uint32_t unchanged = UCP_OP_ATTR_FIELD_DATATYPE;
        EXPECT_EQ(sent_flags(first_user, first_ucp, first), unchanged | UCP_OP_ATTR_FLAG_FAST_CMPL);
        EXPECT_EQ(sent_flags(second_user, second_ucp, second), unchanged);
        EXPECT_EQ(sent_flags(nullptr, first_ucp, first), unchanged) << "in doubt";
    });
}

TEST(two_ucx, a_list_becomes_a_datatype_of_the_ucx_that_sends_it) {
    in_own_process([] {
        const buffer memory(100, true);
        const ucp_dt_iov_t list[] = {{memory.address(), 8}, {memory.address() + 20, 8}};
        ucp_request_param_t param = {};
        param.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE;
        param.datatype = ucp_dt_make_iov();
        auto send = [&](const char *user) {
            tag_send_nbx(nullptr, list, 2, 0, &param, user != nullptr ? code_of(user) : nullptr);
        };
        load_fake(first_user);
        send(second_user);
        EXPECT_EQ(live_in(second_ucp), 1);
        EXPECT_EQ(live_in(first_ucp), 0);
        send(nullptr);
        EXPECT_EQ(live_in(first_ucp), 0) << "in doubt it passes unchanged";
        send(first_user);
        EXPECT_EQ(live_in(first_ucp), 1) << "the same list in another UCX";
        EXPECT_EQ(live_in(second_ucp), 1);
    });
}

// A function that ends with a call of UCP may leave by a jump: the call then seems to come from
// whoever called it, which uses the other UCX, or none.
class call_by_a_jump {
  public:
    call_by_a_jump() {
        for (const char *user : {first_user, second_user}) {
            find_in_fake<void (*)(void (*)(), int8_t)>(ucp_of(user), "fake_ucp_while_creating")(
                nullptr, UCS_OK);
            context *its = user == first_user ? &first : &second;
            void *worker = nullptr;  // the fake's is the context
            EXPECT_EQ(worker_create(its, nullptr, &worker, code_of(user)), UCS_OK);
            EXPECT_EQ(worker, its);
        }
    }

    static const char *ucp_of(const char *user) {
        return user == first_user ? first_ucp : second_ucp;
    }

    // UCP's endpoints begin with their worker.
    struct alignas(64) context {
        uint64_t some = 0;
    } first, second, unknown;
    struct endpoint {
        context *worker;
    } to_first = {&first}, to_second = {&second}, to_unknown = {&unknown};
};

// Whether a send is that UCX's.
bool sends_in(const char *ucp, call_by_a_jump::endpoint *ep, const void *caller) {
    static uint32_t mark = 0;
    ucp_request_param_t param = {};
    char byte = 0;
    param.op_attr_mask = UCP_OP_ATTR_FIELD_USER_DATA | ++mark << 20;
    tag_send_nbx(ep, &byte, 1, 0, &param, caller);
    return find_in_fake<uint32_t (*)()>(ucp, "fake_ucp_sent_flags")() == param.op_attr_mask;
}

TEST(two_ucx, a_message_goes_by_the_ucx_of_its_endpoint) {
    in_own_process([] {
        call_by_a_jump calls;
        for (const void *caller : {code_of(first_user), code_of(second_user), page(1)}) {
            for (int round = 0; round < 2; ++round) {
                EXPECT_TRUE(sends_in(first_ucp, &calls.to_first, caller));
                EXPECT_TRUE(sends_in(second_ucp, &calls.to_second, caller));
            }
        }
        EXPECT_TRUE(sends_in(second_ucp, &calls.to_unknown, code_of(second_user)));
        EXPECT_TRUE(sends_in(first_ucp, &calls.to_unknown, code_of(first_user)));
        EXPECT_TRUE(sends_in(first_ucp, nullptr, code_of(first_user)));
    });
}

// Its endpoints may not begin with their worker, or be no memory at all.
TEST(two_ucx, nothing_is_read_of_the_endpoints_of_a_release_that_is_not_known) {
    in_own_process([] {
        setenv("FAKE_UCP_MINOR", std::to_string(last_known_minor + 1).c_str(), 1);
        call_by_a_jump calls;
        const size_t page_bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
        void *closed = mmap(nullptr, page_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        ASSERT_NE(closed, MAP_FAILED);
        auto *ep = static_cast<call_by_a_jump::endpoint *>(closed);
        EXPECT_TRUE(sends_in(first_ucp, ep, code_of(first_user)));
        EXPECT_TRUE(sends_in(second_ucp, ep, code_of(second_user)));
        EXPECT_TRUE(sends_in(second_ucp, &calls.to_first, code_of(second_user)));
    });
}

// Later calls cost a few instructions.
TEST(two_ucx, a_caller_is_asked_once_where_there_is_one_ucx) {
    in_own_process([] {
        const void *code = code_of(first_user);
        call_site first;
        call_by_a_jump::context its;
        call_by_a_jump::endpoint ep = {&its};
        void *worker = nullptr;
        EXPECT_EQ(worker_create(&its, nullptr, &worker, nullptr), UCS_OK);
        EXPECT_EQ(known_ucp_of(first, code), nullptr);
        const void *other_code = static_cast<const char *>(code) + (1 << 20);  // nobody's
        EXPECT_TRUE(sends_in(first_ucp, &ep, other_code));
        EXPECT_TRUE(sends_in(first_ucp, &ep, code));
        EXPECT_NE(known_ucp_of(first, code), nullptr);
        code_of(second_user);
        EXPECT_TRUE(sends_in(second_ucp, nullptr, code_of(second_user)));
        EXPECT_EQ(known_ucp_of(first, code), nullptr) << "the endpoint decides";
    });
}

TEST(two_ucx, a_worker_at_the_address_of_another_one_is_the_ucx_that_made_it) {
    in_own_process([] {
        call_by_a_jump calls;
        void *worker = nullptr;
        EXPECT_EQ(worker_create(&calls.first, nullptr, &worker, code_of(second_user)), UCS_OK);
        EXPECT_TRUE(sends_in(second_ucp, &calls.to_first, code_of(first_user)));
    });
}

TEST(two_ucx, a_cancel_goes_to_the_ucx_of_its_worker) {
    in_own_process([] {
        call_by_a_jump calls;
        find_in_fake<void (*)(char)>(first_ucp, "fake_ucp_set_cancel")('m');  // does nothing
        void *request = find_in_fake<void *(*)(uint64_t, void *)>(
            second_ucp, "fake_ucp_post_contiguous")(0, nullptr);
        const auto status =
            find_in_fake<int8_t (*)(void *)>(second_ucp, "ucp_request_check_status");
        request_cancel(&calls.first, request, code_of(second_user));
        EXPECT_EQ(status(request), UCS_INPROGRESS);
        request_cancel(&calls.second, request, code_of(first_user));
        EXPECT_EQ(status(request), UCS_ERR_CANCELED);
        find_in_fake<void (*)(void *)>(second_ucp, "fake_ucp_release")(request);
    });
}

// What the shim keeps where it cannot be served.
TEST(two_ucx, the_shim_keeps_originals_in_place_of_guesses_that_no_longer_hold) {
    in_own_process([] {
        cuda_nc_originals_t originals = {"ucp_dt_destroy", "ucp_", "ucp_get_version", "libucp", {}};
        const void *code = code_of(first_user);
        void *const of_first = find_symbol(first_ucp, "ucp_dt_destroy");
        for (uintptr_t i = 1; i <= CUDA_NC_MAX_ORIGINALS; ++i) {  // nobody's code: guesses
            EXPECT_EQ(cuda_nc_find_original_of(&originals, page(i)), of_first);
        }
        for (uintptr_t i = 1; i <= CUDA_NC_MAX_ORIGINALS; ++i) {
            EXPECT_EQ(cuda_nc_find_kept_original(&originals, page(i)), of_first) << i;
        }
        EXPECT_EQ(cuda_nc_find_original_of(&originals, code), of_first);
        EXPECT_EQ(cuda_nc_find_kept_original(&originals, code), nullptr) << "no room";

        const void *other_code = code_of(second_user);  // loads more objects
        void *const of_second = find_symbol(second_ucp, "ucp_dt_destroy");
        EXPECT_EQ(cuda_nc_find_kept_original(&originals, page(1)), nullptr);
        for (int round = 0; round < 2; ++round) {
            EXPECT_EQ(cuda_nc_find_original_of(&originals, code), of_first);
            EXPECT_EQ(cuda_nc_find_original_of(&originals, other_code), of_second);
        }
        EXPECT_EQ(cuda_nc_find_kept_original(&originals, code), of_first);
        EXPECT_EQ(cuda_nc_find_kept_original(&originals, other_code), of_second);
        EXPECT_NE(cuda_nc_find_original_of(&originals, page(1)), nullptr);
        EXPECT_NE(cuda_nc_find_kept_original(&originals, page(1)), nullptr);
        load_fake("libwalk_original.so");
        EXPECT_EQ(cuda_nc_find_kept_original(&originals, page(1)), nullptr);
        EXPECT_EQ(cuda_nc_find_kept_original(&originals, code), of_first) << "certain";
    });
}

}  // namespace
}  // namespace cuda_nc::hooks
