// What work that cannot be waited for may still use.
#pragma once

#include <mutex>
#include <new>
#include <vector>

namespace cuda_nc {

// `memory` is never freed, and those who look for leaks find that it is known.
inline void give_up_for_ever(const void *memory) noexcept try {
    static auto *all = new std::vector<const void *>;
    static auto *mutex = new std::mutex;
    std::lock_guard<std::mutex> guard(*mutex);
    all->push_back(memory);
} catch (const std::bad_alloc &) {
    // it is not known, then
}

}  // namespace cuda_nc
