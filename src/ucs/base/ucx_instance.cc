#include "ucs/base/ucx_instance.hpp"

#include <dlfcn.h>

#include <mutex>

#include "ucs/base/definer.h"
#include "ucs/base/loaded_objects.hpp"

namespace cuda_nc {
namespace ucx_cache {

keyed_instances answers;
std::array<ucx_instance, max_ucx_instances> instances;
std::atomic<unsigned> num_instances{0};
std::atomic<const void *> kept_for_only{nullptr};

}  // namespace ucx_cache

namespace {

using ucx_cache::instances;
using ucx_cache::num_instances;
using reason = caller_ucx::reason;

constexpr char prefix[] = "ucp_", marker[] = "ucp_get_version";

std::mutex mutex;  // guards growth of `instances`; the loader is not called under it

const ucx_instance *add(const cuda_nc_definer_t &definer) noexcept {
    ucx_instance made = {0, 0, 0, 0, definer.handle, definer.base};
    using version_f = void (*)(unsigned *, unsigned *, unsigned *);
    reinterpret_cast<version_f>(made.find(marker))(&made.major, &made.minor, &made.release);
    std::lock_guard<std::mutex> guard(mutex);
    const unsigned number = num_instances.load(std::memory_order_relaxed);
    for (unsigned i = 0; i < number; ++i) {
        if (instances[i].base == definer.base) {
            return &instances[i];
        }
    }
    if (number == max_ucx_instances) {
        return nullptr;
    }
    made.index = number;
    instances[number] = made;
    ucx_cache::kept_for_only.store(nullptr, std::memory_order_relaxed);
    num_instances.store(number + 1, std::memory_order_release);
    return &instances[number];
}

// The index of the instance that is taken where nothing tells which one is meant.
std::atomic<unsigned> guess{0};

void find_all() noexcept {
    cuda_nc_visit_definers(
        marker, [](const cuda_nc_definer_t *one, void *) { add(*one); }, nullptr);
    cuda_nc_definer_t global;
    const ucx_instance *found =
        cuda_nc_find_global_definer(marker, &global) != 0 ? add(global) : nullptr;
    guess.store(found != nullptr ? found->index : 0, std::memory_order_relaxed);
}

caller_ucx only_or_guess() noexcept {
    const unsigned number = num_instances.load(std::memory_order_acquire);
    const unsigned best = guess.load(std::memory_order_relaxed);
    return {best < number ? &instances[best] : nullptr, number == 1 ? reason::only : reason::guess};
}

// Pages whose object did not tell, with the low bits of the number of loads until then: the answer
// may be another once more objects are loaded.
constexpr unsigned num_doubts = 64;
std::array<std::atomic<uint64_t>, num_doubts> doubts;

uint64_t doubt_of(uint64_t key) noexcept {
    constexpr unsigned bits = 27;  // beside 36 of a page and one more
    return key << bits | (cuda_nc_count_loads() & ((1u << bits) - 1));
}

__attribute__((noinline)) caller_ucx look_up(const void *caller) noexcept {
    const uint64_t key = ucx_cache::page_key(caller);
    std::atomic<uint64_t> &doubt = doubts[key % num_doubts];
    const uint64_t now = doubt_of(key);
    if (doubt.load(std::memory_order_relaxed) == now &&
        num_instances.load(std::memory_order_relaxed) > 0) {
        return only_or_guess();
    }
    cuda_nc_definer_t definer;
    if (caller != nullptr && cuda_nc_find_definer(caller, prefix, marker, &definer) != 0) {
        const ucx_instance *found = add(definer);
        if (found != nullptr) {
            ucx_cache::answers.keep(key, found->index);
            return {found, reason::by_object};
        }
    }
    find_all();
    doubt.store(now, std::memory_order_relaxed);
    return only_or_guess();
}

}  // namespace

void ucx_cache::keep_for_only(const ucx_instance &one, const void *what) noexcept {
    std::lock_guard<std::mutex> guard(mutex);
    if (num_instances.load(std::memory_order_relaxed) == 1 && one.index == 0) {
        kept_for_only.store(what, std::memory_order_release);
    }
}

void *ucx_instance::find(const char *symbol) const noexcept {
    return dlsym(handle, symbol);
}

caller_ucx ucx_of(const void *caller) noexcept {
    const ucx_instance *known = known_ucx_of(caller);
    return CUDA_NC_LIKELY(known != nullptr) ? caller_ucx{known, reason::by_object}
                                            : look_up(caller);
}

caller_ucx ucx_around(const void *address) noexcept {
    if (const ucx_instance *known = known_ucx_of(address)) {
        return {known, reason::by_object};
    }
    find_all();
    const unsigned number = num_instances.load(std::memory_order_acquire);
    for (unsigned i = 0; i < number; ++i) {
        for (const char *symbol : {"ucs_log_dispatch", "uct_query_components", marker}) {
            const void *own = instances[i].find(symbol);
            if (own != nullptr && same_object(own, address)) {
                return {&instances[i], reason::by_object};
            }
        }
    }
    return ucx_of(address);
}

const ucx_instance *first_known_ucx() noexcept {
    return num_instances.load(std::memory_order_acquire) > 0 ? &instances[0] : nullptr;
}

}  // namespace cuda_nc
