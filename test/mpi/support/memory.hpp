// Memory that a test or benchmark keeps its buffers in: ordinary host memory, the product's
// simulated GPU, or a real one. Entry points are found at run time, so that a program which uses
// this links neither the product nor CUDA and runs as well without them.
#pragma once

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

namespace mpi_test {

class memory {
  public:
    virtual ~memory() = default;
    virtual void *allocate(size_t length) = 0;
    virtual void release(void *address) = 0;
    // Either side may be host memory; the bytes are there on return.
    virtual void copy(void *destination, const void *source, size_t length) = 0;
    // Whether the CPU may not touch it.
    virtual bool is_device() const = 0;
};

class host_memory final : public memory {
  public:
    void *allocate(size_t length) override {
        void *address = std::aligned_alloc(4096, (length / 4096 + 1) * 4096);
        if (address == nullptr) {
            throw std::bad_alloc();
        }
        return address;
    }
    void release(void *address) override { std::free(address); }
    void copy(void *destination, const void *source, size_t length) override {
        std::memcpy(destination, source, length);
    }
    bool is_device() const override { return false; }
};

template <typename function>
function *entry_point(void *library, const char *name) {
    void *symbol = dlsym(library, name);
    if (symbol == nullptr) {
        throw std::runtime_error(std::string(name) + " not found");
    }
    return reinterpret_cast<function *>(symbol);
}

// The product's simulated GPU (UCX_CUDA_NC_GPU=sim). Call after MPI_Init, which loads the product.
class simulated_memory final : public memory {
  public:
    simulated_memory() {
        void *library = loaded_product();
        malloc_ = entry_point<void *(size_t)>(library, "cuda_nc_sim_malloc");
        free_ = entry_point<void(void *)>(library, "cuda_nc_sim_free");
        memcpy_ = entry_point<void(void *, const void *, size_t)>(library, "cuda_nc_sim_memcpy");
    }
    void *allocate(size_t length) override {
        void *address = malloc_(length);
        if (address == nullptr) {
            throw std::runtime_error("no simulated memory (is UCX_CUDA_NC_GPU=sim set?)");
        }
        return address;
    }
    void release(void *address) override { free_(address); }
    void copy(void *destination, const void *source, size_t length) override {
        memcpy_(destination, source, length);
    }
    bool is_device() const override { return true; }

  private:
    static void *loaded_product() {
        if (dlsym(RTLD_DEFAULT, "cuda_nc_sim_malloc") != nullptr) {
            return RTLD_DEFAULT;
        }
        for (const char *name : {"libcuda_nc.so", "libcuda_nc.so.0"}) {
            if (void *library = dlopen(name, RTLD_LAZY | RTLD_NOLOAD)) {
                return library;
            }
        }
        const char *home = std::getenv("CUDA_NC_HOME");
        std::string path = std::string(home != nullptr ? home : "") + "/lib/libcuda_nc.so";
        if (void *library = dlopen(path.c_str(), RTLD_LAZY)) {
            return library;
        }
        throw std::runtime_error(
            "libcuda_nc.so is not loaded and CUDA_NC_HOME does not lead to it");
    }

    void *(*malloc_)(size_t);
    void (*free_)(void *);
    void (*memcpy_)(void *, const void *, size_t);
};

// A real GPU by the driver's own entry points; ranks of one host take turns over its GPUs.
class cuda_memory final : public memory {
  public:
    explicit cuda_memory(int local_rank) {
        void *driver = dlopen("libcuda.so.1", RTLD_LAZY);
        if (driver == nullptr) {
            throw std::runtime_error("no CUDA driver (libcuda.so.1)");
        }
        auto init = entry_point<int(unsigned)>(driver, "cuInit");
        auto count = entry_point<int(int *)>(driver, "cuDeviceGetCount");
        auto retain = entry_point<int(void **, int)>(driver, "cuDevicePrimaryCtxRetain");
        set_current_ = entry_point<int(void *)>(driver, "cuCtxSetCurrent");
        malloc_ = entry_point<int(uint64_t *, size_t)>(driver, "cuMemAlloc_v2");
        free_ = entry_point<int(uint64_t)>(driver, "cuMemFree_v2");
        memcpy_ = entry_point<int(uint64_t, uint64_t, size_t)>(driver, "cuMemcpy");
        synchronize_ = entry_point<int()>(driver, "cuCtxSynchronize");
        int devices = 0;
        must(init(0), "cuInit");
        must(count(&devices), "cuDeviceGetCount");
        if (devices == 0) {
            throw std::runtime_error("no CUDA device");
        }
        must(retain(&context_, local_rank % devices), "cuDevicePrimaryCtxRetain");
        enter();
    }
    void *allocate(size_t length) override {
        enter();
        uint64_t address = 0;
        must(malloc_(&address, length != 0 ? length : 1), "cuMemAlloc");
        return reinterpret_cast<void *>(address);
    }
    void release(void *address) override {
        enter();
        must(free_(number(address)), "cuMemFree");
    }
    void copy(void *destination, const void *source, size_t length) override {
        if (length != 0) {
            enter();
            must(memcpy_(number(destination), number(source), length), "cuMemcpy");
            // cuMemcpy between two device buffers may return before it is done
            must(synchronize_(), "cuCtxSynchronize");
        }
    }
    bool is_device() const override { return true; }

  private:
    static uint64_t number(const void *address) { return reinterpret_cast<uintptr_t>(address); }
    static void must(int result, const char *what) {
        if (result != 0) {
            throw std::runtime_error(std::string(what) + " failed: " + std::to_string(result));
        }
    }
    // Each thread has a current context of its own.
    void enter() { must(set_current_(context_), "cuCtxSetCurrent"); }

    void *context_ = nullptr;
    int (*set_current_)(void *);
    int (*malloc_)(uint64_t *, size_t);
    int (*free_)(uint64_t);
    int (*memcpy_)(uint64_t, uint64_t, size_t);
    int (*synchronize_)();
};

// kinds: host, sim, cuda, or a list that the ranks take turns over, e.g. "sim,host".
inline std::unique_ptr<memory> open_memory(const std::string &kinds, int rank) {
    std::vector<std::string> list;
    for (size_t start = 0; start <= kinds.size();) {
        size_t comma = kinds.find(',', start);
        comma = comma == std::string::npos ? kinds.size() : comma;
        list.push_back(kinds.substr(start, comma - start));
        start = comma + 1;
    }
    const std::string &kind = list[static_cast<size_t>(rank) % list.size()];
    if (kind == "host") {
        return std::make_unique<host_memory>();
    }
    if (kind == "sim") {
        return std::make_unique<simulated_memory>();
    }
    if (kind == "cuda") {
        return std::make_unique<cuda_memory>(rank);
    }
    throw std::runtime_error("memory is host, sim or cuda, not '" + kind + "'");
}

}  // namespace mpi_test
