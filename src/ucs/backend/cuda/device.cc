#include "ucs/backend/cuda/device.hpp"

#include "ucs/base/settings.hpp"
#include "ucs/backend/backends.hpp"
#include "ucs/backend/cuda/errors.hpp"
#include "ucs/backend/cuda/memory.hpp"
#include "ucs/backend/cuda/stream.hpp"

namespace cuda_nc::gpu::cuda {
namespace {

thread_local uint64_t requests_here = 0;

unsigned attribute(const driver &calls, CUdevice_attribute which, CUdevice device) noexcept {
    int value = 0;
    return calls.device_attribute(&value, which, device) == CUDA_SUCCESS && value > 0
               ? static_cast<unsigned>(value)
               : 0;
}

}  // namespace

uint64_t cuda_device::requests_of_this_thread() const noexcept {
    return requests_here;
}

void cuda_device::count_request() noexcept {
    requests_.fetch_add(1, std::memory_order_relaxed);
    ++requests_here;
}

template <typename F>
ucs_status_t cuda_device::run(F &&call) noexcept {
    count_request();
    if (forked()) {
        return UCS_ERR_IO_ERROR;
    }
    ucs_status_t status = context_.ready();
    if (status != UCS_OK) {
        return status;
    }
    current_scope scope(context_.calls(), context_.get());
    return scope ? call() : scope.status();
}

cuda_device::cuda_device(const driver &calls, int ordinal) : context_(calls, ordinal) {
    CUdevice handle = 0;
    properties_.ordinal = ordinal;
    if (calls.device_get(&handle, ordinal) != CUDA_SUCCESS) {
        return;  // every use of the device will fail
    }
    char text[256] = "";
    if (calls.device_name(text, sizeof(text), handle) == CUDA_SUCCESS) {
        properties_.name = text;
    }
    text[0] = '\0';
    if (calls.device_bus_id(text, sizeof(text), handle) == CUDA_SUCCESS) {
        for (const char *c = text; *c != '\0'; ++c) {  // as the kernel writes it
            properties_.bus_id += *c >= 'A' && *c <= 'F' ? static_cast<char>(*c - 'A' + 'a') : *c;
        }
    }
    calls.device_memory(&properties_.memory_size, handle);
    properties_.num_sms = attribute(calls, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, handle);
    properties_.l2_size = attribute(calls, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, handle);
    properties_.compute_major =
        attribute(calls, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, handle);
    properties_.compute_minor =
        attribute(calls, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, handle);
    limits_.num_sms = properties_.num_sms;
    limits_.l2_size = properties_.l2_size;
    limits_.host_caches_memory =
        attribute(calls, CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST, handle) != 0;
}

ucs_status_t cuda_device::allocate(size_t size, std::unique_ptr<memory> *memory_p) noexcept {
    return run([&] { return allocate_device(context_, size, memory_p); });
}

ucs_status_t cuda_device::allocate_private(size_t size,
                                           std::unique_ptr<memory> *memory_p) noexcept {
    return run([&] {
        const ucs_status_t status = pool_.allocate(context_, size, memory_p);
        return status == UCS_ERR_UNSUPPORTED ? allocate_device(context_, size, memory_p) : status;
    });
}

ucs_status_t cuda_device::allocate_pinned(size_t size, std::unique_ptr<memory> *memory_p) noexcept {
    return run([&] { return cuda::allocate_pinned(context_, size, memory_p); });
}

ucs_status_t cuda_device::pin(void *address, size_t size,
                              std::unique_ptr<memory> *memory_p) noexcept {
    return run([&] { return cuda::pin(context_, address, size, memory_p); });
}

ucs_status_t cuda_device::create_stream(std::unique_ptr<stream> *stream_p) noexcept {
    return run([&] {
        exec::kernel_limits limits = limits_;
        limits.starts_early = exec::kernels_await_predecessors();
        return make_stream(context_, *this, limits, stream_p);
    });
}

ucs_status_t cuda_device::create_event(std::unique_ptr<event> *event_p) noexcept {
    return run([&] { return make_event(context_, event_p); });
}

// Kernels do not start early there: what the application enqueued before may be anything.
ucs_status_t cuda_device::borrow_stream(void *foreign,
                                        std::unique_ptr<borrowed_stream> *stream_p) noexcept {
    return run([&] {
        return cuda::borrow_stream(context_, *this, limits_, static_cast<cudaStream_t>(foreign),
                                   stream_p);
    });
}

void cuda_device::begin_again() noexcept {
    context_.begin_again();
    for (std::atomic<unsigned long long> &id : seen_) {
        id.store(0, std::memory_order_relaxed);
    }
}

mover *cuda_device::get_mover() noexcept {
    if (forked() || context_.gone() || !config().mover) {
        return nullptr;
    }
    std::call_once(mover_once_, [this]() noexcept {
        count_request();
        if (context_.ready() == UCS_OK) {
            mover_ = cuda_mover::make(*this, context_, limits_.host_caches_memory);
        }
    });
    return mover_.get();
}

ucs_status_t cuda_device::ipc_export(const void *address, ipc_handle *handle_p,
                                     size_t *offset_p) noexcept {
    return run([&] { return export_handle(context_, address, handle_p, offset_p); });
}

ucs_status_t cuda_device::ipc_share(char *base, size_t size, ipc_handle *handle_p,
                                    std::shared_ptr<void> *keeper_p) noexcept {
    return run([&] { return share_pieces(context_, base, size, handle_p, keeper_p); });
}

ucs_status_t cuda_device::ipc_open(const ipc_handle &handle,
                                   std::unique_ptr<memory> *memory_p) noexcept {
    return run([&] {
        return is_of_pieces(handle) ? open_pieces(context_, handle, memory_p)
                                    : open_handle(context_, handle, memory_p);
    });
}

bool cuda_device::can_access_peer(int ordinal) const noexcept {
    if (ordinal == properties_.ordinal) {
        return true;
    }
    const driver &calls = context_.calls();
    CUdevice own, other;
    int can = 0;
    return !forked() && calls.device_get(&own, properties_.ordinal) == CUDA_SUCCESS &&
           calls.device_get(&other, ordinal) == CUDA_SUCCESS &&
           calls.device_can_access_peer(&can, own, other) == CUDA_SUCCESS && can != 0;
}

}  // namespace cuda_nc::gpu::cuda
