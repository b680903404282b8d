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

// The driver maps a peer's allocation at one address. An older mapping at that address, of memory
// that the peer has freed since, must be closed first, and only its owner can. UCX ends the process
// where the owner is not UCX, so we close ours and try again.
CUresult CUDAAPI open_or_make_room(CUdeviceptr *address, CUipcMemHandle handle, unsigned flags) {
    CUresult result = real_open(address, handle, flags);
    if (result == CUDA_ERROR_ALREADY_MAPPED) {
        nc_debug(
            "closing mappings of peers' freed memory, to make room for another user of CUDA IPC");
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
    if (real_open == nullptr) {
        real_open = calls.ipc_open;
    }
    const replacement opening = {CUDA_NC_SYMBOL_OF(cuIpcOpenMemHandle),
                                 reinterpret_cast<void *>(open_or_make_room)};
    const size_t changed = redirect_loaded_objects(&opening, 1);  // that are not yet
    // Without UCX's own transport for CUDA IPC nobody else maps memory that applications allocate.
    watching = watching || changed != 0 || !is_library_loaded("libuct_cuda");
    nc_debug("cuIpcOpenMemHandle: %zu calls redirected", changed);
    return watching;
}

}  // namespace cuda_nc::gpu::cuda
