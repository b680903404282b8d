// Which states are finished after a cancel, over a fake UCP.
#include "hooks/common/request_cancel.hpp"
#include "hooks/common/workers.hpp"

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <thread>

#include "hooks/common/datatype_ops.hpp"
#include "hooks/fakes.hpp"
#include "hooks/two_ucx.hpp"

namespace cuda_nc::hooks {
namespace {

using test::buffer;
using test::calls;
using test::datatype;
using test::find_in_fake;

constexpr const char *ucp_library = "libucp_fake.so";

class request_cancel : public testing::TestWithParam<bool> {
  protected:
    request_cancel() {
        void *worker = nullptr;
        EXPECT_EQ(worker_create(this, nullptr, &worker, nullptr), UCS_OK);
        EXPECT_EQ(worker, this);
        const void *operations =
            find_in_fake<const void *(*)()>("libfake_open_mpi.so", "fake_operations")();
        EXPECT_EQ(create_generic(operations, const_cast<fake_datatype_t *>(type_.get()), &handle_,
                                 nullptr),
                  UCS_OK);
        const auto &ops = *find_in_fake<const ucp_generic_dt_ops_t *(*)(uint64_t)>(
            ucp_library, "fake_ucp_operations")(handle_);
        void *context = find_in_fake<void *(*)(uint64_t)>(ucp_library, "fake_ucp_context")(handle_);
        finish_ = ops.finish;
        calls() = fake_calls_t();
        state_ = ops.start_unpack(context, memory_.address(), 1);
        set_cancel('c');
    }
    ~request_cancel() override {
        set_cancel('c');
        for (void *one : posted_) {
            find_in_fake<void (*)(void *)>(ucp_library, "fake_ucp_release")(one);
        }
        destroy_datatype(handle_, nullptr);
    }

    void set_cancel(char behaviour) {
        find_in_fake<void (*)(char)>(ucp_library, "fake_ucp_set_cancel")(behaviour);
    }
    void *post(uint64_t of, void *state) {
        posted_.push_back(
            find_in_fake<void *(*)(uint64_t, void *)>(ucp_library, "fake_ucp_post")(of, state));
        return posted_.back();
    }
    void complete(void *request, ucs_status_t status) {
        find_in_fake<void (*)(void *, int8_t)>(ucp_library, "fake_ucp_complete")(
            request, static_cast<int8_t>(status));
    }

