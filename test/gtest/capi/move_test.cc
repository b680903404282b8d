#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <random>
#include <thread>

#include "capi/layout_maker.hpp"
#include "capi/layout_tables.hpp"
#include "ucs/backend/sim/user_stream.hpp"
#include "ucs/worklist/worklist.hpp"

namespace cuda_nc::capi::test {
namespace {

// On the simulated GPU; move_gpu_test.cc has CUDA's.
struct capi_move : testing::Test {
    void SetUp() override {
        if (std::strcmp(gpu::platform::instance().name(), "sim") != 0) {
            GTEST_SKIP() << "UCX_CUDA_NC_GPU is not sim";
        }
    }
};

std::vector<uint8_t> random_bytes(uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<uint8_t> bytes(6000);
    for (uint8_t &one : bytes) {
        one = static_cast<uint8_t>(random());
    }
    return bytes;
}

struct stream_of_test {
    void *handle = cuda_nc_sim_stream_create(0);
    ~stream_of_test() { cuda_nc_sim_stream_destroy(handle); }
    gpu::sim::sim_stream &inside() const { return gpu::sim::find_user_stream(handle)->stream(); }
};

// 300 pages of 24 bytes, scattered: a list.
struct pages {
    cuda_nc_layout_t layout = nullptr;
    std::vector<int64_t> numbers;
    static constexpr int64_t count = 300, page = 24, room = 1000;

