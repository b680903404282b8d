#include "ucs/backend/cuda/errors.hpp"

#include <atomic>

#include "ucs/base/log.hpp"

namespace cuda_nc::gpu::cuda {
namespace {

// Runtime and driver share these numbers.
bool is_sticky(int error) noexcept {
    switch (error) {
        case cudaErrorECCUncorrectable:
        case cudaErrorNvlinkUncorrectable:
        case cudaErrorIllegalAddress:
        case cudaErrorLaunchTimeout:
        case cudaErrorAssert:
        case cudaErrorHardwareStackError:
        case cudaErrorIllegalInstruction:
        case cudaErrorMisalignedAddress:
        case cudaErrorInvalidAddressSpace:
        case cudaErrorInvalidPc:
        case cudaErrorLaunchFailure:
        case cudaErrorContextIsDestroyed:
        case cudaErrorSystemNotReady:
        case cudaErrorUnknown:
            return true;
        default:
            return false;
    }
}

void log_failure(int error, const char *call, const char *text) noexcept {
    static std::atomic<bool> lost{false};
    if (is_sticky(error)) {
        if (!lost.exchange(true, std::memory_order_relaxed)) {
            nc_error("%s: %s; this process cannot use the GPU any more", call, text);
        }
        return;
    }
    nc_error("%s: %s", call, text);
}

}  // namespace

bool torn_down(cudaError_t result) noexcept {
    return result == cudaErrorCudartUnloading || result == cudaErrorContextIsDestroyed;
}

bool torn_down(CUresult result) noexcept {
    return result == CUDA_ERROR_DEINITIALIZED || result == CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

ucs_status_t to_status(cudaError_t result, const char *call) noexcept {
    if (result == cudaSuccess) {
        return UCS_OK;
    }
    if (result == cudaErrorCudartUnloading) {
        return UCS_ERR_IO_ERROR;
    }
    cudaGetLastError();  // or the check after the next launch would find this error
    switch (result) {
        case cudaErrorNotReady:
            return UCS_INPROGRESS;
        case cudaErrorMemoryAllocation:
            nc_debug("%s: %s", call, cudaGetErrorString(result));
            return UCS_ERR_NO_MEMORY;
        case cudaErrorNotSupported:
        case cudaErrorPeerAccessUnsupported:
        case cudaErrorNoKernelImageForDevice:
        case cudaErrorInsufficientDriver:
        case cudaErrorMapBufferObjectFailed:
            nc_debug("%s: %s", call, cudaGetErrorString(result));
            return UCS_ERR_UNSUPPORTED;
        default:
            log_failure(result, call, cudaGetErrorString(result));
            return UCS_ERR_IO_ERROR;
    }
}

ucs_status_t to_status(CUresult result, const char *call) noexcept {
    switch (result) {
        case CUDA_SUCCESS:
            return UCS_OK;
        case CUDA_ERROR_DEINITIALIZED:
            return UCS_ERR_IO_ERROR;
        case CUDA_ERROR_OUT_OF_MEMORY:
            nc_debug("%s: out of memory", call);
            return UCS_ERR_NO_MEMORY;
        default:
            // Equal numbers mean equal errors since CUDA 10.1.
            log_failure(static_cast<int>(result), call,
                        cudaGetErrorString(static_cast<cudaError_t>(result)));
            return UCS_ERR_IO_ERROR;
    }
}

}  // namespace cuda_nc::gpu::cuda
