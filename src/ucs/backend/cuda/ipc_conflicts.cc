#include "ucs/backend/cuda/ipc_conflicts.hpp"

#include <atomic>
#include <mutex>

#include "ucs/base/elf_walker.hpp"
#include "ucs/base/loaded_objects.hpp"
#include "ucs/base/log.hpp"

namespace cuda_nc::gpu::cuda {
namespace {

decltype(&::cuIpcOpenMemHandle) real_open = nullptr;
std::atomic<void (*)() noexcept> release_ours{nullptr};

// A process opens an allocation once, whoever asks, and again and again; but what lies where the
// peer has a newer one now must be closed first, and only who opened it can. UCX ends the process
// where that was not UCX.
CUresult CUDAAPI open_or_make_room(CUdeviceptr *address, CUipcMemHandle handle, unsigned flags) {
    CUresult result = real_open(address, handle, flags);
    if (result == CUDA_ERROR_ALREADY_MAPPED) {
        nc_debug("memory of ended allocations of peers is closed for others' sake");
        release_ours.load(std::memory_order_acquire)();
        result = real_open(address, handle, flags);
    }
    return result;
}

}  // namespace

bool watch_ipc_conflicts(const driver &calls, void (*release)() noexcept) noexcept {
    static std::mutex mutex;
    static bool watching = false;
    std::lock_guard<std::mutex> guard(mutex);
    release_ours.store(release, std::memory_order_release);
    if (!watching) {
        real_open = calls.ipc_open;
        const replacement opening = {CUDA_NC_SYMBOL_OF(cuIpcOpenMemHandle),
                                     reinterpret_cast<void *>(open_or_make_room)};
        const size_t changed = redirect_loaded_objects(&opening, 1);
        // Without UCX's own transport for CUDA IPC nobody opens what applications allocate.
        watching = changed != 0 || !is_library_loaded("libuct_cuda");
        nc_debug("calls that open memory of peers: %zu redirected", changed);
    }
    return watching;
}

}  // namespace cuda_nc::gpu::cuda
