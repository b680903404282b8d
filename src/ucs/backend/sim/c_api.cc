// cuda_nc_sim_malloc() and its family: simulated GPU memory for test programs.
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <new>

#include "cuda_nc/cuda_nc.h"
#include "ucs/base/log.hpp"
#include "ucs/base/settings.hpp"
#include "ucs/gpu/device.hpp"
#include "ucs/backend/sim/options.hpp"

namespace cuda_nc::gpu::sim {
namespace {

struct owned_memory {
    std::mutex mutex;
    std::map<void *, std::unique_ptr<memory>> allocations;
};

owned_memory &get_owned() {
    static auto *only = new owned_memory;  // used during exit
    return *only;
}

void *allocate(size_t size) {
    platform &on = platform::instance();
    if (std::strcmp(on.name(), "sim") != 0) {
        return nullptr;
    }
    device *where = on.get_device(static_cast<int>(config().sim_device));
    if (where == nullptr) {
        nc_warn_once(
            "UCX_CUDA_NC_SIM_DEVICE=%u: there are %d simulated GPUs, numbered from 0; "
            "cuda_nc_sim_malloc returns NULL",
            config().sim_device, on.num_devices());
    }
    std::unique_ptr<memory> made;
    if (where == nullptr || where->allocate(size, &made) != UCS_OK) {
        return nullptr;
    }
    void *address = made->address();
    owned_memory &owned = get_owned();
    std::lock_guard<std::mutex> guard(owned.mutex);
    owned.allocations.emplace(address, std::move(made));
    return address;
}

}  // namespace
}  // namespace cuda_nc::gpu::sim

void *cuda_nc_sim_malloc(size_t size) {
    try {
        return cuda_nc::gpu::sim::allocate(size);
    } catch (...) {
        return nullptr;
    }
}

void cuda_nc_sim_free(void *address) {
    if (address == nullptr) {
        return;
    }
    auto &owned = cuda_nc::gpu::sim::get_owned();
    std::unique_ptr<cuda_nc::gpu::memory> last;
    {
        std::lock_guard<std::mutex> guard(owned.mutex);
        auto found = owned.allocations.find(address);
        if (found == owned.allocations.end()) {
            nc_error("cuda_nc_sim_free: %p was not given by cuda_nc_sim_malloc", address);
            return;
        }
        last = std::move(found->second);
        owned.allocations.erase(found);
    }
}

void cuda_nc_sim_memcpy(void *destination, const void *source, size_t length) {
    cuda_nc::gpu::platform &on = cuda_nc::gpu::platform::instance();
    if (std::strcmp(on.name(), "sim") == 0) {
        cuda_nc::gpu::sim::copy_now(on, destination, source, length);
    } else {
        std::memmove(destination, source, length);
    }
}
