// Random numbers that every rank can repeat: a 64-bit counter generator (splitmix64, Steele,
// Lea and Flood, 2014), seeded by a few numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>

namespace mpi_test {

class random_stream {
  public:
    explicit random_stream(std::initializer_list<uint64_t> seeds) {
        for (uint64_t seed : seeds) {
            state_ = next() ^ (seed * 0x9e3779b97f4a7c15ull);
        }
    }

    uint64_t next() {
        uint64_t z = (state_ += 0x9e3779b97f4a7c15ull);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
        return z ^ (z >> 31);
    }

    // low <= result <= high
    int64_t between(int64_t low, int64_t high) {
        return low + static_cast<int64_t>(next() % static_cast<uint64_t>(high - low + 1));
    }

    bool one_in(uint64_t n) { return next() % n == 0; }

    void fill(void *destination, size_t length) {
        char *out = static_cast<char *>(destination);
        for (; length >= 8; length -= 8, out += 8) {
            uint64_t word = next();
            std::memcpy(out, &word, 8);
        }
        uint64_t word = next();
        std::memcpy(out, &word, length);
    }

  private:
    uint64_t state_ = 0x1234567;
};

}  // namespace mpi_test
