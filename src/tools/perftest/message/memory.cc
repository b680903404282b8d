#include "tools/perftest/message/memory.hpp"

#include <dlfcn.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include <fmt/core.h>

#include "cuda_nc/cuda_nc.h"
#include "tools/perftest/support/run_error.hpp"
#include "ucs/base/settings.hpp"
#include "ucs/gpu/device.hpp"

namespace cuda_nc::tools {
namespace {

[[noreturn]] void no_memory(const std::string &kind, size_t size) {
    throw run_error(fmt::format("cannot allocate {} MiB of {} memory", (size >> 20) + 1, kind));
}

class host_memory final : public message_memory {
  public:
    explicit host_memory(size_t size) {
        address_ = static_cast<char *>(std::aligned_alloc(4096, (size / 4096 + 1) * 4096));
        if (address_ == nullptr) {
            no_memory("host", size);
        }
    }
    ~host_memory() override { std::free(address_); }
    void write(size_t offset, const void *source, size_t size) override {
        std::memcpy(address_ + offset, source, size);
    }
    void read(size_t offset, void *target, size_t size) override {
        std::memcpy(target, address_ + offset, size);
    }
};

class simulated_memory final : public message_memory {
  public:
    simulated_memory(int ordinal, size_t size) {
        gpu::device *device = gpu::platform::instance().get_device(ordinal);
        if (device == nullptr) {
            throw run_error(fmt::format("there is no GPU {}: {} simulated", ordinal, gpu_count()));
        }
        if (device->allocate(size, &memory_) != UCS_OK) {
            no_memory("simulated GPU", size);
        }
        address_ = memory_->address();
    }
    void write(size_t offset, const void *source, size_t size) override {
        cuda_nc_sim_memcpy(address_ + offset, source, size);
    }
    void read(size_t offset, void *target, size_t size) override {
        cuda_nc_sim_memcpy(target, address_ + offset, size);
    }

  private:
    std::unique_ptr<gpu::memory> memory_;
};

// The CUDA driver, found at run time: a program without CUDA measures host memory.
class cuda_driver {
  public:
    explicit cuda_driver(int ordinal) {
        void *library = dlopen("libcuda.so.1", RTLD_NOW);
        if (library == nullptr) {
            throw run_error("there is no GPU: no CUDA driver (libcuda.so.1) is installed");
        }
        int (*init)(unsigned), (*count)(int *), (*get)(int *, int), (*retain)(void **, int);
        find(library, "cuInit", &init);
        find(library, "cuDeviceGetCount", &count);
        find(library, "cuDeviceGet", &get);
        find(library, "cuDeviceGetName", &get_name_);
        find(library, "cuDevicePrimaryCtxRetain", &retain);
        find(library, "cuCtxSetCurrent", &set_current_);
        find(library, "cuCtxSynchronize", &synchronize_);
        find(library, "cuMemAlloc_v2", &allocate_);
        find(library, "cuMemAllocManaged", &allocate_managed_);
        find(library, "cuMemFree_v2", &free_);
        find(library, "cuMemcpy", &copy_);
        must(init(0), "cuInit");
        int devices = 0;
        must(count(&devices), "cuDeviceGetCount");
        if (ordinal < 0 || ordinal >= devices) {
            throw run_error(fmt::format("there is no GPU {}: {} found", ordinal, devices));
        }
        must(get(&device_, ordinal), "cuDeviceGet");
        must(retain(&context_, device_), "cuDevicePrimaryCtxRetain");
        must(set_current_(context_), "cuCtxSetCurrent");
    }
    std::string name() const {
        char text[128] = "";
        must(get_name_(text, sizeof(text), device_), "cuDeviceGetName");
        return text;
    }
    char *allocate(bool managed, size_t size) const {
        constexpr unsigned attach_global = 1;
        uint64_t address = 0;
        must(set_current_(context_), "cuCtxSetCurrent");
        const int status =
            managed ? allocate_managed_(&address, size, attach_global) : allocate_(&address, size);
        if (status != 0) {
            no_memory(managed ? "managed" : "GPU", size);
        }
        return reinterpret_cast<char *>(static_cast<uintptr_t>(address));
    }
    void release(char *address) const noexcept { free_(number(address)); }
    void copy(void *target, const void *source, size_t size) const {
        must(set_current_(context_), "cuCtxSetCurrent");
        must(copy_(number(target), number(source), size), "a copy");
        must(synchronize_(), "a copy");
    }

  private:
    template <class Function>
    static void find(void *library, const char *name, Function *function_p) {
        *function_p = reinterpret_cast<Function>(dlsym(library, name));
        if (*function_p == nullptr) {
            throw run_error(fmt::format("the CUDA driver has no {}", name));
        }
    }
    static void must(int status, const char *what) {
        if (status != 0) {
            throw run_error(fmt::format("{} failed: CUDA error {}", what, status));
        }
    }
    static uint64_t number(const void *address) { return reinterpret_cast<uintptr_t>(address); }

    int device_ = 0;
    void *context_ = nullptr;
    int (*get_name_)(char *, int, int) = nullptr;
    int (*set_current_)(void *) = nullptr;
    int (*synchronize_)() = nullptr;
    int (*allocate_)(uint64_t *, size_t) = nullptr;
    int (*allocate_managed_)(uint64_t *, size_t, unsigned) = nullptr;
    int (*free_)(uint64_t) = nullptr;
    int (*copy_)(uint64_t, uint64_t, size_t) = nullptr;
};

// A process measures one GPU.
const cuda_driver &get_driver(int ordinal) {
    static const cuda_driver only(ordinal);
    return only;
}

class cuda_memory final : public message_memory {
  public:
    cuda_memory(bool managed, int ordinal, size_t size) : driver_(get_driver(ordinal)) {
        address_ = driver_.allocate(managed, size);
    }
    ~cuda_memory() override { driver_.release(address_); }
    void write(size_t offset, const void *source, size_t size) override {
        driver_.copy(address_ + offset, source, size);
    }
    void read(size_t offset, void *target, size_t size) override {
        driver_.copy(target, address_ + offset, size);
    }

  private:
    const cuda_driver &driver_;
};

}  // namespace

bool is_gpu_simulated() noexcept {
    return config().gpu == "sim";
}

int gpu_count() {
    return is_gpu_simulated() ? static_cast<int>(config().sim_devices)
                              : gpu::platform::instance().num_devices();
}

std::unique_ptr<message_memory> allocate_memory(const std::string &kind, int gpu, size_t size) {
    if (kind == "host") {
        return std::make_unique<host_memory>(size);
    }
    if (!is_gpu_simulated()) {
        return std::make_unique<cuda_memory>(kind == "managed", gpu, size);
    }
    if (kind == "managed") {
        throw run_error("the simulated GPU has no managed memory");
    }
    return std::make_unique<simulated_memory>(gpu, size);
}

std::string describe_memory(const std::string &kind, int gpu) {
    if (kind == "host") {
        return "host";
    }
    return is_gpu_simulated() ? fmt::format("simulated GPU {}", gpu) : get_driver(gpu).name();
}

}  // namespace cuda_nc::tools
