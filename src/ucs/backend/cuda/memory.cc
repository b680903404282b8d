#include "ucs/backend/cuda/memory.hpp"

#include <cstring>
#include <new>

#include "ucs/base/log.hpp"
#include "ucs/base/trace.hpp"

namespace cuda_nc::gpu::cuda {
namespace {

using release_function = cudaError_t (*)(void *);

class owned_memory final : public memory {
  public:
    owned_memory(primary_context &owner, release_function release, const char *name) noexcept
        : owner_(owner), release_(release), release_name_(name) {}

    ~owned_memory() override {
        if (address_ != nullptr) {
            release_in(owner_, release_name_, [this] { return release_(address_); });
        }
    }

    void own(void *address, size_t size) noexcept {
        address_ = static_cast<char *>(address);
        size_ = size;
    }

  private:
    primary_context &owner_;
    release_function release_;
    const char *release_name_;
};

std::unique_ptr<owned_memory> make_owned(primary_context &owner, release_function release,
                                         const char *name) noexcept {
    return std::unique_ptr<owned_memory>(new (std::nothrow) owned_memory(owner, release, name));
}

// The GPU must reach pinned memory by the host's address.
ucs_status_t same_address(const primary_context &owner, void *address) noexcept {
    void *seen = nullptr;
    ucs_status_t status =
        to_status(cudaHostGetDevicePointer(&seen, address, 0), "cudaHostGetDevicePointer");
    if (status == UCS_OK && seen != address) {
        nc_debug("pinned memory has another address on GPU %d", owner.ordinal());
        status = UCS_ERR_UNSUPPORTED;
    }
    return status;
}

}  // namespace

ucs_status_t allocate_device(primary_context &owner, size_t size,
                             std::unique_ptr<memory> *memory_p) noexcept {
    const trace_span span("allocate GPU memory", size);
    auto made = make_owned(owner, cudaFree, "cudaFree");
    void *address = nullptr;
    if (made == nullptr) {
        return UCS_ERR_NO_MEMORY;
    }
    ucs_status_t status = to_status(cudaMalloc(&address, in_whole_words(size)), "cudaMalloc");
    if (status == UCS_OK) {
        made->own(address, size);
        *memory_p = std::move(made);
    }
    return status;
}

ucs_status_t allocate_pinned(primary_context &owner, size_t size,
                             std::unique_ptr<memory> *memory_p) noexcept {
    const trace_span span("allocate pinned memory", size);
    auto made = make_owned(owner, cudaFreeHost, "cudaFreeHost");
    void *address = nullptr;
    if (made == nullptr) {
        return UCS_ERR_NO_MEMORY;
    }
    ucs_status_t status = to_status(
        cudaHostAlloc(&address, in_whole_words(size), cudaHostAllocPortable | cudaHostAllocMapped),
        "cudaHostAlloc");
    if (status != UCS_OK) {
        return status;
    }
    made->own(address, size);
    status = same_address(owner, address);
    if (status == UCS_OK) {
        *memory_p = std::move(made);
    }
    return status;
}

ucs_status_t pin(primary_context &owner, void *address, size_t size,
                 std::unique_ptr<memory> *memory_p) noexcept {
    const trace_span span("pin memory", size);
    auto made = make_owned(owner, cudaHostUnregister, "cudaHostUnregister");
    if (made == nullptr) {
        return UCS_ERR_NO_MEMORY;
    }
    cudaError_t result =
        cudaHostRegister(address, size, cudaHostRegisterPortable | cudaHostRegisterMapped);
    if (result == cudaErrorHostMemoryAlreadyRegistered || result == cudaErrorNotSupported ||
        result == cudaErrorInvalidValue) {
        cudaGetLastError();
        return UCS_ERR_UNSUPPORTED;
    }
    ucs_status_t status = to_status(result, "cudaHostRegister");
    if (status != UCS_OK) {
        return status;
    }
    made->own(address, size);
    status = same_address(owner, address);
    if (status == UCS_OK) {
        *memory_p = std::move(made);
    }
    return status;
}

ucs_status_t open_handle(primary_context &owner, const ipc_handle &handle,
                         std::unique_ptr<memory> *memory_p) noexcept {
    static_assert(sizeof(cudaIpcMemHandle_t) == ipc_handle_size);
    const trace_span span("open a peer's memory");
    auto made = make_owned(owner, cudaIpcCloseMemHandle, "cudaIpcCloseMemHandle");
    if (made == nullptr) {
        return UCS_ERR_NO_MEMORY;
    }
    cudaIpcMemHandle_t native;
    std::memcpy(&native, handle.bytes, sizeof(native));
    void *address = nullptr;
    cudaError_t result = cudaIpcOpenMemHandle(&address, native, cudaIpcMemLazyEnablePeerAccess);
    if (result == cudaErrorDeviceUninitialized || result == cudaErrorInvalidValue ||
        result == cudaErrorInvalidDevice || result == cudaErrorAlreadyMapped) {
        cudaGetLastError();
        nc_debug("a memory handle cannot be opened here: %s", cudaGetErrorString(result));
        return UCS_ERR_UNSUPPORTED;  // memory of this process, of a GPU that is not visible, or
                                     // whose address a mapping of freed memory occupies
    }
    ucs_status_t status = to_status(result, "cudaIpcOpenMemHandle");
    if (status != UCS_OK) {
        return status;
    }
    made->own(address, 0);
    CUdeviceptr base = 0;
    size_t size = 0;
    status =
        to_status(owner.calls().address_range(&base, &size, reinterpret_cast<CUdeviceptr>(address)),
                  "cuMemGetAddressRange");
    if (status == UCS_OK) {
        // The driver serves small allocations from a larger range, which may begin before this one.
        made->own(address, size - (reinterpret_cast<CUdeviceptr>(address) - base));
        *memory_p = std::move(made);
    }
    return status;
}

ucs_status_t export_handle(primary_context &owner, const void *address, ipc_handle *handle_p,
                           size_t *offset_p) noexcept {
    CUdeviceptr base = 0;
    auto wanted = reinterpret_cast<CUdeviceptr>(address);
    CUresult known = owner.calls().address_range(&base, nullptr, wanted);
    if (known == CUDA_ERROR_NOT_FOUND || known == CUDA_ERROR_INVALID_VALUE) {
        return UCS_ERR_UNSUPPORTED;
    }
    ucs_status_t status = to_status(known, "cuMemGetAddressRange");
    if (status != UCS_OK) {
        return status;
    }
    cudaIpcMemHandle_t native;
    cudaError_t result = cudaIpcGetMemHandle(&native, reinterpret_cast<void *>(base));
    if (result == cudaErrorInvalidValue) {
        cudaGetLastError();
        return UCS_ERR_UNSUPPORTED;  // memory of a pool or of cuMemCreate
    }
    status = to_status(result, "cudaIpcGetMemHandle");
    if (status == UCS_OK) {
        std::memcpy(handle_p->bytes, &native, sizeof(native));
        *offset_p = wanted - base;
    }
    return status;
}

}  // namespace cuda_nc::gpu::cuda
