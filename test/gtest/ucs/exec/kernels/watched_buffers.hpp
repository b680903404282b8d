// Buffers at a chosen alignment, and the watch over both sides of a move.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "ucs/exec/kernels/emulate.hpp"

namespace cuda_nc::exec::test {

// A buffer whose first byte lies `skew` bytes behind a multiple of 16, filled at random.
struct buffer {
    buffer(size_t size_, uint32_t skew, uint64_t seed) : bytes(size_ + 48), size(size_) {
        std::mt19937_64 random(seed);
        for (char &one : bytes) {
            one = static_cast<char>(random());
        }
        data = bytes.data() + (16 - reinterpret_cast<uintptr_t>(bytes.data()) % 16) + skew;
    }
    std::vector<char> bytes;
    size_t size;
    char *data;
};

// From here on these are read and written; `writes` are the target's so far.
inline void turn_watch(const buffer &source, const buffer &target, std::vector<uint8_t> *writes) {
    watch.read_begin = reinterpret_cast<uintptr_t>(source.data) & ~uintptr_t{15};
    watch.read_end = (reinterpret_cast<uintptr_t>(source.data) + source.size + 15) & ~uintptr_t{15};
    watch.write_begin = reinterpret_cast<uintptr_t>(target.data);
    watch.writes.swap(*writes);
}

inline void watch_buffers(const buffer &source, const buffer &target) {
    watch = access_watch();
    std::vector<uint8_t> writes(target.size);
    turn_watch(source, target, &writes);
}

}  // namespace cuda_nc::exec::test
