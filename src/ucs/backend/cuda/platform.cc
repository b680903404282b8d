// The CUDA backend: which GPUs there are, and what lies at an address.
//
// A job that uses no GPU only pays for loading libcuda.so.1: the driver is initialised when a GPU
// is first asked for. There is no GPU memory before somebody has initialised the driver, so query()
// checks that first.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

#include "ucs/base/compiler.hpp"
#include "ucs/base/log.hpp"
#include "ucs/base/trace.hpp"
#include "ucs/backend/backends.hpp"
#include "ucs/backend/cuda/device.hpp"
#include "ucs/backend/cuda/driver.hpp"
#include "ucs/backend/cuda/driver_age.hpp"
#include "ucs/backend/cuda/ipc_conflicts.hpp"

namespace cuda_nc::gpu::cuda {
namespace {

class cuda_platform final : public platform {
  public:
    cuda_platform(const driver &calls, bool used) : calls_(calls) {
        int version = 0;
        calls_.get_version(&version);
        // In both cases GPU memory is still recognised, so that nobody takes it for host memory.
        if (!used) {
            unusable_ = "not to be used";
        } else {
            unusable_ = driver_objection(version, CUDART_VERSION, calls_.launch != nullptr);
            version_ = version_text(version);
            if (!unusable_.empty()) {
                nc_warn("GPU memory is left to UCX and MPI: %s", unusable_.c_str());
            }
        }
    }

    const char *name() const noexcept override { return "cuda"; }

    std::string why() const override {
        if (!unusable_.empty()) {
            return unusable_;
        }
        const inventory &found = look();
        return std::to_string(found.devices.size()) + " GPUs, driver for CUDA " + version_ +
               (found.failure.empty() ? "" : ": " + found.failure);
    }

    int num_devices() const noexcept override {
        return forked() ? 0 : static_cast<int>(look().devices.size());
    }

    device *get_device(int ordinal) noexcept override { return find(ordinal); }

    bool sees_gpu_memory() const noexcept override {
        return !forked() && (!unusable_.empty() || look().any);
    }

    bool watch_ipc_conflicts(void (*release)() noexcept) noexcept override {
        return cuda::watch_ipc_conflicts(calls_, release);
    }
    memory_info query(const void *address) noexcept override;
    uint64_t allocation_id(const void *address) noexcept override;
    int device_of(const void *address) noexcept override;
    int current_device() noexcept override;
    int current_primary_device() noexcept override;

  private:
    struct inventory {
        std::vector<std::unique_ptr<cuda_device>> devices;
        bool any = false;  // the driver knows a GPU
        std::string failure;
    };

    const inventory &look() const noexcept;
    cuda_device *find(int ordinal) const noexcept;
    cuda_device *find_of_managed(int ordinal, CUcontext context) noexcept;
    bool initialised() noexcept;
    bool in_primary_context(CUcontext context, int ordinal) noexcept;
    CUdeviceptr address_on_device(CUdeviceptr pointer, CUcontext owner) noexcept;

