#include "bench/test_memory.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>

namespace {

template <class Function>
bool find(void *library, const char *name, Function *function_p) {
    *function_p = reinterpret_cast<Function>(dlsym(library, name));
    return *function_p != nullptr;
}

class host_memory : public test_memory {
  public:
    explicit host_memory(size_t size) : bytes_(size) {
        address_ = bytes_.data();
        size_ = size;
    }
    void write(const std::vector<unsigned char> &bytes) override {
        bytes_ = bytes;
        address_ = bytes_.data();
    }
    std::vector<unsigned char> read() override { return bytes_; }

  private:
    std::vector<unsigned char> bytes_;
};

class sim_memory : public test_memory {
  public:
    explicit sim_memory(size_t size) {
        void *library = dlopen("libcuda_nc.so.0", RTLD_NOW);
        void *(*allocate)(size_t) = nullptr;
        if (library == nullptr || !find(library, "cuda_nc_sim_malloc", &allocate) ||
            !find(library, "cuda_nc_sim_free", &free_) ||
            !find(library, "cuda_nc_sim_memcpy", &copy_)) {
            return;
        }
        address_ = allocate(size);
        size_ = size;
    }
    ~sim_memory() override {
        if (address_ != nullptr) {
            free_(address_);
        }
    }
    void write(const std::vector<unsigned char> &bytes) override {
        copy_(address_, bytes.data(), bytes.size());
    }
    std::vector<unsigned char> read() override {
        std::vector<unsigned char> bytes(size_);
        copy_(bytes.data(), address_, size_);
        return bytes;
    }

  private:
    void (*free_)(void *) = nullptr;
    void (*copy_)(void *, const void *, size_t) = nullptr;
};

// Signatures of the CUDA driver's API.
class cuda_memory : public test_memory {
  public:
    cuda_memory(size_t size, int rank) {
        void *library = dlopen("libcuda.so.1", RTLD_NOW);
        int (*init)(unsigned), (*count)(int *), (*get)(int *, int), (*retain)(void **, int);
        int (*set)(void *), (*allocate)(unsigned long long *, size_t);
        if (library == nullptr || !find(library, "cuInit", &init) ||
            !find(library, "cuDeviceGetCount", &count) || !find(library, "cuDeviceGet", &get) ||
            !find(library, "cuDevicePrimaryCtxRetain", &retain) ||
            !find(library, "cuCtxSetCurrent", &set) || !find(library, "cuMemAlloc_v2", &allocate) ||
            !find(library, "cuMemcpyHtoD_v2", &to_device_) ||
            !find(library, "cuMemcpyDtoH_v2", &to_host_) ||
            !find(library, "cuCtxSynchronize", &synchronize_) ||
            !find(library, "cuMemFree_v2", &free_)) {
            return;
        }
        int devices = 0, device = 0;
        void *context = nullptr;
        unsigned long long address = 0;
        if (init(0) != 0 || count(&devices) != 0 || devices == 0 ||
            get(&device, rank % devices) != 0 || retain(&context, device) != 0 ||
            set(context) != 0 || allocate(&address, size) != 0) {
            return;
        }
        std::memcpy(&address_, &address, sizeof(address_));
        size_ = size;
    }
    ~cuda_memory() override {
        if (address_ != nullptr) {
            free_(number());
        }
    }
    void write(const std::vector<unsigned char> &bytes) override {
        demand(to_device_(number(), bytes.data(), bytes.size()));
        demand(synchronize_());
    }
    std::vector<unsigned char> read() override {
        std::vector<unsigned char> bytes(size_);
        demand(to_host_(bytes.data(), number(), size_));
        return bytes;
    }
    bool is_well() override { return synchronize_() == 0; }

  private:
    static void demand(int status) {
        if (status != 0) {
            std::abort();
        }
    }
    unsigned long long number() const {
        unsigned long long value;
        std::memcpy(&value, &address_, sizeof(value));
        return value;
    }
    int (*to_device_)(unsigned long long, const void *, size_t) = nullptr;
    int (*to_host_)(void *, unsigned long long, size_t) = nullptr;
    int (*synchronize_)() = nullptr;
    int (*free_)(unsigned long long) = nullptr;
};

}  // namespace

std::unique_ptr<test_memory> test_memory::make(const std::string &kind, size_t size, int rank) {
    std::unique_ptr<test_memory> made;
    if (kind == "host") {
        made = std::make_unique<host_memory>(size);
    } else if (kind == "sim") {
        made = std::make_unique<sim_memory>(size);
    } else if (kind == "cuda") {
        made = std::make_unique<cuda_memory>(size, rank);
    }
    return made && made->address() != nullptr ? std::move(made) : nullptr;
}
