// The kernels on a GPU against a naive byte map. CUDA_NC_TEST_COUNT and CUDA_NC_TEST_SEED choose
// the random layouts (a few dozen are enough under compute-sanitizer).
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "ucs/exec/kernels/random_case.hpp"
#include "ucs/exec/kernels/launch.hpp"
#include "ucs/backend/cuda/driver.hpp"

namespace cuda_nc::exec::test {
namespace {

uint64_t from_environment(const char *name, uint64_t otherwise) {
    const char *text = std::getenv(name);
    return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

class kernels_gpu : public testing::Test {
  protected:
    void SetUp() override {
        int devices = 0;
        if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
            cudaGetLastError();
            GTEST_SKIP() << "no GPU";
        }
        cudaDeviceProp properties;
        ASSERT_EQ(cudaGetDeviceProperties(&properties, 0), cudaSuccess);
        limits_.num_sms = static_cast<unsigned>(properties.multiProcessorCount);
        limits_.l2_size = static_cast<size_t>(properties.l2CacheSize);
        ASSERT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
        std::string why;
        const gpu::cuda::driver *calls = gpu::cuda::driver::load(&why);
        ASSERT_NE(calls, nullptr) << why;
        ASSERT_EQ(cudaFree(nullptr), cudaSuccess);  // makes the context current
        kernels_ = std::make_unique<loaded_kernels>(calls->launch);
        ASSERT_EQ(load_first_kernel(*kernels_), cudaSuccess);
        ASSERT_EQ(kernels_->size(), 1u);
        limits_.starts_early = kernels_await_predecessors();
    }
    void TearDown() override {
        for (void *one : memory_) {
            cudaFree(one);
        }
        if (stream_ != nullptr) {
            cudaStreamDestroy(stream_);
        }
    }

    // Whole 16-byte words, which kernels may read to their end; a sanitizer sees what lies beyond.
    // Freed at the end of a case.
    char *allocate(size_t size) {
        void *address = nullptr;
        EXPECT_EQ(cudaMalloc(&address, (size + 15) / 16 * 16), cudaSuccess);
        memory_.push_back(address);
        return static_cast<char *>(address);
    }
    template <class T>
    const T *upload(const T *host, size_t count) {
        if (host == nullptr) {
            return nullptr;
        }
        char *copy = allocate(count * sizeof(T));
        // On the kernels' own stream: a plain copy from pageable memory may still be under way on
        // its return, and no stream created non-blocking waits for it.
        EXPECT_EQ(cudaMemcpyAsync(copy, host, count * sizeof(T), cudaMemcpyHostToDevice, stream_),
                  cudaSuccess);
        return reinterpret_cast<const T *>(copy);
    }

    layout_view on_device(const layout_view &v) {
        layout_view d = v;
        size_t blocks = v.num_blocks, frames = (blocks + frame_blocks - 1) / frame_blocks;
        d.tables.frame_displacement = upload(v.tables.frame_displacement, frames);
        d.tables.frame_packed = upload(v.tables.frame_packed, frames + 1);
        d.tables.displacement = upload(v.tables.displacement, blocks);
        d.tables.packed = upload(v.tables.packed, blocks);
        d.tables.wide_displacement = upload(v.tables.wide_displacement, blocks);
        d.tables.wide_packed = upload(v.tables.wide_packed, blocks + 1);
        uint64_t unit = uint64_t{1} << v.tables.unit_log2;
        d.tables.unit_block = upload(v.tables.unit_block, (v.list_size + unit - 1) / unit + 1);
        return d;
    }

    std::string run_case(const random_case &c, uint64_t seed) {
        const bool copy = c.dir == gpu::direction::copy;
        std::mt19937_64 random(seed);
        auto fill = [&](size_t size) {
            std::vector<char> bytes(size);
            for (char &one : bytes) {
                one = static_cast<char>(random());
            }
            return bytes;
        };
        // A few bytes in front and behind, which nothing may write.
        std::vector<char> laid_out = fill(c.laid_out_skew + c.span());
        std::vector<char> other = fill(c.packed_skew + (copy ? c.span() : c.length));
        char *laid_out_d = const_cast<char *>(upload(laid_out.data(), laid_out.size()));
        char *other_d = const_cast<char *>(upload(other.data(), other.size()));
        gpu::transfer work = c.transfer();
        work.layout = on_device(c.view);
        work.base = laid_out_d + c.laid_out_skew - c.layout->lower();
        work.packed = other_d + c.packed_skew - (copy ? c.layout->lower() : 0);
        cudaError_t error = launch_transfer(*kernels_, work, limits_, stream_);
        if (error == cudaSuccess) {
            error = cudaStreamSynchronize(stream_);
        }
        if (error != cudaSuccess) {
            return cudaGetErrorString(error);
        }
        const bool unpack = c.dir == gpu::direction::unpack;
        std::vector<char> &expected = unpack ? laid_out : other;
        const std::vector<char> &source = unpack ? other : laid_out;
        const std::vector<int64_t> map = c.bytes();
        for (uint64_t i = 0; i < c.length; ++i) {
            auto at = static_cast<size_t>(map[c.packed_offset + i] - c.layout->lower());
            size_t from = unpack ? c.packed_skew + i : c.laid_out_skew + at;
            size_t to = unpack ? c.laid_out_skew + at : c.packed_skew + (copy ? at : i);
            expected[to] = source[from];
        }
        std::vector<char> found(expected.size());
        EXPECT_EQ(cudaMemcpy(found.data(), unpack ? laid_out_d : other_d, found.size(),
                             cudaMemcpyDeviceToHost),
                  cudaSuccess);
        for (void *one : memory_) {
            cudaFree(one);
        }
        memory_.clear();
        for (size_t i = 0; i < found.size(); ++i) {
            if (found[i] != expected[i]) {
                return "byte " + std::to_string(i) + " of " + std::to_string(found.size());
            }
        }
        return "";
    }

    std::unique_ptr<loaded_kernels> kernels_;
    kernel_limits limits_;
    cudaStream_t stream_ = nullptr;
    std::vector<void *> memory_;
};

TEST_F(kernels_gpu, move_exactly_the_bytes_of_random_layouts) {
    const uint64_t first = from_environment("CUDA_NC_TEST_SEED", 1);
    const uint64_t count = from_environment("CUDA_NC_TEST_COUNT", 1500);
    for (uint64_t seed = first; seed < first + count; ++seed) {
        random_case c = case_maker(seed).make();
        ASSERT_EQ(run_case(c, seed), "") << "CUDA_NC_TEST_SEED=" << seed << " direction "
                                         << static_cast<int>(c.dir) << " offset " << c.packed_offset
                                         << " length " << c.length << " of " << c.view.packed_size;
    }
}

TEST_F(kernels_gpu, move_the_same_bytes_whatever_the_rules) {
    const uint64_t first = from_environment("CUDA_NC_TEST_SEED", 1);
    const uint64_t count = from_environment("CUDA_NC_TEST_COUNT", 1000);
    for (uint64_t seed = first; seed < first + count; ++seed) {
        case_maker maker(seed);
        random_case c = seed % 8 == 0 ? maker.make_long() : maker.make();
        const kernel_rules rules = maker.make_rules();
        limits_.rules = &rules;
        limits_.l2_size = 0;  // so that small messages too are written as large ones
        ASSERT_EQ(run_case(c, seed), "") << "CUDA_NC_TEST_SEED=" << seed << " direction "
                                         << static_cast<int>(c.dir) << " offset " << c.packed_offset
                                         << " length " << c.length << " of " << c.view.packed_size;
    }
}

TEST_F(kernels_gpu, move_messages_that_fill_the_machine) {
    struct {
        std::vector<piece> list;
        std::vector<layout_dim> dims;
        unsigned align_log2;
    } const shapes[] = {
        {{{0, 8}}, {{1 << 19, 16}}, 3},         {{{0, 64}}, {{1 << 16, 128}}, 4},
        {{{0, 17}}, {{200000, 24}}, 0},         {{{0, 12}}, {{300000, 20}}, 2},
        {{{0, 8}}, {{512, 4096}, {512, 8}}, 3}, {{{0, 16}}, {{300, 4096}, {200, 16}}, 4},
        {{{0, 4}}, {{333, 2000}, {499, 4}}, 2}, {{{0, 8}, {12, 4}, {20, 1}}, {{200000, 24}}, 0},
    };
    for (const auto &shape : shapes) {
        for (uint32_t skew : {0u, 1u}) {
            for (auto dir : {gpu::direction::pack, gpu::direction::unpack, gpu::direction::copy}) {
                random_case c;
                c.layout = std::make_unique<hand_made_layout>(shape.list, shape.dims);
                c.view = c.layout->view();
                c.view.align_log2 = static_cast<uint8_t>(shape.align_log2);
                c.dir = dir;
                c.length = c.view.packed_size;
                c.laid_out_skew = skew;
                EXPECT_EQ(run_case(c, 1), "") << c.view.packed_size << " bytes, skew " << skew
                                              << " direction " << static_cast<int>(dir);
            }
        }
    }
}

}  // namespace
}  // namespace cuda_nc::exec::test
