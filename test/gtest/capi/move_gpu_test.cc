// Pack, unpack and copy on CUDA streams and in CUDA graphs.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "capi/layout_maker.hpp"
#include "capi/layout_tables.hpp"
#include "ucs/gpu/device.hpp"

namespace cuda_nc::capi::test {
namespace {

const gpu_calls cuda = {
    [](size_t size) -> void * {
        void *made = nullptr;
        return cudaMalloc(&made, size) == cudaSuccess ? made : nullptr;
    },
    [](void *address) { cudaFree(address); },
    [](void *destination, const void *source, size_t length) {
        cudaMemcpy(destination, source, length, cudaMemcpyDefault);
        cudaDeviceSynchronize();
    },
    [](void *stream) {
        return cudaStreamSynchronize(static_cast<cudaStream_t>(stream)) == cudaSuccess
                   ? UCS_OK
                   : UCS_ERR_IO_ERROR;
    },
};

struct capi_move_gpu : testing::Test {
    void SetUp() override {
        if (std::strcmp(gpu::platform::instance().name(), "cuda") != 0 ||
            gpu::platform::instance().num_devices() == 0) {
            GTEST_SKIP() << "no GPU";
        }
        ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
        ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    }
    void TearDown() override {
        if (stream != nullptr) {
            cudaStreamDestroy(stream);
        }
    }
    cudaStream_t stream = nullptr;
};

std::vector<uint8_t> random_bytes(uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<uint8_t> bytes(6000);
    for (uint8_t &one : bytes) {
        one = static_cast<uint8_t>(random());
    }
    return bytes;
}

TEST_F(capi_move_gpu, random_layouts) {
    void *const streams[] = {stream, nullptr, cudaStreamPerThread, cudaStreamLegacy};
    for (uint64_t seed = 1; seed <= 1500; ++seed) {
        const std::vector<uint8_t> bytes = random_bytes(seed);
        ASSERT_EQ(run_case(bytes.data(), bytes.size(), &cuda, streams[seed % 4]), "")
            << "seed " << seed;
    }
    ASSERT_EQ(cudaGetLastError(), cudaSuccess);
}

// Captured, destroyed, and repeated with other bytes each time.
TEST_F(capi_move_gpu, graphs) {
    for (uint64_t seed = 1; seed <= 200; ++seed) {
        const std::vector<uint8_t> bytes = random_bytes(seed * 31);
        byte_source from(bytes.data(), bytes.size());
        layout_maker maker(from);
        std::string fault;
        made_layout what = maker.make(&fault);
        ASSERT_EQ(fault, "");
        made_layout target = maker.make_target(what.bytes.size());
        test_buffer source(what.span(), 1, &cuda), there(target.span(), 2, &cuda),
            packed(what.bytes.size(), 3, &cuda);
        ASSERT_EQ(cuda_nc_layout_prepare(what.handle, 0), UCS_OK);
        ASSERT_EQ(cuda_nc_layout_prepare(target.handle, 0), UCS_OK);
        ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
        ASSERT_EQ(cuda_nc_copy(what.handle, source.address() - what.lower(), target.handle,
                               there.address() - target.lower(), stream),
                  UCS_OK)
            << cuda_nc_last_error();
        ASSERT_EQ(
            cuda_nc_pack(target.handle, there.address() - target.lower(), packed.address(), stream),
            UCS_OK)
            << cuda_nc_last_error();
        cudaGraph_t graph = nullptr;
        ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
        cudaGraphExec_t runs = nullptr;
        ASSERT_EQ(cudaGraphInstantiate(&runs, graph, 0), cudaSuccess);
        cudaGraphDestroy(graph);
        cuda_nc_layout_destroy(std::exchange(what.handle, nullptr));
        cuda_nc_layout_destroy(std::exchange(target.handle, nullptr));
        give_back_unused();
        ASSERT_EQ(count_unreturned(), 0u);  // the graph has them
        for (unsigned time = 0; time < 3; ++time) {
            test_buffer other(what.span(), 10 + time, nullptr);
            cuda.copy(source.address(), other.address(), what.span());
            ASSERT_EQ(cudaGraphLaunch(runs, stream), cudaSuccess);
            ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
            const std::vector<char> &got = packed.now();
            for (size_t i = 0; i < what.bytes.size(); ++i) {
                ASSERT_EQ(got[i], other.before()[static_cast<size_t>(what.bytes[i] - what.lower())])
                    << "seed " << seed << ", byte " << i;
            }
        }
        ASSERT_EQ(cudaGraphExecDestroy(runs), cudaSuccess);
    }
    cudaDeviceSynchronize();
    give_back_unused();
    EXPECT_EQ(count_unreturned(), 0u);
}

TEST_F(capi_move_gpu, an_unprepared_layout_does_not_spoil_a_capture) {
    std::vector<int64_t> pages;
    for (int64_t i = 0; i < 100; ++i) {
        pages.push_back(i * i);
    }
    cuda_nc_layout_t layout = nullptr, rows = nullptr;
    ASSERT_EQ(cuda_nc_layout_create_indexed(100, nullptr, pages.data(), 16, &layout), UCS_OK);
    ASSERT_EQ(cuda_nc_layout_create_vector(100, 16, 32, &rows), UCS_OK);
    test_buffer from(200000, 1, &cuda), to(1600, 2, &cuda);
    ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
    EXPECT_EQ(cuda_nc_pack(layout, from.address(), to.address(), stream), UCS_ERR_UNSUPPORTED);
    EXPECT_EQ(cuda_nc_pack(rows, from.address(), to.address(), stream), UCS_OK);
    cudaGraph_t graph = nullptr;
    ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    size_t nodes = 0;
    EXPECT_EQ(cudaGraphGetNodes(graph, nullptr, &nodes), cudaSuccess);
    EXPECT_EQ(nodes, 1u);
    cudaGraphDestroy(graph);
    cuda_nc_layout_destroy(layout);
    cuda_nc_layout_destroy(rows);
}

TEST_F(capi_move_gpu, pinned_and_managed_memory) {
    cuda_nc_layout_t rows = nullptr;
    ASSERT_EQ(cuda_nc_layout_create_vector(1000, 8, 24, &rows), UCS_OK);
    char *pinned = nullptr, *managed = nullptr;
    ASSERT_EQ(cudaMallocHost(reinterpret_cast<void **>(&pinned), 8000), cudaSuccess);
    ASSERT_EQ(cudaMallocManaged(reinterpret_cast<void **>(&managed), 24000, cudaMemAttachGlobal),
              cudaSuccess);
    for (int i = 0; i < 24000; ++i) {
        managed[i] = static_cast<char>(i / 7);
    }
    ASSERT_EQ(cuda_nc_pack(rows, managed, pinned, stream), UCS_OK) << cuda_nc_last_error();
    ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    for (int i = 0; i < 8000; ++i) {
        ASSERT_EQ(pinned[i], managed[i / 8 * 24 + i % 8]);
    }
    cuda_nc_layout_destroy(rows);
    cudaFreeHost(pinned);
    cudaFree(managed);
}

}  // namespace
}  // namespace cuda_nc::capi::test