    const driver &calls_;
    std::string version_, unusable_;
    std::atomic<bool> initialised_{false};
    mutable std::once_flag once_;
    mutable std::atomic<bool> looked_{false};  // std::call_once is slower
    mutable inventory inventory_;
};

const cuda_platform::inventory &cuda_platform::look() const noexcept {
    if (CUDA_NC_LIKELY(looked_.load(std::memory_order_acquire))) {
        return inventory_;
    }
    std::call_once(once_, [this]() noexcept {
        if (!unusable_.empty()) {
            return;
        }
        try {
            const trace_span span("find GPUs");
            int count = 0;
            CUresult result = calls_.init(0);
            if (result == CUDA_SUCCESS) {
                result = calls_.device_count(&count);
            }
            if (result != CUDA_SUCCESS) {
                const char *text = nullptr;
                calls_.get_error_string(result, &text);
                inventory_.failure = text != nullptr ? text : "the driver fails";
                nc_debug("no GPU: %s", inventory_.failure.c_str());
            }
            inventory_.any = count > 0;
            for (int i = 0; i < count; ++i) {
                inventory_.devices.push_back(std::make_unique<cuda_device>(calls_, i));
            }
        } catch (const std::bad_alloc &) {
            inventory_.devices.clear();
        }
    });
    looked_.store(true, std::memory_order_release);
    return inventory_;
}

cuda_device *cuda_platform::find(int ordinal) const noexcept {
    return ordinal >= 0 && ordinal < num_devices()
               ? look().devices[static_cast<size_t>(ordinal)].get()
               : nullptr;
}

// All GPUs reach managed memory. It is served by the one that it was allocated with, where the
// program probably uses it: the driver may name none, or another one, by where the pages are.
cuda_device *cuda_platform::find_of_managed(int ordinal, CUcontext context) noexcept {
    cuda_device *named = find(ordinal);
    if (named != nullptr && (context == nullptr || context == named->context())) {
        return named;
    }
    for (int i = 0; context != nullptr && i < num_devices(); ++i) {
        if (context == find(i)->context() || in_primary_context(context, i)) {
            return find(i);
        }
    }
    return named != nullptr ? named : find(std::max(current_device(), 0));
}

// Whether anybody has initialised the driver.
bool cuda_platform::initialised() noexcept {
    if (initialised_.load(std::memory_order_relaxed)) {
        return true;
    }
    CUcontext current = nullptr;
    if (calls_.context_current(&current) == CUDA_ERROR_NOT_INITIALIZED) {
        return false;
    }
    initialised_.store(true, std::memory_order_relaxed);
    return true;
}

// Kernels run in the primary context and do not reach memory of contexts that cuCtxCreate made.
// Memory without a context (pools, cuMemCreate) is reached by the whole device.
bool cuda_platform::in_primary_context(CUcontext context, int ordinal) noexcept {
    if (context == nullptr) {
        return true;
    }
    CUdevice device;
    unsigned flags = 0;
    int active = 0;
    CUcontext primary = nullptr;
    if (calls_.device_get(&device, ordinal) != CUDA_SUCCESS ||
        calls_.primary_state(device, &flags, &active) != CUDA_SUCCESS || active == 0 ||
        calls_.primary_retain(&primary, device) != CUDA_SUCCESS) {
        return false;
    }
    calls_.primary_release(device);
    return context == primary;
}

// The driver knows this of host memory only while a context is current; makes its owner's current.
CUdeviceptr cuda_platform::address_on_device(CUdeviceptr pointer, CUcontext owner) noexcept {
    if (owner == nullptr) {
        return 0;
    }
    current_scope scope(calls_, owner);
    CUpointer_attribute wanted = CU_POINTER_ATTRIBUTE_DEVICE_POINTER;
    CUdeviceptr on_device = 0;
    void *answer = &on_device;
    return scope && calls_.pointer_attributes(1, &wanted, &answer, pointer) == CUDA_SUCCESS
               ? on_device
               : 0;
}

memory_info cuda_platform::query(const void *address) noexcept {
    if (forked() || !initialised()) {
        return {};
    }
    CUpointer_attribute wanted[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                    CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                    CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                    CU_POINTER_ATTRIBUTE_CONTEXT,
                                    CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
                                    CU_POINTER_ATTRIBUTE_BUFFER_ID,
                                    CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
                                    CU_POINTER_ATTRIBUTE_RANGE_SIZE,
                                    CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE,
                                    CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES,
                                    CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR,
                                    CU_POINTER_ATTRIBUTE_MAPPING_SIZE,
                                    CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE};
    unsigned type = 0, managed = 0;
    int ordinal = -1;
    CUcontext context = nullptr;
    CUdeviceptr on_device = 0;
    unsigned long long id = 0;
    CUdeviceptr base = 0;
    size_t size = 0;
    uint64_t by_handle = 0, handle_types = 0;
    CUdeviceptr piece = 0;
    size_t piece_size = 0;
    CUmemoryPool pool = nullptr;
    void *answers[] = {&type, &ordinal,   &managed,      &context, &on_device,  &id,  &base,
                       &size, &by_handle, &handle_types, &piece,   &piece_size, &pool};
    auto pointer = reinterpret_cast<CUdeviceptr>(address);
    // Works in threads without a context; unknown values become 0.
    CUresult result = calls_.pointer_attributes(std::size(wanted), wanted, answers, pointer);
    if (result != CUDA_SUCCESS || (type == 0 && managed == 0)) {
        return {};
    }
    if (type == CU_MEMORYTYPE_HOST && managed == 0) {
        // Registered memory may have another address on the GPU; then it counts as host memory.
        if (on_device == 0) {
            on_device = address_on_device(pointer, context);
        }
        return {on_device == pointer ? memory_kind::pinned : memory_kind::host, -1};
    }
    cuda_device *where = managed != 0 ? find_of_managed(ordinal, context) : find(ordinal);
    if (where == nullptr || (managed == 0 && type != CU_MEMORYTYPE_DEVICE) || !where->serves() ||
        (context != nullptr && context != where->context() &&
         !in_primary_context(context, where->properties().ordinal)) ||
        !where->serves_allocation(id, context)) {
        if (where != nullptr && where->lost_context()) {
            nc_warn_once(
                "the application has reset GPU %d (cudaDeviceReset): UCX and MPI handle messages "
                "from its memory from now on",
                ordinal);
        }
        return {memory_kind::unknown, ordinal};
    }
    allocation_info whole = {reinterpret_cast<char *>(base), size, id, sharing::none};
    // Of a pool the handle types say how the pool can be exported. Neither we nor UCX export pools,
    // and the functions for pieces fail for memory of one. Managed memory cannot be exported.
    const bool is_of_pool = pool != nullptr, is_shared = managed == 0 && !is_of_pool;
    if (is_shared && by_handle != 0) {
        whole.shared = sharing::by_handle;
    } else if (is_shared && handle_types != 0) {  // what was reserved may have holes
        whole = {reinterpret_cast<char *>(piece), piece_size, id, sharing::by_descriptor};
    }
    if (whole.base == nullptr || whole.size == 0) {
        whole.id = 0;
    }
    return {managed != 0 ? memory_kind::managed : memory_kind::device, where->properties().ordinal,
            whole};
}

uint64_t cuda_platform::allocation_id(const void *address) noexcept {
    if (forked() || !initialised()) {
        return 0;
    }
    CUpointer_attribute wanted = CU_POINTER_ATTRIBUTE_BUFFER_ID;
    unsigned long long id = 0;
    void *answer = &id;
    const CUresult result =
        calls_.pointer_attributes(1, &wanted, &answer, reinterpret_cast<CUdeviceptr>(address));
    return result == CUDA_SUCCESS ? id : 0;
}

int cuda_platform::device_of(const void *address) noexcept {
    if (forked() || !initialised()) {
        return -1;
    }
    CUpointer_attribute wanted[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                    CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
    unsigned type = 0;
    int ordinal = -1;
    void *answers[] = {&type, &ordinal};
    const CUresult result =
        calls_.pointer_attributes(2, wanted, answers, reinterpret_cast<CUdeviceptr>(address));
    return result == CUDA_SUCCESS && type == CU_MEMORYTYPE_DEVICE ? ordinal : -1;
}

int cuda_platform::current_device() noexcept {
    CUcontext current = nullptr;
    CUdevice device = 0;
    if (forked() || !initialised() || calls_.context_current(&current) != CUDA_SUCCESS ||
        current == nullptr || calls_.context_device(&device) != CUDA_SUCCESS) {
        return -1;
    }
    for (int ordinal = 0; ordinal < num_devices(); ++ordinal) {
        CUdevice one = 0;
        if (calls_.device_get(&one, ordinal) == CUDA_SUCCESS && one == device) {
            return ordinal;
        }
    }
    return -1;
}

int cuda_platform::current_primary_device() noexcept {
    CUcontext current = nullptr;
    const int ordinal = current_scope::surrounds_this_thread() ? -1 : current_device();
    if (ordinal < 0 || calls_.context_current(&current) != CUDA_SUCCESS) {
        return -1;
    }
    return current == find(ordinal)->context() || in_primary_context(current, ordinal) ? ordinal
                                                                                       : -1;
}

}  // namespace
}  // namespace cuda_nc::gpu::cuda

namespace cuda_nc::gpu {

std::unique_ptr<platform> make_cuda_platform(bool used, std::string *why_p) noexcept {
    try {
        const cuda::driver *calls = cuda::driver::load(why_p);
        return calls == nullptr ? nullptr : std::make_unique<cuda::cuda_platform>(*calls, used);
    } catch (...) {
        return nullptr;
    }
}

}  // namespace cuda_nc::gpu
