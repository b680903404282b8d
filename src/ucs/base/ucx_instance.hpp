// The copies of UCX in this process, and which of them a caller uses. A process has several where
// libraries bring their own: an MPI and a Python package, for instance. Handles of one UCX
// (workers, endpoints, datatypes) mean nothing to another.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "ucs/base/compiler.hpp"

namespace cuda_nc {

// The releases whose inside we have looked at: requests, endpoints, tables, the log. What lies
// elsewhere than in UCX's published interface is neither read nor written in any other one.
constexpr unsigned first_known_minor = 13, last_known_minor = 23;
constexpr bool is_known_release(unsigned major, unsigned minor) noexcept {
    return major == 1 && minor >= first_known_minor && minor <= last_known_minor;
}

// A UCX instance: the loaded object that defines ucp_..., with what that object and those it
// depends on define. Lives as long as the process, and so do its objects.
struct ucx_instance {
    unsigned index;  // below max_ucx_instances: for tables with an entry for each
    unsigned major, minor, release;
    void *handle;      // of dlopen
    const void *base;  // where the object is loaded

    // This instance's own `symbol`; null where it has none.
    void *find(const char *symbol) const noexcept;

    bool is_known() const noexcept { return is_known_release(major, minor); }
    // Of what is published.
    bool at_least(unsigned wanted_major, unsigned wanted_minor) const noexcept {
        return major > wanted_major || (major == wanted_major && minor >= wanted_minor);
    }
};

constexpr unsigned max_ucx_instances = 64;

struct caller_ucx {
    const ucx_instance *ucx = nullptr;  // null: no UCX is loaded
    enum class reason {
        by_object,  // the caller's object calls it
        only,       // that object calls none, but the process has no other
        by_handle,  // the handle that the call is given is that UCX's
        guess       // one of several: that of the global scope, or the one found first
    } why = reason::guess;

    // Where not, pass the call on unchanged.
    bool is_certain() const noexcept { return ucx != nullptr && why != reason::guess; }
};

// The instance whose functions the object around `caller` calls (definer.h); `caller` is an address
// in its code, or null where it is not known. Thread safe. The first call for a page of code takes
// microseconds to milliseconds, later ones a few nanoseconds; 100 ns where the caller's object does
// not tell.
caller_ucx ucx_of(const void *caller) noexcept;

// The instance whose libucs, libuct or libucp holds `address`; else as ucx_of().
caller_ucx ucx_around(const void *address) noexcept;

// Null: no UCX has been looked for, or found, so far. Takes no lock and searches nothing.
const ucx_instance *first_known_ucx() noexcept;

namespace ucx_cache {

// Instances by keys. Some that are looked up all the time must not drive each other out. So each
// set has two ways, side by side. Takes no lock.
class keyed_instances {
  public:
    // -1: not known. No key is 0.
    int find(uint64_t key) const noexcept {
        const std::atomic<uint64_t> *set = &ways_[2 * (key % sets)];
        uint64_t answer = set[0].load(std::memory_order_acquire);
        if (CUDA_NC_UNLIKELY(answer >> 8 != key)) {
            answer = set[1].load(std::memory_order_acquire);
        }
        return CUDA_NC_LIKELY(answer >> 8 == key) ? static_cast<int>(answer & 255) : -1;
    }
    // In place of what the key had. The one that was kept last in a full set stays.
    void keep(uint64_t key, unsigned index) noexcept {
        std::atomic<uint64_t> *set = &ways_[2 * (key % sets)];
        const uint64_t last = set[0].load(std::memory_order_relaxed);
        set[1].store(last, std::memory_order_release);
        set[0].store(key << 8 | index, std::memory_order_release);
    }

    static constexpr unsigned sets = 256;

  private:
    std::array<std::atomic<uint64_t>, 2 * sets> ways_{};  // (key << 8) + index; 0: none
};
// By pages of code (page_key()): a page belongs to one object, and that object stays loaded. What
// is found anew costs tens of microseconds.
extern keyed_instances answers;
extern std::array<ucx_instance, max_ucx_instances> instances;
extern std::atomic<unsigned> num_instances;  // that have been found so far
// What was kept for the only one that has been found so far; null: nothing, or there are several.
extern std::atomic<const void *> kept_for_only;
void keep_for_only(const ucx_instance &one, const void *what) noexcept;

inline uint64_t page_key(const void *address) noexcept {
    return (reinterpret_cast<uintptr_t>(address) >> 12) + 1;
}

}  // namespace ucx_cache

// Whether several have been found so far. Costs a load.
inline bool knows_several_ucx() noexcept {
    return ucx_cache::num_instances.load(std::memory_order_relaxed) > 1;
}

// Whether all that have been found so far are of known releases.
inline bool knows_all_ucx() noexcept {
    const unsigned number = ucx_cache::num_instances.load(std::memory_order_acquire);
    for (unsigned i = 0; i < number; ++i) {
        if (!ucx_cache::instances[i].is_known()) {
            return false;
        }
    }
    return true;
}

// The instance of ucx_of() where the answer is certain and known already; else null.
inline const ucx_instance *known_ucx_of(const void *caller) noexcept {
    const int index = ucx_cache::answers.find(ucx_cache::page_key(caller));
    return CUDA_NC_LIKELY(index >= 0) ? &ucx_cache::instances[static_cast<unsigned>(index)]
                                      : nullptr;
}

}  // namespace cuda_nc
