// Bytes to GPU memory and from there.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>

#include "ucs/gpu/device.hpp"

namespace cuda_nc::uct {

inline void copy(void *target, const void *source, size_t bytes) {
    std::unique_ptr<gpu::stream> stream;
    std::unique_ptr<gpu::event> done;
    gpu::device *device = gpu::platform::instance().get_device(0);
    ASSERT_EQ(device->create_stream(&stream), UCS_OK);
    ASSERT_EQ(device->create_event(&done), UCS_OK);
    ASSERT_EQ(stream->copy(target, source, bytes), UCS_OK);
    ASSERT_EQ(stream->record(*done), UCS_OK);
    ASSERT_EQ(done->synchronize(), UCS_OK);
}

}  // namespace cuda_nc::uct
