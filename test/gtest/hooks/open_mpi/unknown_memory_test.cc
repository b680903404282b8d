// Memory that a GPU knows and that we do not serve, under an Open MPI whose derived types we keep
// from its own convertor otherwise: each test in a process of its own, with simulated GPUs and, as
// under a driver older than the build, without.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "hooks/open_mpi/convertor_calls.hpp"
#include "hooks/fakes.hpp"
#include "hooks/common/datatype_ops.hpp"
#include "hooks/open_mpi/open_mpi.hpp"
#include "hooks/process.hpp"
#include "ucs/base/elf_walker.hpp"
#include "ucs/backend/sim/options.hpp"

namespace cuda_nc::hooks {
namespace {

using test::calls;
using test::datatype;
using test::make_convertor;
using test::move_all;
using test::pattern;

// Host memory in truth: whoever touches it is seen by what was called.
class unknown_bytes : public std::vector<char> {
  public:
    explicit unknown_bytes(std::vector<char> bytes) : std::vector<char>(std::move(bytes)) {
        gpu::sim::add_unknown(gpu::platform::instance(), data(), size());
    }
};

class unknown_memory : public testing::Test {
  protected:
    void SetUp() override {
        fake_convertor_t any = make_convertor();
        convertor_content content;
        ASSERT_TRUE(open_mpi::find_loaded()->map().read(&any, &content));
        calls() = fake_calls_t();
    }

    const datatype type_{"vector", {{8, 8}, {24, 8}}, 40};
    std::vector<char> host_ = pattern(400, 1);
    char packed_[160];
};

void run(const std::string &name) {
    for (const char *devices : {"0", "2"}) {
        test::outcome seen =
            test::run(std::string("FAKE_OPEN_MPI_VERSION=5.0.11 UCX_CUDA_NC_GPU=sim "
                                  "UCX_CUDA_NC_SIM_DEVICES=") +
                          devices,
                      BUILD_DIRECTORY
                          "/hooks_tests --gtest_also_run_disabled_tests "
                          "--gtest_filter=unknown_memory.DISABLED_" +
                          name);
        EXPECT_EQ(seen.status, 0) << devices << " GPUs: " << seen;
        EXPECT_NE(seen.output.find("[  PASSED  ] 1 test"), std::string::npos) << seen;
    }
}

// Without it the tests below would say nothing.
TEST_F(unknown_memory, DISABLED_host_memory_is_ours) {
    fake_convertor_t sender = make_convertor();
    ASSERT_EQ(prepare_for_send(&sender, type_.get(), 10, host_.data()), 0);
    EXPECT_EQ(move_all(true, &sender, packed_, sizeof(packed_), 100), sizeof(packed_));
    EXPECT_EQ(calls().convertor_moves, 0);
}

TEST(unknown_memory_process, host_memory_is_ours) {
    run("host_memory_is_ours");
}

TEST_F(unknown_memory, DISABLED_convertor) {
    unknown_bytes source(host_), target(host_), stream(pattern(160, 2));
    fake_convertor_t sender = make_convertor(), receiver = make_convertor();
    ASSERT_EQ(prepare_for_send(&sender, type_.get(), 10, source.data()), 0);
    EXPECT_EQ(move_all(true, &sender, packed_, sizeof(packed_), 1000), sizeof(packed_));
    EXPECT_EQ(calls().convertor_moves, 1);
    ASSERT_EQ(prepare_for_recv(&receiver, type_.get(), 10, target.data()), 0);
    EXPECT_EQ(move_all(false, &receiver, packed_, sizeof(packed_), 1000), sizeof(packed_));
    EXPECT_EQ(calls().convertor_moves, 2);
    // packed bytes of such memory
    ASSERT_EQ(prepare_for_send(&sender, type_.get(), 10, host_.data()), 0);
    EXPECT_EQ(move_all(true, &sender, stream.data(), stream.size(), 1000), stream.size());
    EXPECT_EQ(calls().convertor_moves, 3);
}

TEST(unknown_memory_process, is_left_to_the_original_convertor) {
    run("convertor");
}

TEST_F(unknown_memory, DISABLED_copy) {
    unknown_bytes one(host_), other(host_);
    for (auto [from, to] :
         {std::pair(one.data(), other.data()), std::pair(host_.data(), one.data()),
          std::pair(one.data(), host_.data())}) {
        calls() = fake_calls_t();
        ASSERT_EQ(copy_same(type_.get(), 10, to, from), 0);
        EXPECT_EQ(calls().copies, 1);
    }
}

TEST(unknown_memory_process, is_left_to_the_original_copy) {
    run("copy");
}

TEST_F(unknown_memory, DISABLED_message) {
    // as in a job: the original operations call our convertor
    replacement ours = {"opal_convertor_pack", reinterpret_cast<void *>(convertor_pack)};
    ASSERT_GE(redirect_loaded_objects(&ours, 1), 1u);
    const void *operations =
        test::find_in_fake<const void *(*)()>("libfake_open_mpi.so", "fake_operations")();
    uint64_t handle = 0;
    ASSERT_EQ(
        create_generic(operations, const_cast<fake_datatype_t *>(type_.get()), &handle, nullptr),
        0);
    const auto &ops = *test::find_in_fake<const ucp_generic_dt_ops_t *(*)(uint64_t)>(
        "libucp_fake.so", "fake_ucp_operations")(handle);
    void *context =
        test::find_in_fake<void *(*)(uint64_t)>("libucp_fake.so", "fake_ucp_context")(handle);
    unknown_bytes source(host_);
    calls() = fake_calls_t();
    testing::internal::CaptureStderr();
    for (int i = 0; i < 2; ++i) {
        void *state = ops.start_pack(context, source.data(), 10);
        EXPECT_EQ(ops.pack(state, 0, packed_, sizeof(packed_)), sizeof(packed_));
        ops.finish(state);
    }
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_EQ(calls().packs, 2);
    EXPECT_EQ(calls().convertor_moves, 2);
    EXPECT_NE(said.find("GPU memory of an unknown kind"), std::string::npos) << said;
    EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
    destroy_datatype(handle, nullptr);
}

TEST(unknown_memory_process, is_left_to_the_original_operations_with_one_warning) {
    run("message");
}

}  // namespace
}  // namespace cuda_nc::hooks
