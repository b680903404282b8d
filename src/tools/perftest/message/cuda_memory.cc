#include "tools/perftest/message/cuda_memory.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cstdint>

#include <fmt/core.h>

#include "tools/perftest/support/run_error.hpp"
#include "ucs/base/bits.hpp"

namespace cuda_nc::tools {
namespace {

// What the driver's functions take, which a build without CUDA has no header for.
struct memory_location {
    int type, ordinal;
};
struct allocation_properties {
    int type, handle_types;
    memory_location location;
    void *windows;
    unsigned char flags[8];
};
static_assert(sizeof(allocation_properties) == 32, "CUmemAllocationProp");
struct pool_properties {
    int type, handle_types;
    memory_location location;
    void *windows;
    size_t most;  // bytes; 0: the system's limit
    unsigned char reserved[56];
};
static_assert(sizeof(pool_properties) == 88, "CUmemPoolProps");
struct access_description {
    memory_location location;
    int flags;
};
static_assert(sizeof(access_description) == 12, "CUmemAccessDesc");
constexpr int pinned_allocation = 1, by_file_descriptor = 1, on_device = 1, read_and_write = 3;

void must(int status, const char *what) {
    if (status != 0) {
        throw run_error(fmt::format("{} failed: CUDA error {}", what, status));
    }
}

uint64_t number(const void *address) {
    return reinterpret_cast<uintptr_t>(address);
}

class cuda_driver {
  public:
    explicit cuda_driver(int ordinal) : library_(dlopen("libcuda.so.1", RTLD_NOW)) {
        if (library_ == nullptr) {
            throw run_error("there is no GPU: no CUDA driver (libcuda.so.1) is installed");
        }
        void *context = nullptr;
        int devices = 0;
        call("cuInit", 0U);
        call("cuDeviceGetCount", &devices);
        if (ordinal < 0 || ordinal >= devices) {
            throw run_error(fmt::format("there is no GPU {}: {} found", ordinal, devices));
        }
        call("cuDeviceGet", &device_, ordinal);
        call("cuDevicePrimaryCtxRetain", &context, device_);
        context_ = context;
        enter();
    }
    // Makes the GPU's context the caller's.
    void enter() const { call("cuCtxSetCurrent", context_); }
    int device() const noexcept { return device_; }

    template <class... Arguments>
    int try_call(const char *name, Arguments... arguments) const {
        auto *function = reinterpret_cast<int (*)(Arguments...)>(dlsym(library_, name));
        if (function == nullptr) {
            throw run_error(fmt::format("the CUDA driver has no {}", name));
        }
        return function(arguments...);
    }
    template <class... Arguments>
    void call(const char *name, Arguments... arguments) const {
        must(try_call(name, arguments...), name);
    }

  private:
    void *const library_;
    int device_ = 0;
    void *context_ = nullptr;
};

const cuda_driver &get_driver(int ordinal) {
    static const cuda_driver only(ordinal);
    return only;
}

class cuda_memory : public message_memory {
  public:
    explicit cuda_memory(int ordinal) : driver_(get_driver(ordinal)) { driver_.enter(); }
    void write(size_t offset, const void *source, size_t size) override {
        copy(address_ + offset, source, size);
    }
    void read(size_t offset, void *target, size_t size) override {
        copy(target, address_ + offset, size);
    }

  protected:
    void is_at(uint64_t address) { address_ = reinterpret_cast<char *>(address); }

    const cuda_driver &driver_;

  private:
    void copy(void *target, const void *source, size_t size) const {
        driver_.enter();
        driver_.call("cuMemcpy", number(target), number(source), size);
        driver_.call("cuCtxSynchronize");
    }
};

class plain_memory final : public cuda_memory {
  public:
    plain_memory(const std::string &kind, int ordinal, size_t size) : cuda_memory(ordinal) {
        constexpr unsigned attach_global = 1;
        uint64_t address = 0;
        const int status =
            kind == "managed" ? driver_.try_call("cuMemAllocManaged", &address, size, attach_global)
                              : driver_.try_call("cuMemAlloc_v2", &address, size);
        if (status != 0) {
            no_memory(kind == "managed" ? kind : "GPU", size);
        }
        is_at(address);
    }
    ~plain_memory() override { driver_.try_call("cuMemFree_v2", number(address_)); }
};

// Of the GPU's own pool, or of one that other processes may import by a file descriptor.
class pool_memory final : public cuda_memory {
  public:
    pool_memory(const std::string &kind, int ordinal, size_t size) : cuda_memory(ordinal) {
        void *pool = nullptr;  // one that is made here stays until the process ends
        if (kind == "shared-pool") {
            pool_properties properties = {};
            properties.type = pinned_allocation;
            properties.handle_types = by_file_descriptor;
            properties.location = {on_device, driver_.device()};
            driver_.call("cuMemPoolCreate", &pool, &properties);
        } else {
            driver_.call("cuDeviceGetMemPool", &pool, driver_.device());
        }
        uint64_t address = 0;
        if (driver_.try_call("cuMemAllocFromPoolAsync", &address, size, pool, stream) != 0) {
            no_memory(kind, size);
        }
        driver_.call("cuStreamSynchronize", stream);
        is_at(address);
    }
    ~pool_memory() override { driver_.try_call("cuMemFreeAsync", number(address_), stream); }

  private:
    static constexpr void *stream = nullptr;
};

class virtual_memory final : public cuda_memory {
  public:
    virtual_memory(int ordinal, size_t size)
        : cuda_memory(ordinal), size_(round_up(std::max<size_t>(size, 1), piece)) {
        uint64_t address = 0;
        driver_.call("cuMemAddressReserve", &address, size_, size_t{0}, uint64_t{0}, uint64_t{0});
        is_at(address);
        const memory_location here = {on_device, driver_.device()};
        const allocation_properties properties = {
            pinned_allocation, by_file_descriptor, here, nullptr, {}};
        for (size_t at = 0; at < size_; at += piece) {
            uint64_t handle = 0;
            if (driver_.try_call("cuMemCreate", &handle, piece, &properties, uint64_t{0}) != 0) {
                no_memory("virtual", size);
            }
            driver_.call("cuMemMap", address + at, piece, size_t{0}, handle, uint64_t{0});
            driver_.call("cuMemRelease", handle);  // the mapping keeps it
        }
        const access_description access = {here, read_and_write};
        driver_.call("cuMemSetAccess", address, size_, &access, size_t{1});
    }
    ~virtual_memory() override {
        driver_.try_call("cuMemUnmap", number(address_), size_);
        driver_.try_call("cuMemAddressFree", number(address_), size_);
    }

  private:
    static constexpr size_t piece = 20 << 20;

    const size_t size_;
};

}  // namespace

void no_memory(const std::string &kind, size_t size) {
    throw run_error(fmt::format("cannot allocate {} MiB of {} memory", (size >> 20) + 1, kind));
}

std::unique_ptr<message_memory> allocate_cuda_memory(const std::string &kind, int gpu,
                                                     size_t size) {
    if (kind == "pool" || kind == "shared-pool") {
        return std::make_unique<pool_memory>(kind, gpu, size);
    }
    if (kind == "virtual") {
        return std::make_unique<virtual_memory>(gpu, size);
    }
    return std::make_unique<plain_memory>(kind, gpu, size);
}

std::string name_of_gpu(int gpu) {
    char text[128] = "";
    const cuda_driver &driver = get_driver(gpu);
    driver.call("cuDeviceGetName", &text[0], static_cast<int>(sizeof(text)), driver.device());
    return text;
}

}  // namespace cuda_nc::tools
