// Plain stand-ins that share no code with what is tested: random datatypes as lists of blocks,
// buffers in memory of any kind, packing and unpacking a byte at a time.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "cuda_nc/cuda_nc.h"
#include "ucs/gpu/device.hpp"
#include "ucs/layout/layout.hpp"

namespace cuda_nc::test {

using bytes = std::vector<unsigned char>;
using random_engine = std::mt19937_64;

inline uint64_t uniform(random_engine &random, uint64_t least, uint64_t most) {
    return least + random() % (most - least + 1);
}

inline bytes random_bytes(random_engine &random, size_t size) {
    bytes result(size);
    for (size_t i = 0; i < size; i += 8) {
        uint64_t word = random();
        std::memcpy(&result[i], &word, std::min<size_t>(8, size - i));
    }
    return result;
}

// To or from memory of that GPU; returns when the bytes are there. Injected faults spare it.
inline void gpu_copy(int device, void *target, const void *source, size_t length) {
    if (std::strcmp(gpu::platform::instance().name(), "sim") == 0) {
        cuda_nc_sim_memcpy(target, source, length);
        return;
    }
    gpu::device *one = gpu::platform::instance().get_device(device);
    std::unique_ptr<gpu::stream> stream;
    std::unique_ptr<gpu::event> end;
    ASSERT_EQ(one->create_stream(&stream), UCS_OK);
    ASSERT_EQ(one->create_event(&end), UCS_OK);
    ASSERT_EQ(stream->copy(target, source, length), UCS_OK);
    ASSERT_EQ(stream->record(*end), UCS_OK);
    ASSERT_EQ(end->synchronize(), UCS_OK);
}

// Bytes [displacement, displacement + length), repeated `count` times, `extent` bytes apart.
struct datatype {
    std::vector<cuda_nc_block_t> blocks;
    ptrdiff_t extent = 0;
    size_t count = 0;

    size_t element_size() const {
        size_t size = 0;
        for (const cuda_nc_block_t &one : blocks) {
            size += one.length;
        }
        return size;
    }

    // Displacement of each packed byte, in packed order.
    std::vector<ptrdiff_t> map() const {
        std::vector<ptrdiff_t> result;
        result.reserve(element_size() * count);
        for (size_t i = 0; i < count; ++i) {
            for (const cuda_nc_block_t &one : blocks) {
                for (size_t k = 0; k < one.length; ++k) {
                    result.push_back(static_cast<ptrdiff_t>(i) * extent + one.displacement +
                                     static_cast<ptrdiff_t>(k));
                }
            }
        }
        return result;
    }

    layout_ref make_layout() const {
        layout_builder builder;
        for (const cuda_nc_block_t &one : blocks) {
            builder.append(one.displacement, one.length);
        }
        return builder.finish()->repeat(count, extent);
    }
};

// `count` words of 8 bytes, `stride` bytes from one to the next.
inline datatype strided_words(ptrdiff_t stride, size_t count) {
    return {{{0, 8}}, stride, count};
}

// `count` times 40 words of 8 bytes, at distances that differ.
inline datatype uneven_words(size_t count) {
    datatype made;
    for (ptrdiff_t i = 0; i < 40; ++i) {
        made.blocks.push_back({i * 24 + i % 3, 8});
    }
    made.extent = 1024;
    made.count = count;
    return made;
}

// At least about `size` packed bytes where it is not 0; no byte twice. Regular or not, forwards or
// backwards, in order or not.
inline datatype random_datatype(random_engine &random, size_t size) {
    datatype result;
    size_t num_blocks = uniform(random, 1, 3) == 1 ? 1 : uniform(random, 2, 70);
    size_t longest = size < 64 ? 3 : (1u << uniform(random, 0, 9));
    bool uniform_length = random() % 2 == 0, uniform_gap = random() % 2 == 0;
    size_t unit = 1u << uniform(random, 0, 3);
    size_t length = uniform(random, 1, longest) * unit;
    size_t gap = uniform(random, 0, 2 * longest) * unit;
    ptrdiff_t position = static_cast<ptrdiff_t>(uniform(random, 0, 64) * unit) - 200;
    size_t packed = 0;
    for (size_t i = 0; i < num_blocks; ++i) {
        result.blocks.push_back({position, length});
        packed += length;
        position += static_cast<ptrdiff_t>(length + gap);
        length = uniform_length ? length : uniform(random, 0, longest) * unit;
        gap = uniform_gap ? gap : uniform(random, 0, 2 * longest) * unit;
    }
    result.extent = position - result.blocks[0].displacement +
                    static_cast<ptrdiff_t>(uniform(random, 0, 16) * unit);
    if (random() % 4 == 0) {
        std::shuffle(result.blocks.begin(), result.blocks.end(), random);
    }
    if (random() % 4 == 0) {
        result.extent = -result.extent;
    }
    result.count = packed == 0 ? 1 : (size + packed - 1) / packed;
    return result;
}

// Memory of one kind that holds a datatype's bytes, surrounded by bytes that nobody may change.
class buffer {
  public:
    enum class place { host, device0, device1 };

