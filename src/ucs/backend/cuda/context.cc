#include "ucs/backend/cuda/context.hpp"

#include "ucs/base/log.hpp"
#include "ucs/base/trace.hpp"
#include "ucs/exec/kernels/launch.hpp"
#include "ucs/backend/cuda/errors.hpp"

namespace cuda_nc::gpu::cuda {
namespace {

thread_local unsigned scopes_of_this_thread = 0;

}  // namespace

current_scope::current_scope(const driver &calls, CUcontext context) noexcept : calls_(calls) {
    CUcontext before = nullptr;
    ++scopes_of_this_thread;
    result_ = context != nullptr ? calls_.context_current(&before) : CUDA_ERROR_INVALID_CONTEXT;
    if (result_ == CUDA_SUCCESS && before != context) {
        result_ = calls_.context_push(context);
        pushed_ = result_ == CUDA_SUCCESS;
    }
    if (result_ == CUDA_SUCCESS) {
        calls_.exchange_capture_mode(&capture_mode_);
    }
}

current_scope::~current_scope() {
    if (result_ == CUDA_SUCCESS) {
        calls_.exchange_capture_mode(&capture_mode_);
    }
    if (pushed_) {
        CUcontext popped;
        calls_.context_pop(&popped);
    }
    --scopes_of_this_thread;
}

bool current_scope::surrounds_this_thread() noexcept {
    return scopes_of_this_thread != 0;
}

ucs_status_t current_scope::status() const noexcept {
    return to_status(result_, "cuCtxPushCurrent");
}

ucs_status_t primary_context::ready() noexcept {
    if (ready_.load(std::memory_order_acquire)) {
        return gone() ? UCS_ERR_IO_ERROR : UCS_OK;
    }
    std::lock_guard<std::mutex> guard(mutex_);
    if (ready_.load(std::memory_order_relaxed) || failure() != UCS_OK) {
        return failure();
    }
    ucs_status_t status = make();
    gone_.store(false, std::memory_order_relaxed);
    if (status == UCS_OK) {
        ready_.store(true, std::memory_order_release);
    } else if (status != UCS_ERR_NO_MEMORY) {
        failure_.store(status, std::memory_order_relaxed);
    }
    return status;
}

ucs_status_t primary_context::make() noexcept {
    const trace_span span("open a GPU");
    CUdevice device;
    ucs_status_t status = to_status(calls_.device_get(&device, ordinal_), "cuDeviceGet");
    CUcontext context = context_.load(std::memory_order_relaxed);
    if (status == UCS_OK && context == nullptr) {
        // Kept until the process ends.
        status = to_status(calls_.primary_retain(&context, device), "cuDevicePrimaryCtxRetain");
        context_.store(context, std::memory_order_relaxed);
    }
    if (status != UCS_OK) {
        return status;
    }
    current_scope scope(calls_, context);
    if (!scope) {
        return scope.status();
    }
    unsigned long long id = 0;
    id_.store(find_id(context, &id) ? id : 0, std::memory_order_relaxed);
    const cudaError_t loaded = exec::load_first_kernel(kernels_);
    status = to_status(loaded, "loading the kernels");
    if (status == UCS_ERR_UNSUPPORTED) {
        nc_warn("GPU %d is not served: %s", ordinal_, cudaGetErrorString(loaded));
    }
    // Copies need no kernels.
    return status == UCS_ERR_NO_MEMORY ? UCS_OK : status;
}

bool primary_context::find_id(CUcontext context, unsigned long long *id_p) const noexcept {
    return calls_.context_id != nullptr && calls_.context_id(context, id_p) == CUDA_SUCCESS;
}

void primary_context::lose(CUcontext context, unsigned long long id) noexcept {
    std::lock_guard<std::mutex> guard(mutex_);
    if (context_.load(std::memory_order_relaxed) == context &&
        id_.load(std::memory_order_relaxed) == id) {
        gone_.store(true, std::memory_order_relaxed);
    }
}

bool primary_context::alive() noexcept {
    const unsigned long long id = id_.load(std::memory_order_relaxed);
    CUcontext context = get();
    unsigned long long now = 0;
    if (context != nullptr && id != 0 && !gone() && (!find_id(context, &now) || now != id)) {
        lose(context, id);
    }
    return !gone();
}

void primary_context::note_primary(CUcontext primary) noexcept {
    const unsigned long long id = id_.load(std::memory_order_relaxed);
    CUcontext context = get();
    if (context != nullptr && context != primary && !gone()) {
        lose(context, id);
    }
}

void primary_context::begin_again() noexcept {
    std::lock_guard<std::mutex> guard(mutex_);
    kernels_.forget();
    ready_.store(false, std::memory_order_release);
    // It is retained anew: a reset may end that, too. Until then it is gone.
    context_.store(nullptr, std::memory_order_relaxed);
}

}  // namespace cuda_nc::gpu::cuda
