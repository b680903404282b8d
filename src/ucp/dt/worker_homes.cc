#include "ucp/dt/worker_homes.hpp"

#include <cstdint>
#include <cstring>

namespace cuda_nc::dt {
namespace {

ucx_cache::keyed_instances homes;

// Of memory of malloc, which where it is large has the same lowest bits. Never 0.
uint64_t key_of(ucp_worker_h worker) noexcept {
    const uint64_t place = reinterpret_cast<uintptr_t>(worker) >> 4;
    return (place ^ place >> 8) + 1;
}

}  // namespace

void keep_home(ucp_worker_h worker, const ucx_instance &ucx) noexcept {
    homes.keep(key_of(worker), ucx.index);
}

caller_ucx ucx_of_worker(ucp_worker_h worker, const void *caller) noexcept {
    // The caller is asked first, so that its next calls, where there is one UCX, ask nobody.
    const caller_ucx by_caller = ucx_of(caller);
    const int index = knows_several_ucx() ? homes.find(key_of(worker)) : -1;
    return index < 0 ? by_caller
                     : caller_ucx{&ucx_cache::instances[static_cast<unsigned>(index)],
                                  caller_ucx::reason::by_handle};
}

// Its first word is its worker, in the releases that we know. Whose endpoint it is shows only then.
caller_ucx ucx_of_endpoint(ucp_ep_h ep, const void *caller) noexcept {
    ucp_worker_h worker = nullptr;
    if (ep != nullptr && knows_several_ucx() && knows_all_ucx()) {
        std::memcpy(&worker, static_cast<const void *>(ep), sizeof(worker));
    }
    return ucx_of_worker(worker, caller);
}

}  // namespace cuda_nc::dt
