#include "hooks/common/datatype_ops.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "hooks/fakes.hpp"
#include "ucs/base/elf_walker.hpp"

namespace cuda_nc::hooks {
namespace {

using test::buffer;
using test::calls;
using test::datatype;
using test::find_in_fake;
using test::pattern;

constexpr const char *ucp_library = "libucp_fake.so";
constexpr const char *mpi_library = "libfake_open_mpi.so";

// Registered through the hooks; used as UCP uses it.
class registered {
  public:
    explicit registered(const datatype &type) {
        const void *operations = find_in_fake<const void *(*)()>(mpi_library, "fake_operations")();
        status =
            create_generic(operations, const_cast<fake_datatype_t *>(type.get()), &handle, nullptr);
        ops = *find_in_fake<const ucp_generic_dt_ops_t *(*)(uint64_t)>(
            ucp_library, "fake_ucp_operations")(handle);
        context = find_in_fake<void *(*)(uint64_t)>(ucp_library, "fake_ucp_context")(handle);
        calls() = fake_calls_t();
    }
    ~registered() {
        if (!destroyed) {
            destroy_datatype(handle, nullptr);
        }
    }

    // Packs in fragments of at most `fragment` bytes.
    std::vector<char> pack(const void *base, size_t count, size_t fragment) const {
        void *state = ops.start_pack(context, base, count);
        std::vector<char> packed(ops.packed_size(state));
        for (size_t offset = 0; offset < packed.size();) {
            size_t length = ops.pack(state, offset, packed.data() + offset,
                                     std::min(fragment, packed.size() - offset));
            EXPECT_GT(length, 0u);
            offset += length;
        }
        ops.finish(state);
        return packed;
    }

    void unpack(void *base, size_t count, const std::vector<char> &packed, size_t fragment) const {
        void *state = ops.start_unpack(context, base, count);
        for (size_t offset = 0; offset < packed.size(); offset += fragment) {
            EXPECT_EQ(ops.unpack(state, offset, packed.data() + offset,
                                 std::min(fragment, packed.size() - offset)),
                      UCS_OK);
        }
        ops.finish(state);
    }

