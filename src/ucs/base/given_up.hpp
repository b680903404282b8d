// Memory that can never be freed, because work whose end nobody will see may still use it.
#pragma once

#include <mutex>
#include <new>
#include <vector>

namespace cuda_nc {

// Remembers `memory` until the process ends, so that leak checkers do not report it.
inline void give_up_for_ever(const void *memory) noexcept try {
    static auto *all = new std::vector<const void *>;
    static auto *mutex = new std::mutex;
    std::lock_guard<std::mutex> guard(*mutex);
    all->push_back(memory);
} catch (const std::bad_alloc &) {
    // a leak checker may report it, then
}

}  // namespace cuda_nc
