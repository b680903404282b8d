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
#include "ucs/backend/sim/user_stream.hpp"

namespace cuda_nc::gpu::sim {
namespace {

struct owned_memory {
    std::mutex mutex;
    std::map<void *, std::unique_ptr<memory>> allocations;
};

struct owned_streams {
    std::mutex mutex;
    std::map<void *, std::shared_ptr<user_stream>> all;
};

owned_streams &get_streams() {
    static auto *only = new owned_streams;
    return *only;
}

platform *simulated() noexcept {
    platform &on = platform::instance();
    return std::strcmp(on.name(), "sim") == 0 ? &on : nullptr;
}

owned_memory &get_owned() {
    static auto *only = new owned_memory;  // used during exit
    return *only;
}

void *allocate(size_t size) {
    platform *sim = simulated();
    if (sim == nullptr) {
        return nullptr;
    }
    platform &on = *sim;
    device *where = on.get_device(static_cast<int>(config().sim_device));
    if (where == nullptr) {
        nc_warn_once(
            "UCX_CUDA_NC_SIM_DEVICE=%u: there are %d simulated GPUs, numbered from 0; "
            "cuda_nc_sim_malloc returns NULL",
            config().sim_device, on.num_devices());
    }
    std::unique_ptr<memory> made;
    const bool is_managed = config().sim_shared == "managed";
    if (where == nullptr ||
        (is_managed ? allocate_managed(on, where->properties().ordinal, size, &made)
                    : where->allocate(size, &made)) != UCS_OK) {
        return nullptr;
    }
    void *address = made->address();
    if (config().sim_shared == "n") {
        set_sharing(on, address, sharing::none);
    } else if (config().sim_shared == "pieces") {
        constexpr size_t piece = 64 << 10;
        set_sharing(on, address, sharing::by_descriptor, piece);
    }
    owned_memory &owned = get_owned();
    std::lock_guard<std::mutex> guard(owned.mutex);
    owned.allocations.emplace(address, std::move(made));
    return address;
}

void *create_stream(int ordinal) {
    platform *on = simulated();
    std::shared_ptr<user_stream> made = on != nullptr ? make_user_stream(*on, ordinal) : nullptr;
    if (made == nullptr) {
        return nullptr;
    }
    void *handle = made.get();
    owned_streams &owned = get_streams();
    std::lock_guard<std::mutex> guard(owned.mutex);
    owned.all.emplace(handle, std::move(made));
    return handle;
}

ucs_status_t synchronize(const void *handle) {
    if (handle != nullptr) {
        const std::shared_ptr<user_stream> one = find_user_stream(handle);
        return one != nullptr ? one->synchronize() : UCS_ERR_INVALID_PARAM;
    }
    platform *on = simulated();
    ucs_status_t status = on != nullptr ? UCS_OK : UCS_ERR_NO_DEVICE;
    for (int i = 0; on != nullptr && i < on->num_devices(); ++i) {
        const ucs_status_t its = default_stream(*on, i)->synchronize();
        status = status == UCS_OK ? its : status;
    }
    return status;
}

void destroy_stream(void *handle) {
    std::shared_ptr<user_stream> last;
    owned_streams &owned = get_streams();
    {
        std::lock_guard<std::mutex> guard(owned.mutex);
        const auto found = owned.all.find(handle);
        if (found != owned.all.end()) {
            last = std::move(found->second);
            owned.all.erase(found);
        }
    }
    if (last == nullptr && handle != nullptr) {
        nc_error("cuda_nc_sim_stream_destroy: %p was not given by cuda_nc_sim_stream_create",
                 handle);
    }
}

}  // namespace
}  // namespace cuda_nc::gpu::sim

void *cuda_nc_sim_stream_create(int device) {
    try {
        return cuda_nc::gpu::sim::create_stream(device);
    } catch (...) {
        return nullptr;
    }
}

ucs_status_t cuda_nc_sim_stream_synchronize(void *stream) {
    try {
        return cuda_nc::gpu::sim::synchronize(stream);
    } catch (...) {
        return UCS_ERR_NO_MEMORY;
    }
}

void cuda_nc_sim_stream_destroy(void *stream) {
    cuda_nc::gpu::sim::destroy_stream(stream);
}

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