    datatype type_{"vector", {{0, 8}, {24, 8}, {48, 8}}, 96};
    buffer memory_{96, GetParam()};
    uint64_t handle_ = 0;
    void *state_ = nullptr;
    void (*finish_)(void *) = nullptr;
    std::vector<void *> posted_;
};

TEST_P(request_cancel, finishes_the_state_once) {
    void *request = post(handle_, state_);
    hooks::request_cancel(nullptr, request, nullptr);
    EXPECT_EQ(calls().finishes, 1);
    hooks::request_cancel(nullptr, request, nullptr);  // complete by now
    EXPECT_EQ(calls().finishes, 1);
}

TEST_P(request_cancel, leaves_a_receive_alone_that_has_met_its_message) {
    set_cancel('m');
    hooks::request_cancel(nullptr, post(handle_, state_), nullptr);
    EXPECT_EQ(calls().finishes, 0);
    finish_(state_);
    EXPECT_EQ(calls().finishes, 1);
}

TEST_P(request_cancel, leaves_a_complete_receive_alone) {
    void *request = post(handle_, state_);
    finish_(state_);
    for (ucs_status_t status : {UCS_OK, UCS_ERR_CANCELED}) {
        complete(request, status);
        hooks::request_cancel(nullptr, request, nullptr);
        EXPECT_EQ(calls().finishes, 1);
    }
}

TEST_P(request_cancel, does_not_finish_what_ucp_finishes_itself) {
    set_cancel('f');
    hooks::request_cancel(nullptr, post(handle_, state_), nullptr);
    EXPECT_EQ(calls().finishes, 1);
}

TEST_P(request_cancel, finishes_nothing_where_the_request_is_another_one_by_then) {
    set_cancel('r');
    hooks::request_cancel(nullptr, post(handle_, state_), nullptr);
    EXPECT_EQ(calls().finishes, 0);
    finish_(state_);
}

// UCP uses requests again, and does not clear what the receive of a datatype left there.
TEST_P(request_cancel, finishes_nothing_of_contiguous_memory_in_a_request_that_a_datatype_had) {
    finish_(state_);
    posted_.push_back(find_in_fake<void *(*)(uint64_t, void *)>(
        ucp_library, "fake_ucp_post_contiguous")(handle_, state_));
    hooks::request_cancel(nullptr, posted_.back(), nullptr);
    EXPECT_EQ(calls().finishes, 1);
}

TEST_P(request_cancel, finishes_nothing_of_a_datatype_that_is_not_ours) {
    ucp_generic_dt_ops_t mine = {};
    mine.finish = [](void *) { FAIL() << "not ours to finish"; };
    uint64_t other = 0;
    ASSERT_EQ(create_generic(&mine, nullptr, &other, nullptr), UCS_OK);
    hooks::request_cancel(nullptr, post(other, state_), nullptr);
    EXPECT_EQ(calls().finishes, 0);
    destroy_datatype(other, nullptr);
    finish_(state_);
}

// Its completion callback is a program's.
TEST_P(request_cancel, may_be_left_by_a_thread_that_is_cancelled) {
    test::expect_leavable(
        [this] { hooks::request_cancel(nullptr, post(handle_, state_), nullptr); });
    EXPECT_EQ(calls().finishes, 0);
    finish_(state_);
}

// Where its requests keep a datatype's state was never looked at: the state leaks.
TEST(request_cancel_of_a_later_ucx, reads_nothing_of_a_request) {
    test::in_own_process([] {
        for (bool later : {true, false}) {
            const unsigned minor = last_known_minor + (later ? 1 : 0);
            setenv("FAKE_UCP_MINOR", std::to_string(minor).c_str(), 1);
            const pid_t child = fork();  // a process asks UCX for its release once
            if (child == 0) {
                int context;
                void *worker = nullptr;
                EXPECT_EQ(worker_create(&context, nullptr, &worker, nullptr), UCS_OK);
                const void *operations =
                    find_in_fake<const void *(*)()>("libfake_open_mpi.so", "fake_operations")();
                datatype type("vector", {{0, 8}, {24, 8}, {48, 8}}, 96);
                buffer memory(96, false);
                uint64_t handle = 0;
                EXPECT_EQ(create_generic(operations, const_cast<fake_datatype_t *>(type.get()),
                                         &handle, nullptr),
                          UCS_OK);
                const auto &ops = *find_in_fake<const ucp_generic_dt_ops_t *(*)(uint64_t)>(
                    ucp_library, "fake_ucp_operations")(handle);
                void *of_type =
                    find_in_fake<void *(*)(uint64_t)>(ucp_library, "fake_ucp_context")(handle);
                calls() = fake_calls_t();
                void *state = ops.start_unpack(of_type, memory.address(), 1);
                void *request = find_in_fake<void *(*)(uint64_t, void *)>(
                    ucp_library, "fake_ucp_post")(handle, state);
                hooks::request_cancel(worker, request, nullptr);
                EXPECT_EQ(find_in_fake<int8_t (*)(void *)>(ucp_library,
                                                           "ucp_request_check_status")(request),
                          UCS_ERR_CANCELED);
                EXPECT_EQ(calls().finishes, later ? 0 : 1);
                std::_Exit(testing::Test::HasFailure() ? 1 : 0);
            }
            int status = -1;
            EXPECT_EQ(waitpid(child, &status, 0), child);
            EXPECT_EQ(status, 0);
        }
    });
}

INSTANTIATE_TEST_SUITE_P(memory, request_cancel, testing::Bool(),
                         [](const auto &one) { return one.param ? "gpu" : "host"; });

}  // namespace
}  // namespace cuda_nc::hooks
