#include "uct/cuda_nc/peers.hpp"

#include <new>
#include <utility>

#include "ucs/base/compiler.hpp"
#include "ucs/base/log.hpp"
#include "uct/cuda_nc/protocol/direct_messages.hpp"

namespace cuda_nc::uct {
namespace {

void connected(interface &iface, endpoint &ep) noexcept {
    if (iface.messages != nullptr) {
        iface.messages->endpoint_connected(ep);
    }
}

void admit(interface &iface, endpoint &ep) noexcept try {
    endpoint *&newest = iface.peers[ep.peer];
    ep.older = std::exchange(newest, &ep);
    if (ep.older != nullptr) {
        ep.older->newer = &ep;
    }
    connected(iface, ep);
} catch (const std::bad_alloc &) {
    nc_error("out of memory for a connection: messages between GPUs may take the slower path");
}

// Once: it is no more among the worker's callbacks before it takes the newcomers, so that who comes
// later asks for another call. (UCX's functions take the async block, under which newcomers come:
// they are not called with our lock held.)
unsigned admit_when_progressed(void *arg) {
    interface &iface = *static_cast<interface *>(arg);
    end_newcomers(iface);
    admit_newcomers(iface);
    return 0;
}

}  // namespace

void admit_newcomers(interface &iface) noexcept {
    if (CUDA_NC_LIKELY(!iface.has_newcomers.load(std::memory_order_acquire))) {
        return;
    }
    endpoint *last = nullptr;
    {
        std::lock_guard<std::mutex> guard(iface.endpoints_mutex);
        last = std::exchange(iface.last_newcomer, nullptr);
        iface.has_newcomers.store(false, std::memory_order_relaxed);
    }
    endpoint *first = nullptr;
    while (last != nullptr) {
        endpoint *before = std::exchange(last->older, first);
        first = std::exchange(last, before);
    }
    while (first != nullptr) {
        endpoint &one = *std::exchange(first, first->older);
        one.older = nullptr;
        admit(iface, one);
    }
}

void add_endpoint(interface &iface, endpoint &ep) {
    std::lock_guard<std::mutex> guard(iface.endpoints_mutex);
    iface.endpoints.emplace(ep.carrier, &ep);
}

void add_peer(interface &iface, endpoint &ep) noexcept {
    {
        std::lock_guard<std::mutex> guard(iface.endpoints_mutex);
        if (std::exchange(ep.has_come, true)) {
            return;
        }
        ep.older = std::exchange(iface.last_newcomer, &ep);
        iface.has_newcomers.store(true, std::memory_order_release);
    }
    if (iface.messages != nullptr) {
        iface.ucx->uct_worker_progress_register_safe(iface.super.worker, admit_when_progressed,
                                                     &iface, 0, &iface.newcomers_call);
    }
}

endpoint *endpoint_on(interface &iface, const abi::uct_ep *carrier) noexcept {
    std::lock_guard<std::mutex> guard(iface.endpoints_mutex);
    const auto found = iface.endpoints.find(const_cast<abi::uct_ep *>(carrier));
    return found == iface.endpoints.end() ? nullptr : found->second;
}

endpoint *find_peer(interface &iface, uint64_t identity) noexcept {
    admit_newcomers(iface);
    const auto found = iface.peers.find(identity);
    return found == iface.peers.end() ? nullptr : found->second;
}

void remove_endpoint(interface &iface, endpoint &ep) noexcept {
    const auto known = iface.peers.find(ep.peer);
    if (known != iface.peers.end()) {
        if (ep.older != nullptr) {
            ep.older->newer = ep.newer;
        }
        if (ep.newer != nullptr) {
            ep.newer->older = ep.older;
        } else if (known->second == &ep) {
            known->second = ep.older;
        }
        if (known->second == nullptr) {
            iface.peers.erase(known);
        } else {
            connected(iface, *known->second);  // what was kept goes its way
        }
    }
    std::lock_guard<std::mutex> guard(iface.endpoints_mutex);
    iface.endpoints.erase(ep.carrier);
}

void end_newcomers(interface &iface) noexcept {
    if (iface.newcomers_call != -1) {
        // It makes the number -1, before an async thread may register another call.
        iface.ucx->uct_worker_progress_unregister_safe(iface.super.worker, &iface.newcomers_call);
    }
}

}  // namespace cuda_nc::uct
