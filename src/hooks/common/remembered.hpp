// Answers that take some tenths of a microsecond to find, kept for most messages' sake.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace cuda_nc::hooks {

// Addresses for which the answer was "not ours", as blocks of 2^block_log2 bytes. Where that is no
// longer true it is believed up to `uses` times more. Thread safe: an update that is lost makes
// that no more than twice as many.
template <unsigned block_log2, unsigned uses = 500>
class remembered {
  public:
    // Whether this is one of them. After so many times it is not, so that it is asked again.
    bool hold(const void *address) noexcept {
        std::atomic<uint64_t> &one = place_of(address);
        const uint64_t seen = one.load(std::memory_order_relaxed);
        if (seen >> uses_bits != block_of(address) || seen % (1 << uses_bits) == 0) {
            return false;
        }
        one.store(seen - 1, std::memory_order_relaxed);
        return true;
    }
    void add(const void *address) noexcept {
        place_of(address).store(block_of(address) << uses_bits | uses, std::memory_order_relaxed);
    }

  private:
    static constexpr unsigned uses_bits = 10;
    static_assert(uses < 1u << uses_bits);
    static_assert(64 - uses_bits >= 57 - block_log2);  // a number of a block

    static uint64_t block_of(const void *address) noexcept {
        return reinterpret_cast<uintptr_t>(address) >> block_log2;
    }
    std::atomic<uint64_t> &place_of(const void *address) noexcept {
        return entries_[block_of(address) % entries_.size()];
    }

    std::array<std::atomic<uint64_t>, 256> entries_{};  // the block, and how often it holds yet
};

}  // namespace cuda_nc::hooks
