#include "accidents/kinds.hpp"

namespace gpu_test {
namespace {

CUdeviceptr number(const void *address) {
    return reinterpret_cast<CUdeviceptr>(address);
}

class driver_memory : public memory {
  public:
    explicit driver_memory(int rank) : device_(enter_gpu(rank)) {}
    void *allocate(size_t length) override {
        CUdeviceptr address = 0;
        DRIVER_CALL(cuMemAlloc, &address, length);
        return reinterpret_cast<void *>(address);
    }
    void release(void *address) override { DRIVER_CALL(cuMemFree, number(address)); }
    void copy(void *destination, const void *source, size_t length) override {
        DRIVER_CALL(cuMemcpy, number(destination), number(source), length);
        DRIVER_CALL(cuCtxSynchronize);
    }
    bool is_device() const override { return true; }

  protected:
    const CUdevice device_;
};

class pool_memory final : public driver_memory {
  public:
    using driver_memory::driver_memory;
    void *allocate(size_t length) override {
        CUdeviceptr address = 0;
        DRIVER_CALL(cuMemAllocAsync, &address, length, nullptr);
        DRIVER_CALL(cuStreamSynchronize, nullptr);
        return reinterpret_cast<void *>(address);
    }
    void release(void *address) override {
        DRIVER_CALL(cuMemFreeAsync, number(address), nullptr);
        DRIVER_CALL(cuStreamSynchronize, nullptr);
    }
};

// Of a pool that other processes may import by a file descriptor.
class shared_pool_memory final : public driver_memory {
  public:
    explicit shared_pool_memory(int rank) : driver_memory(rank) {
        CUmemPoolProps properties = {};
        properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
        properties.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
        properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
        properties.location.id = device_;
        DRIVER_CALL(cuMemPoolCreate, &pool_, &properties);
    }
    void *allocate(size_t length) override {
        CUdeviceptr address = 0;
        DRIVER_CALL(cuMemAllocFromPoolAsync, &address, length, pool_, nullptr);
        DRIVER_CALL(cuStreamSynchronize, nullptr);
        return reinterpret_cast<void *>(address);
    }
    void release(void *address) override {
        DRIVER_CALL(cuMemFreeAsync, number(address), nullptr);
        DRIVER_CALL(cuStreamSynchronize, nullptr);
    }

  private:
    CUmemoryPool pool_ = nullptr;  // the process's until it ends
};

class managed_memory final : public driver_memory {
  public:
    using driver_memory::driver_memory;
    void *allocate(size_t length) override {
        CUdeviceptr address = 0;
        DRIVER_CALL(cuMemAllocManaged, &address, length, CU_MEM_ATTACH_GLOBAL);
        return reinterpret_cast<void *>(address);
    }
};

class virtual_memory final : public driver_memory {
  public:
    using driver_memory::driver_memory;
    void *allocate(size_t length) override {
        CUmemAllocationProp properties = {};
        properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
        properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
        properties.location.id = device_;
        size_t granularity = 0;
        DRIVER_CALL(cuMemGetAllocationGranularity, &granularity, &properties,
                    CU_MEM_ALLOC_GRANULARITY_MINIMUM);
        const size_t size = (length + granularity - 1) / granularity * granularity;
        CUmemGenericAllocationHandle handle;
        CUdeviceptr address = 0;
        DRIVER_CALL(cuMemCreate, &handle, size, &properties, 0);
        DRIVER_CALL(cuMemAddressReserve, &address, size, 0, 0, 0);
        DRIVER_CALL(cuMemMap, address, size, 0, handle, 0);
        CUmemAccessDesc access = {};
        access.location = properties.location;
        access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        DRIVER_CALL(cuMemSetAccess, address, size, &access, 1);
        DRIVER_CALL(cuMemRelease, handle);  // the mapping keeps it
        sizes_[address] = size;
        return reinterpret_cast<void *>(address);
    }
    void release(void *address) override {
        const size_t size = sizes_.at(number(address));
        DRIVER_CALL(cuMemUnmap, number(address), size);
        DRIVER_CALL(cuMemAddressFree, number(address), size);
        sizes_.erase(number(address));
    }

  private:
    std::map<CUdeviceptr, size_t> sizes_;
};

}  // namespace

std::unique_ptr<memory> open_kind(const std::string &kind, int rank) {
    if (kind == "malloc") {
        return std::make_unique<driver_memory>(rank);
    }
    if (kind == "pool") {
        return std::make_unique<pool_memory>(rank);
    }
    if (kind == "shared-pool") {
        return std::make_unique<shared_pool_memory>(rank);
    }
    if (kind == "virtual") {
        return std::make_unique<virtual_memory>(rank);
    }
    if (kind == "managed") {
        return std::make_unique<managed_memory>(rank);
    }
    return mpi_test::open_memory(kind, rank);
}

}  // namespace gpu_test
