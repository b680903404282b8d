#include "ucs/backend/cuda/memory_pool.hpp"

#include <algorithm>
#include <new>

#include "ucs/base/log.hpp"
#include "ucs/base/trace.hpp"
#include "ucs/backend/cuda/memory.hpp"

namespace cuda_nc::gpu::cuda {
namespace {

class pool_memory final : public memory {
  public:
    pool_memory(primary_context &owner, cudaStream_t on) noexcept : owner_(owner), on_(on) {}

    ~pool_memory() override {
        if (address_ != nullptr) {
            release_in(owner_, "cudaFreeAsync", [this] { return cudaFreeAsync(address_, on_); });
        }
    }

    void own(void *address, size_t size) noexcept {
        address_ = static_cast<char *>(address);
        size_ = size;
    }

  private:
    primary_context &owner_;
    const cudaStream_t on_;
};

}  // namespace

ucs_status_t memory_pool::make(int ordinal) noexcept {
    int supported = 0;
    if (cudaDeviceGetAttribute(&supported, cudaDevAttrMemoryPoolsSupported, ordinal) !=
            cudaSuccess ||
        supported == 0) {
        cudaGetLastError();
        return UCS_ERR_UNSUPPORTED;
    }
    cudaMemPoolProps properties = {};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location.type = cudaMemLocationTypeDevice;
    properties.location.id = ordinal;
    if (cudaMemPoolCreate(&pool_, &properties) != cudaSuccess) {
        cudaGetLastError();
        return UCS_ERR_UNSUPPORTED;
    }
    if (cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking) != cudaSuccess) {
        cudaGetLastError();
        cudaMemPoolDestroy(pool_);
        return UCS_ERR_UNSUPPORTED;
    }
    return UCS_OK;
}

ucs_status_t memory_pool::allocate(primary_context &owner, size_t size,
                                   std::unique_ptr<memory> *memory_p) noexcept {
    std::call_once(once_, [&]() noexcept {
        made_ = make(owner.ordinal());
        if (made_ != UCS_OK) {
            nc_debug("GPU %d has no memory pools: freeing may wait for kernels", owner.ordinal());
        }
    });
    if (made_ != UCS_OK) {
        return made_;
    }
    const trace_span span("allocate GPU memory", size);
    std::unique_ptr<pool_memory> made(new (std::nothrow) pool_memory(owner, stream_));
    if (made == nullptr) {
        return UCS_ERR_NO_MEMORY;
    }
    void *address = nullptr;
    ucs_status_t status =
        to_status(cudaMallocFromPoolAsync(&address, in_whole_words(size), pool_, stream_),
                  "cudaMallocFromPoolAsync");
    if (status != UCS_OK) {
        return status;
    }
    made->own(address, size);
    // Other streams may use it from now on. The pool keeps nothing that is free beyond this.
    status = to_status(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
    if (status == UCS_OK) {
        *memory_p = std::move(made);
    }
    return status;
}

}  // namespace cuda_nc::gpu::cuda
