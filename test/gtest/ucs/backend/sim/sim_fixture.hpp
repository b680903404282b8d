// A simulated platform of its own for each test.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "ucs/gpu/device.hpp"
#include "ucs/backend/sim/options.hpp"

namespace cuda_nc::gpu::test {

class gpu_sim : public testing::Test {
  protected:
    void start(const sim::options &how) {
        std::string why;
        platform_ = sim::make_platform(how, &why);
        ASSERT_NE(platform_, nullptr) << why;
        device_ = platform_->get_device(0);
        create(&stream_);
    }
    void start(const std::string &faults) {
        sim::options how;
        how.memory = 16 << 20;
        how.faults = faults;
        start(how);
    }

    void create(std::unique_ptr<stream> *stream_p) {
        ASSERT_EQ(device_->create_stream(stream_p), UCS_OK);
    }
    std::unique_ptr<event> make_event() {
        std::unique_ptr<event> made;
        EXPECT_EQ(device_->create_event(&made), UCS_OK);
        return made;
    }
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
    ucs_status_t finish(stream &on) {
        std::unique_ptr<event> mark = make_event();
        ucs_status_t status = on.record(*mark);
        return status != UCS_OK ? status : mark->synchronize();
    }
    static transfer blocks(char *base, char *packed, uint64_t count, uint64_t length,
                           int64_t stride) {
        transfer work;
        work.layout.kind = shape::strided;
        work.layout.num_blocks = work.layout.num_dims = 1;
        work.layout.list_size = work.layout.block_length = length;
        work.layout.packed_size = work.length = count * length;
        work.layout.by_list = work.layout.by_block = fast_divide(length);
        work.layout.dims[0] = {count, stride};
        work.layout.by_dim[0] = fast_divide(count);
        work.base = base;
        work.packed = packed;
        return work;
    }

    std::unique_ptr<platform> platform_;  // destroyed after all that comes from it
    device *device_ = nullptr;
    std::unique_ptr<stream> stream_;
};

}  // namespace cuda_nc::gpu::test