    uint64_t handle = 0;
    int8_t status;
    bool destroyed = false;
    ucp_generic_dt_ops_t ops;
    void *context;
};

int live_in_ucp() {
    return find_in_fake<int (*)()>(ucp_library, "fake_ucp_live")();
}

const std::vector<fake_block_t> vector_blocks = {{0, 8}, {24, 8}, {48, 8}, {72, 8}};

class datatype_ops : public testing::TestWithParam<bool> {
  protected:
    void move_both_ways(const datatype &type, size_t count, size_t size, ptrdiff_t origin) {
        registered in_ucp(type);
        ASSERT_EQ(in_ucp.status, UCS_OK);
        std::vector<ptrdiff_t> bytes = type.bytes(count);
        std::vector<char> source = pattern(size, 1);
        buffer from(size, GetParam()), to(size, GetParam());
        from.write(source);
        for (size_t fragment : {size_t(7), size_t(1000), SIZE_MAX}) {
            std::vector<char> packed = in_ucp.pack(from.address() + origin, count, fragment);
            ASSERT_EQ(packed.size(), bytes.size());
            for (size_t i = 0; i < bytes.size(); ++i) {
                ASSERT_EQ(packed[i], source[static_cast<size_t>(origin + bytes[i])]) << i;
            }
        }
        std::vector<char> packed = pattern(bytes.size(), 2);
        std::vector<char> expected(size, buffer::untouched);
        for (size_t i = 0; i < bytes.size(); ++i) {
            expected[static_cast<size_t>(origin + bytes[i])] = packed[i];
        }
        in_ucp.unpack(to.address() + origin, count, packed, 100);
        EXPECT_EQ(to.read(), expected);
        EXPECT_EQ(calls().starts, calls().finishes);
    }
};

INSTANTIATE_TEST_SUITE_P(memory, datatype_ops, testing::Bool(),
                         [](const auto &of) { return of.param ? "simulated_gpu" : "host"; });

TEST_P(datatype_ops, a_vector_is_moved_by_the_engine) {
    move_both_ways(datatype("vector", vector_blocks, 96), 50, 50 * 96, 0);
    EXPECT_EQ(calls().packs + calls().unpacks, 0);
}

TEST_P(datatype_ops, a_negative_extent_goes_backwards) {
    move_both_ways(datatype("backwards", {{0, 4}, {8, 4}}, -32), 20, 20 * 32, 19 * 32);
    EXPECT_EQ(calls().packs + calls().unpacks, 0);
}

TEST_P(datatype_ops, absolute_displacements_need_no_base) {
    std::vector<char> source = pattern(96, 3);
    buffer from(96, GetParam());
    from.write(source);
    std::vector<fake_block_t> blocks = vector_blocks;
    for (fake_block_t &one : blocks) {
        one.displacement += reinterpret_cast<ptrdiff_t>(from.address());
    }
    datatype type("bottom", blocks, 96);
    registered in_ucp(type);
    std::vector<char> packed = in_ucp.pack(nullptr, 1, SIZE_MAX);
    ASSERT_EQ(packed.size(), 32u);
    for (size_t i = 0; i < packed.size(); ++i) {
        EXPECT_EQ(packed[i], source[i / 8 * 24 + i % 8]);
    }
    EXPECT_EQ(calls().packs, GetParam() ? 0 : 1);
}

TEST_P(datatype_ops, more_counts_than_are_kept_work) {
    datatype type("vector", vector_blocks, 96);
    registered in_ucp(type);
    std::vector<char> source = pattern(96 * 64, 1);
    buffer from(source.size(), GetParam());
    from.write(source);
    for (size_t count = 64; count > 0; --count) {
        std::vector<char> packed = in_ucp.pack(from.address(), count, SIZE_MAX);
        std::vector<ptrdiff_t> bytes = type.bytes(count);
        ASSERT_EQ(packed.size(), bytes.size());
        for (size_t i = 0; i < bytes.size(); ++i) {
            ASSERT_EQ(packed[i], source[static_cast<size_t>(bytes[i])]);
        }
    }
    EXPECT_EQ(calls().packs, GetParam() ? 0 : 3) << "few blocks in host memory go the original way";
}

TEST_P(datatype_ops, a_message_without_bytes_is_the_originals) {
    datatype type("empty", {{8, 0}}, 16);
    registered in_ucp(type);
    buffer from(16, GetParam());
    EXPECT_TRUE(in_ucp.pack(from.address(), 3, SIZE_MAX).empty());
    EXPECT_EQ(calls().finishes, 1);
}

TEST(datatype_ops_host, few_blocks_in_host_memory_are_left_to_open_mpi_4) {
    datatype type("resized", {{8, 16}}, 32);
    registered in_ucp(type);
    std::vector<char> source = pattern(32, 1);
    EXPECT_EQ(in_ucp.pack(source.data(), 1, SIZE_MAX),
              std::vector<char>(source.begin() + 8, source.begin() + 24));
    EXPECT_EQ(calls().packs, 1);
}

TEST(datatype_ops_host, where_sizes_disagree_the_originals_run_with_one_warning) {
    datatype type("liar", vector_blocks, 96, 1);
    registered in_ucp(type);
    std::vector<char> source = pattern(96, 1);
    testing::internal::CaptureStderr();
    for (int i = 0; i < 3; ++i) {
        void *state = in_ucp.ops.start_pack(in_ucp.context, source.data(), 1);
        char packed[64];
        EXPECT_EQ(in_ucp.ops.pack(state, 0, packed, sizeof(packed)), 32u);
        in_ucp.ops.finish(state);
    }
    std::string said = testing::internal::GetCapturedStderr();
    EXPECT_EQ(calls().packs, 3);
    EXPECT_NE(said.find("liar"), std::string::npos) << said;
    EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
}

TEST(datatype_ops_gpu, the_cpu_does_not_touch_what_is_laid_out_nobody_knows_how) {
    datatype type("liar", vector_blocks, 96, 1);
    registered in_ucp(type);
    buffer to(96, true);
    const std::vector<char> packed = pattern(32, 1);
    testing::internal::CaptureStderr();
    void *state = in_ucp.ops.start_unpack(in_ucp.context, to.address(), 1);
    EXPECT_EQ(in_ucp.ops.unpack(state, 0, packed.data(), packed.size()), UCS_ERR_NO_MEMORY);
    in_ucp.ops.finish(state);
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_NE(said.find("cannot be received: layout not understood"), std::string::npos) << said;
    EXPECT_EQ(calls().unpacks, 0);
    EXPECT_EQ(calls().starts, calls().finishes);
    EXPECT_EQ(to.read(), std::vector<char>(96, buffer::untouched));
}

void destroy_as_ucp(uint64_t handle) {
    destroy_datatype(handle, __builtin_return_address(0));
}

TEST(datatype_ops_host, a_type_may_be_destroyed_from_within_its_last_finish) {
    int before = live_in_ucp();
    datatype type("vector", vector_blocks, 96);
    // as in a job: what the MPI library calls is ours
    auto *original = find_in_fake<void *>(ucp_library, "ucp_dt_destroy");
    replacement ours = {"ucp_dt_destroy", reinterpret_cast<void *>(destroy_as_ucp)};
    ASSERT_EQ(redirect_loaded_objects(&ours, 1), 1u);
    registered in_ucp(type);
    in_ucp.destroyed = true;
    std::vector<char> source = pattern(96, 1);
    void *first = in_ucp.ops.start_pack(in_ucp.context, source.data(), 1);
    void *last = in_ucp.ops.start_unpack(in_ucp.context, source.data(), 1);
    in_ucp.ops.finish(first);
    char packed[32] = {};
    EXPECT_EQ(in_ucp.ops.unpack(last, 0, packed, sizeof(packed)), UCS_OK);
    *find_in_fake<uint64_t *>(mpi_library, "fake_unregister_in_finish") = in_ucp.handle;
    in_ucp.ops.finish(last);
    EXPECT_EQ(calls().finishes, 2);
    EXPECT_EQ(live_in_ucp(), before);
    replacement back = {"ucp_dt_destroy", original};
    EXPECT_EQ(redirect_loaded_objects(&back, 1), 1u);
}

TEST(datatype_ops_host, bytes_are_found_of_the_datatype_that_has_the_handle_now) {
    datatype vector("vector", vector_blocks, 96), block("block", {{0, 16}}, 16);
    dt::message_bytes bytes;
    for (int i = 0; i < 4; ++i) {
        const datatype &type = i % 2 == 0 ? vector : block;
        const uint64_t size = i % 2 == 0 ? 32 : 16;
        registered in_ucp(type);
        for (uint64_t count : {uint64_t(1), uint64_t(3), uint64_t(1)}) {
            ASSERT_TRUE(hooks::find_bytes(in_ucp.handle, count, &bytes));
            EXPECT_EQ(bytes.packed, count * size);
            EXPECT_EQ(hooks::find_operations(in_ucp.handle)->finish, in_ucp.ops.finish);
        }
        registered other(i % 2 == 0 ? block : vector);
        ASSERT_TRUE(hooks::find_bytes(other.handle, 1, &bytes));
        EXPECT_EQ(bytes.packed, 48 - size);
        ASSERT_TRUE(hooks::find_bytes(in_ucp.handle, 1, &bytes));
        EXPECT_EQ(bytes.packed, size);
        // freed by another thread than the one that remembers it
        std::thread([&] { destroy_datatype(in_ucp.handle, nullptr); }).join();
        in_ucp.destroyed = true;
        EXPECT_FALSE(hooks::find_bytes(in_ucp.handle, 1, &bytes));
        EXPECT_EQ(hooks::find_operations(in_ucp.handle), nullptr);
    }
}

TEST(datatype_ops_host, unknown_handles_are_passed_on) {
    int before = live_in_ucp();
    destroy_datatype(0x40, nullptr);  // a contiguous type, as Open MPI destroys them too
    EXPECT_EQ(live_in_ucp(), before);
}

void *start_nothing(void *, const void *, size_t) {
    return nullptr;
}

TEST(datatype_ops_host, a_plain_program_keeps_its_own_operations) {
    ucp_generic_dt_ops_t mine = {};
    mine.start_pack = start_nothing;
    uint64_t handle = 0;
    int context = 0;
    testing::internal::CaptureStderr();
    ASSERT_EQ(create_generic(&mine, &context, &handle, nullptr), UCS_OK);
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
    EXPECT_EQ(find_in_fake<void *(*)(uint64_t)>(ucp_library, "fake_ucp_context")(handle), &context);
    destroy_datatype(handle, nullptr);
}

TEST(datatype_ops_host, an_unknown_mpi_keeps_its_own_operations_with_one_warning) {
    ucp_generic_dt_ops_t its = {};
    its.start_pack = find_in_fake<void *(*)(void *, const void *, size_t)>("libfake_unknown_mpi.so",
                                                                           "fake_operation");
    testing::internal::CaptureStderr();
    for (int i = 0; i < 2; ++i) {
        uint64_t handle = 0;
        ASSERT_EQ(create_generic(&its, &its, &handle, nullptr), UCS_OK);
        EXPECT_EQ(find_in_fake<void *(*)(uint64_t)>(ucp_library, "fake_ucp_context")(handle), &its);
        destroy_datatype(handle, nullptr);
    }
    std::string said = testing::internal::GetCapturedStderr();
    EXPECT_NE(said.find("libfake_unknown_mpi.so"), std::string::npos) << said;
    EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
}

}  // namespace
}  // namespace cuda_nc::hooks