    buffer(const datatype &type, place where, random_engine &random) : map_(type.map()) {
        ptrdiff_t low = 0, high = 0;
        for (ptrdiff_t one : map_) {
            low = std::min(low, one);
            high = std::max(high, one + 1);
        }
        start_ = 64 + random() % 16 - low;
        expected_ = random_bytes(random, static_cast<size_t>(start_ + high + 64));
        if (where == place::host) {
            host_ = expected_;
            memory_ = host_.data();
        } else {
            info_.kind = gpu::memory_kind::device;
            info_.device = where == place::device0 ? 0 : 1;
            gpu::device *device = gpu::platform::instance().get_device(info_.device);
            EXPECT_EQ(device->allocate(expected_.size(), &device_), UCS_OK);
            memory_ = reinterpret_cast<unsigned char *>(device_->address());
            gpu_copy(info_.device, memory_, expected_.data(), expected_.size());
        }
    }

    void *base() const { return memory_ + start_; }
    const gpu::memory_info &info() const { return info_; }
    size_t packed_size() const { return map_.size(); }

    bytes packed() const {
        bytes result(map_.size());
        for (size_t i = 0; i < map_.size(); ++i) {
            result[i] = expected_[static_cast<size_t>(start_ + map_[i])];
        }
        return result;
    }

    // What the buffer must hold once these packed bytes have arrived.
    void expect(size_t offset, const unsigned char *packed, size_t length) {
        for (size_t i = 0; i < length; ++i) {
            expected_[static_cast<size_t>(start_ + map_[offset + i])] = packed[i];
        }
    }

    // Every byte, gaps and surroundings included.
    ::testing::AssertionResult is_as_expected() const {
        bytes found(expected_.size());
        if (device_ != nullptr) {
            gpu_copy(info_.device, found.data(), memory_, found.size());
        } else {
            found = host_;
        }
        for (size_t i = 0; i < found.size(); ++i) {
            if (found[i] != expected_[i]) {
                return ::testing::AssertionFailure()
                       << "byte " << static_cast<ptrdiff_t>(i) - start_ << " of the buffer is "
                       << int(found[i]) << ", not " << int(expected_[i]);
            }
        }
        return ::testing::AssertionSuccess();
    }

  private:
    std::vector<ptrdiff_t> map_;
    ptrdiff_t start_ = 0;
    bytes expected_, host_;
    std::unique_ptr<gpu::memory> device_;
    unsigned char *memory_ = nullptr;
    gpu::memory_info info_;
};

// Whether this machine has, or simulates, that memory.
inline bool is_there(buffer::place where) {
    int num_devices = gpu::platform::instance().num_devices();
    return where == buffer::place::host || num_devices > (where == buffer::place::device0 ? 0 : 1);
}

inline const char *name_of(buffer::place where) {
    switch (where) {
        case buffer::place::host:
            return "host";
        case buffer::place::device0:
            return "device0";
        default:
            return "device1";
    }
}

struct fragment {
    size_t offset, length;
};

// [0, size) cut at random; lengths up to `longest`.
inline std::vector<fragment> cut(random_engine &random, size_t size, size_t longest) {
    std::vector<fragment> result;
    for (size_t offset = 0; offset < size;) {
        size_t length = std::min<size_t>(size - offset, uniform(random, 1, longest));
        result.push_back({offset, length});
        offset += length;
    }
    return result;
}

// The lengths of a test's fragments: from bytes to more than a transport's.
inline size_t random_longest(random_engine &random, size_t size) {
    static const size_t choices[] = {100, 1000, 8200, 70000};
    size_t longest = choices[random() % 4];
    return std::max(longest, size / 300);
}

}  // namespace cuda_nc::test
