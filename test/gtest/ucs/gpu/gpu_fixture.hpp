// What the tests of the GPU interface share. Most run on every platform of this machine: the
// simulated one always, CUDA where there is a driver.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "ucs/backend/backends.hpp"
#include "ucs/gpu/device.hpp"
#include "ucs/backend/sim/options.hpp"

namespace cuda_nc::gpu::test {

// Lives until the process ends; null, with a reason, where there is no GPU.
inline platform *platform_called(const std::string &name, std::string *why_p) {
    static std::string why;
    if (name == "sim") {
        static std::unique_ptr<platform> only = sim::make_platform({}, &why);
        *why_p = why;
        return only.get();
    }
#ifdef HAVE_CUDA
    static auto *only = make_cuda_platform(true, &why).release();
    if (only != nullptr && only->num_devices() == 0) {
        why = only->why();
    }
    *why_p = why;
    return only != nullptr && only->num_devices() != 0 ? only : nullptr;
#else
    *why_p = "built without CUDA";
    return nullptr;
#endif
}

// Machines without a driver do not count CUDA's tests as skipped.
inline std::vector<std::string> platform_names() {
    std::vector<std::string> names = {"sim"};
#ifdef HAVE_CUDA
    std::string why;
    if (make_cuda_platform(true, &why) != nullptr) {
        names.push_back("cuda");
    }
#endif
    return names;
}

struct name_of_platform {
    std::string operator()(const testing::TestParamInfo<std::string> &info) const {
        return info.param;
    }
};

class gpu_test : public testing::TestWithParam<std::string> {
  protected:
    void SetUp() override {
        std::string why;
        platform_ = platform_called(GetParam(), &why);
        if (platform_ == nullptr) {
            GTEST_SKIP() << "no " << GetParam() << " platform: " << why;
        }
        device_ = platform_->get_device(0);
        ASSERT_NE(device_, nullptr);
        ASSERT_EQ(device_->create_stream(&stream_), UCS_OK);
        RecordProperty("seed", std::to_string(seed_));
    }

    bool simulated() const { return GetParam() == "sim"; }

    std::unique_ptr<memory> allocate(size_t size) {
        std::unique_ptr<memory> made;
        EXPECT_EQ(device_->allocate(size, &made), UCS_OK);
        return made;
    }
    std::unique_ptr<memory> allocate_pinned(size_t size) {
        std::unique_ptr<memory> made;
        EXPECT_EQ(device_->allocate_pinned(size, &made), UCS_OK);
        return made;
    }
    std::unique_ptr<event> make_event() {
        std::unique_ptr<event> made;
        EXPECT_EQ(device_->create_event(&made), UCS_OK);
        return made;
    }

    // Records a mark behind all work of `on` and waits for it.
    ucs_status_t finish(stream &on) {
        std::unique_ptr<event> mark = make_event();
        ucs_status_t status = on.record(*mark);
        return status != UCS_OK ? status : mark->synchronize();
    }

    void put(void *destination, const std::vector<char> &bytes) {
        ASSERT_EQ(stream_->copy(destination, bytes.data(), bytes.size()), UCS_OK);
        ASSERT_EQ(finish(*stream_), UCS_OK);
    }
    std::vector<char> get(const void *source, size_t size) {
        std::vector<char> bytes(size);
        EXPECT_EQ(stream_->copy(bytes.data(), source, size), UCS_OK);
        EXPECT_EQ(finish(*stream_), UCS_OK);
        return bytes;
    }

    // One block of `length` bytes at displacement 0: the plainest of layouts.
    static layout_view one_block(uint64_t length) {
        layout_view view;
        view.kind = shape::contiguous;
        view.packed_size = view.list_size = view.block_length = length;
        view.num_blocks = 1;
        view.by_list = view.by_block = fast_divide(length);
        return view;
    }
    // `count` blocks of `length` bytes, `stride` bytes apart.
    static layout_view strided(uint64_t count, uint64_t length, int64_t stride) {
        layout_view view = one_block(length);
        view.kind = shape::strided;
        view.packed_size = count * length;
        view.num_dims = 1;
        view.dims[0] = {count, stride};
        view.by_dim[0] = fast_divide(count);
        return view;
    }
    // All of `view`, from or to `packed`.
    static transfer all_of(direction dir, const layout_view &view, char *base, char *packed) {
        transfer work;
        work.dir = dir;
        work.layout = view;
        work.base = base;
        work.packed = packed;
        work.length = view.packed_size;
        return work;
    }

    static std::vector<char> random_bytes(size_t size, std::mt19937_64 &random) {
        std::vector<char> bytes(size);
        for (char &byte : bytes) {
            byte = static_cast<char>(random());
        }
        return bytes;
    }

    static constexpr uint64_t seed_ = 20261121;
    platform *platform_ = nullptr;
    device *device_ = nullptr;
    std::unique_ptr<stream> stream_;
    std::mt19937_64 random_{seed_};
};

}  // namespace cuda_nc::gpu::test
