// The calls of the host executor on ranges of a layout, against the place of every single byte.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "ucs/exec/host/hand_made_layout.hpp"
#include "ucs/exec/host/host_executor.hpp"

namespace cuda_nc::exec::test {

constexpr uint8_t guard = 0xa5;
constexpr size_t guard_bytes = 160;

// The displacement of every packed byte, one by one.
inline std::vector<int64_t> byte_map(const hand_made_layout &layout) {
    std::vector<int64_t> bytes;
    for (const piece &one : layout.map()) {
        for (uint64_t i = 0; i < one.length; ++i) {
            bytes.push_back(one.displacement + static_cast<int64_t>(i));
        }
    }
    return bytes;
}

// A buffer that holds the span of a layout at some alignment, and nothing more: the last byte of
// the span is the last of its allocation, for the address sanitizer.
class span_buffer {
  public:
    span_buffer(const hand_made_layout &layout, size_t shift)
        : lower_(layout.lower()),
          size_(static_cast<size_t>(layout.upper() - layout.lower())),
          bytes_(new uint8_t[size_ + shift]),
          start_(bytes_.get() + shift) {}

    // What displacement 0 stands for; may lie outside of the allocation.
    void *base() const {
        return reinterpret_cast<void *>(reinterpret_cast<uintptr_t>(start_) -
                                        static_cast<uintptr_t>(lower_));
    }
    uint8_t &at(int64_t displacement) const { return start_[displacement - lower_]; }
    uint8_t *begin() const { return start_; }
    size_t size() const { return size_; }

  private:
    int64_t lower_;
    size_t size_;
    std::unique_ptr<uint8_t[]> bytes_;
    uint8_t *start_;
};

inline void fill(std::mt19937_64 &random, uint8_t *bytes, size_t size) {
    uint64_t state = random();
    for (size_t i = 0; i < size; i += sizeof(state)) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        const uint64_t mixed = state ^ (state >> 29);
        std::memcpy(bytes + i, &mixed, std::min(sizeof(mixed), size - i));
    }
}

inline void expect_same(const uint8_t *found, const uint8_t *expected, size_t size,
                        const char *call, uint64_t offset, uint64_t length) {
    if (size != 0 && std::memcmp(found, expected, size) != 0) {
        const size_t at =
            static_cast<size_t>(std::mismatch(found, found + size, expected).first - found);
        FAIL() << call << " differs first at byte " << at << " of " << size << "; offset " << offset
               << " length " << length;
    }
}

// One range of a layout, all three calls, against the byte map.
inline void check_range(const hand_made_layout &layout, const std::vector<int64_t> &bytes,
                        uint64_t offset, uint64_t length, std::mt19937_64 &random) {
    const int64_t *map = bytes.data() + offset;
    span_buffer buffer(layout, random() % 65);
    fill(random, buffer.begin(), buffer.size());

    const size_t before = guard_bytes + random() % 65;
    std::vector<uint8_t> packed(before + length + guard_bytes, guard);
    std::vector<uint8_t> expected = packed;
    for (uint64_t i = 0; i < length; ++i) {
        expected[before + i] = buffer.at(map[i]);
    }
    host_pack(layout.view(), buffer.base(), offset, packed.data() + before, length);
    expect_same(packed.data(), expected.data(), packed.size(), "pack", offset, length);

    // exactly `length` bytes are readable, at any alignment
    const size_t shift = random() % 65;
    std::unique_ptr<uint8_t[]> exact(new uint8_t[shift + length]);
    uint8_t *source = exact.get() + shift;
    fill(random, source, length);
    expected.assign(buffer.begin(), buffer.begin() + buffer.size());
    for (uint64_t i = 0; i < length; ++i) {
        expected[static_cast<size_t>(map[i] - layout.lower())] = source[i];
    }
    host_unpack(layout.view(), buffer.base(), offset, source, length);
    expect_same(buffer.begin(), expected.data(), expected.size(), "unpack", offset, length);

    span_buffer target(layout, random() % 65);
    fill(random, target.begin(), target.size());
    expected.assign(target.begin(), target.begin() + target.size());
    for (uint64_t i = 0; i < length; ++i) {
        expected[static_cast<size_t>(map[i] - layout.lower())] = buffer.at(map[i]);
    }
    host_copy(layout.view(), buffer.base(), target.base(), offset, length);
    expect_same(target.begin(), expected.data(), expected.size(), "copy", offset, length);
}

// Pieces by one cursor, most of them in order.
inline void check_cursor(const hand_made_layout &layout, const std::vector<int64_t> &bytes,
                         std::mt19937_64 &random) {
    const uint64_t size = bytes.size(), longest = 1 + random() % size;
    span_buffer buffer(layout, random() % 65);
    fill(random, buffer.begin(), buffer.size());
    std::vector<uint8_t> packed(size), expected(size);
    for (uint64_t i = 0; i < size; ++i) {
        expected[i] = buffer.at(bytes[i]);
    }
    host_cursor cursor;
    for (uint64_t offset = 0, piece = 0; offset < size && piece < 200; ++piece) {
        const uint64_t length = std::min(size - offset, 1 + random() % longest);
        cursor.pack(layout.view(), buffer.base(), offset, packed.data() + offset, length);
        expect_same(packed.data() + offset, expected.data() + offset, length, "cursor's pack",
                    offset, length);
        offset = random() % 8 == 0 ? random() % size : offset + length;
    }
    fill(random, packed.data(), size);
    expected.assign(buffer.begin(), buffer.begin() + buffer.size());
    for (uint64_t i = 0; i < size; ++i) {
        expected[static_cast<size_t>(bytes[i] - layout.lower())] = packed[i];
    }
    cursor.begin();
    for (uint64_t offset = 0; offset < size;) {  // in order: blocks may overlap
        const uint64_t length = std::min(size - offset, 1 + random() % longest);
        cursor.unpack(layout.view(), buffer.base(), offset, packed.data() + offset, length);
        offset += length;
    }
    expect_same(buffer.begin(), expected.data(), expected.size(), "cursor's unpack", 0, size);
}

}  // namespace cuda_nc::exec::test