    explicit pages(uint64_t seed = 1) {
        std::mt19937_64 random(seed);
        for (int64_t i = 0; i < room; ++i) {
            numbers.push_back(i);
        }
        std::shuffle(numbers.begin(), numbers.end(), random);
        numbers.resize(count);
        EXPECT_EQ(cuda_nc_layout_create_indexed(count, nullptr, numbers.data(), page, &layout),
                  UCS_OK);
    }
    std::vector<char> packed(const std::vector<char> &from) const {
        std::vector<char> bytes;
        for (const int64_t one : numbers) {
            bytes.insert(bytes.end(), from.begin() + one * page, from.begin() + (one + 1) * page);
        }
        return bytes;
    }
    void destroy() { cuda_nc_layout_destroy(std::exchange(layout, nullptr)); }
    ~pages() { destroy(); }
};

std::vector<char> first_bytes(test_buffer &of, size_t size) {
    return {of.now().begin(), of.now().begin() + static_cast<std::ptrdiff_t>(size)};
}

// The GPU's streams wait for it.
struct gate {
    gpu::sim::sim_event mark;
    gate() { mark.state()->recorded = 1; }
    void hold(const stream_of_test &stream) { ASSERT_EQ(stream.inside().wait(mark), UCS_OK); }
    void open() { mark.state()->reach(1, UCS_OK); }
};

TEST_F(capi_move, random_layouts_in_host_memory) {
    for (uint64_t seed = 1; seed <= 1000; ++seed) {
        const std::vector<uint8_t> bytes = random_bytes(seed);
        ASSERT_EQ(run_case(bytes.data(), bytes.size()), "") << "seed " << seed;
    }
}

TEST_F(capi_move, random_layouts_on_a_gpu) {
    stream_of_test stream;
    ASSERT_NE(stream.handle, nullptr);
    for (uint64_t seed = 1; seed <= 250; ++seed) {
        const std::vector<uint8_t> bytes = random_bytes(seed * 7919);
        void *on = seed % 4 == 0 ? nullptr : stream.handle;
        ASSERT_EQ(run_case(bytes.data(), bytes.size(), &sim_gpu, on), "") << "seed " << seed;
    }
}

TEST_F(capi_move, calls_follow_each_other_on_their_stream) {
    stream_of_test stream;
    const pages one(3), two(4);
    test_buffer from(pages::room * pages::page, 1, &sim_gpu),
        to(pages::room * pages::page, 2, &sim_gpu), packed(pages::count * pages::page, 3, &sim_gpu);
    ASSERT_EQ(cuda_nc_pack(one.layout, from.address(), packed.address(), stream.handle), UCS_OK);
    ASSERT_EQ(cuda_nc_unpack(two.layout, packed.address(), to.address(), stream.handle), UCS_OK);
    ASSERT_EQ(cuda_nc_pack(two.layout, to.address(), packed.address(), stream.handle), UCS_OK);
    ASSERT_EQ(cuda_nc_sim_stream_synchronize(stream.handle), UCS_OK);
    EXPECT_EQ(first_bytes(packed, pages::count * pages::page), one.packed(from.before()));
}

TEST_F(capi_move, tables_outlive_a_layout_until_its_streams_are_through) {
    stream_of_test stream;
    gate waits;
    pages what(5);
    gpu::device &gpu = *gpu::platform::instance().get_device(0);
    test_buffer from(pages::room * pages::page, 1, &sim_gpu),
        packed(pages::count * pages::page, 2, &sim_gpu);
    ASSERT_EQ(cuda_nc_layout_prepare(what.layout, 0), UCS_OK);
    waits.hold(stream);
    ASSERT_EQ(cuda_nc_pack(what.layout, from.address(), packed.address(), stream.handle), UCS_OK);
    what.destroy();
    EXPECT_EQ(count_unreturned(), 1u);
    worklist::trim(gpu);
    pages other(6);  // takes memory that is free
    ASSERT_EQ(cuda_nc_layout_prepare(other.layout, 0), UCS_OK);
    EXPECT_EQ(count_unreturned(), 1u);
    waits.open();
    ASSERT_EQ(cuda_nc_sim_stream_synchronize(stream.handle), UCS_OK);
    EXPECT_EQ(first_bytes(packed, pages::count * pages::page), pages(5).packed(from.before()));
    other.destroy();
    EXPECT_EQ(count_unreturned(), 0u);
}

TEST_F(capi_move, a_graph_repeats_what_was_captured_and_keeps_the_tables) {
    stream_of_test stream;
    pages one(7), two(8);
    test_buffer from(pages::room * pages::page, 1, &sim_gpu),
        to(pages::room * pages::page, 2, &sim_gpu), packed(pages::count * pages::page, 3, &sim_gpu);
    ASSERT_EQ(cuda_nc_layout_prepare(one.layout, 0), UCS_OK);
    ASSERT_EQ(cuda_nc_layout_prepare(two.layout, 0), UCS_OK);
    const std::vector<char> expected = one.packed(from.before());
    stream.inside().begin_capture();
    ASSERT_EQ(cuda_nc_copy(one.layout, from.address(), two.layout, to.address(), stream.handle),
              UCS_OK);
    ASSERT_EQ(cuda_nc_pack(two.layout, to.address(), packed.address(), stream.handle), UCS_OK);
    auto graph = stream.inside().end_capture();
    one.destroy();
    two.destroy();
    worklist::trim(*gpu::platform::instance().get_device(0));
    ASSERT_EQ(cuda_nc_sim_stream_synchronize(stream.handle), UCS_OK);
    EXPECT_EQ(packed.now(), packed.before());  // nothing ran
    for (int times = 0; times < 3; ++times) {
        cuda_nc_sim_memcpy(packed.address(), packed.before().data(), pages::count * pages::page);
        ASSERT_EQ(stream.inside().launch(graph), UCS_OK);
        ASSERT_EQ(cuda_nc_sim_stream_synchronize(stream.handle), UCS_OK);
        ASSERT_EQ(first_bytes(packed, pages::count * pages::page), expected);
    }
    gate waits;
    waits.hold(stream);
    ASSERT_EQ(stream.inside().launch(graph), UCS_OK);
    graph.reset();
    EXPECT_EQ(count_unreturned(), 0u);  // the work that waits has it
    waits.open();
    ASSERT_EQ(cuda_nc_sim_stream_synchronize(stream.handle), UCS_OK);
    give_back_unused();
    EXPECT_EQ(count_unreturned(), 0u);
}

TEST_F(capi_move, a_captured_stream_needs_prepared_layouts) {
    stream_of_test stream;
    const pages what(9);
    test_buffer from(pages::room * pages::page, 1, &sim_gpu),
        packed(pages::count * pages::page, 2, &sim_gpu);
    stream.inside().begin_capture();
    EXPECT_EQ(cuda_nc_pack(what.layout, from.address(), packed.address(), stream.handle),
              UCS_ERR_UNSUPPORTED);
    EXPECT_NE(std::strstr(cuda_nc_last_error(), "cuda_nc_layout_prepare"), nullptr);
    const auto graph = stream.inside().end_capture();
    ASSERT_EQ(stream.inside().launch(graph), UCS_OK);
    ASSERT_EQ(cuda_nc_sim_stream_synchronize(stream.handle), UCS_OK);
    EXPECT_EQ(packed.now(), packed.before());
}

TEST_F(capi_move, refuses_what_it_cannot_move) {
    cuda_nc_layout_t rows = nullptr, over = nullptr;
    ASSERT_EQ(cuda_nc_layout_create_vector(10, 8, 16, &rows), UCS_OK);
    ASSERT_EQ(cuda_nc_layout_create_vector(10, 8, 4, &over), UCS_OK);
    test_buffer on_gpu(1000, 1, &sim_gpu), on_host(1000, 2, nullptr);
    auto says = [](ucs_status_t status, ucs_status_t wanted, const char *text) {
        EXPECT_EQ(status, wanted);
        EXPECT_EQ(std::strncmp(cuda_nc_last_error(), text, std::strlen(text)), 0)
            << cuda_nc_last_error();
    };
    says(cuda_nc_pack(nullptr, on_host.address(), on_host.address(), nullptr),
         UCS_ERR_INVALID_PARAM, "layout:");
    says(cuda_nc_pack(rows, nullptr, on_host.address(), nullptr), UCS_ERR_INVALID_PARAM, "buffer:");
    says(cuda_nc_pack(rows, on_host.address(), nullptr, nullptr), UCS_ERR_INVALID_PARAM, "packed:");
    says(cuda_nc_unpack(over, on_host.address(), on_host.address(), nullptr), UCS_ERR_INVALID_PARAM,
         "buffer: its layout covers");
    says(cuda_nc_pack(rows, on_gpu.address(), on_host.address(), nullptr), UCS_ERR_UNSUPPORTED,
         "packed: pageable");
    says(cuda_nc_pack(rows, on_gpu.address(), on_gpu.address() + 500, on_host.address()),
         UCS_ERR_INVALID_PARAM, "stream:");
    cuda_nc_layout_t other = nullptr;
    ASSERT_EQ(cuda_nc_layout_create_vector(10, 7, 16, &other), UCS_OK);
    says(cuda_nc_copy(rows, on_host.address(), other, on_host.address(), nullptr),
         UCS_ERR_INVALID_PARAM, "target_layout:");
    for (cuda_nc_layout_t one : {rows, over, other}) {
        cuda_nc_layout_destroy(one);
    }
    says(cuda_nc_pack(rows, on_host.address(), on_host.address(), nullptr), UCS_ERR_INVALID_PARAM,
         "layout:");
    void *gone = cuda_nc_sim_stream_create(0);
    cuda_nc_sim_stream_destroy(gone);
    EXPECT_EQ(cuda_nc_sim_stream_synchronize(gone), UCS_ERR_INVALID_PARAM);
    EXPECT_EQ(cuda_nc_sim_stream_create(1000), nullptr);
}

// Absolute addresses: the buffer is null.
TEST_F(capi_move, layouts_of_addresses_have_no_buffer) {
    std::vector<char> memory(1000, 1), packed(20);
    const ucp_dt_iov_t iov[] = {{memory.data() + 700, 12}, {memory.data() + 3, 8}};
    memory[700] = 5;
    memory[10] = 6;
    cuda_nc_layout_t made = nullptr;
    ASSERT_EQ(cuda_nc_layout_create_iov(nullptr, iov, 2, &made), UCS_OK);
    ASSERT_EQ(cuda_nc_pack(made, nullptr, packed.data(), nullptr), UCS_OK) << cuda_nc_last_error();
    EXPECT_EQ(packed[0], 5);
    EXPECT_EQ(packed[19], 6);
    cuda_nc_layout_destroy(made);
}

TEST_F(capi_move, threads_share_layouts) {
    const pages what(11);
    std::atomic<int> wrong{0};
    std::vector<std::thread> all;
    for (unsigned thread = 0; thread < 4; ++thread) {
        all.emplace_back([&, thread] {
            stream_of_test stream;
            test_buffer from(pages::room * pages::page, thread, &sim_gpu),
                packed(pages::count * pages::page, 9, &sim_gpu);
            for (int round = 0; round < 20; ++round) {
                const pages own(20 + thread * 100 + static_cast<unsigned>(round));
                const pages &one = round % 2 == 0 ? what : own;
                const bool moved = cuda_nc_pack(one.layout, from.address(), packed.address(),
                                                stream.handle) == UCS_OK &&
                                   cuda_nc_sim_stream_synchronize(stream.handle) == UCS_OK;
                const bool right = moved && first_bytes(packed, pages::count * pages::page) ==
                                                one.packed(from.before());
                wrong += right ? 0 : 1;
            }
        });
    }
    for (std::thread &one : all) {
        one.join();
    }
    EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace cuda_nc::capi::test
