// Of a type: for which numbers of its elements it is known whether some byte is of two blocks. To
// look through the blocks may take long, and a program receives with a few numbers in turns.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace cuda_nc::dt {

// Thread safe: threads that ask for the same number at the same time may all look.
class known_overlaps {
  public:
    static constexpr size_t most = 8;  // numbers; the oldest one is forgotten for another

    // What `look` has said, or says, of `count` elements; it is called where that is not known.
    // Throws what it throws.
    template <typename Look>
    bool find(uint64_t count, Look &&look) {
        for (const std::atomic<uint64_t> &one : known_) {
            const uint64_t known = one.load(std::memory_order_relaxed);
            if (known >> 1 == count) {
                return (known & 1) != 0;
            }
        }
        const bool found = look();
        const size_t place = next_.fetch_add(1, std::memory_order_relaxed) % most;
        known_[place].store(count << 1 | (found ? 1 : 0), std::memory_order_relaxed);
        return found;
    }

  private:
    // Twice a number, and 1 where its elements overlap. So 0 is known at first: no elements do not.
    std::array<std::atomic<uint64_t>, most> known_{};
    std::atomic<size_t> next_{0};
};

}  // namespace cuda_nc::dt
