#include "ucs/backend/cuda/driver.hpp"

#include <dlfcn.h>

namespace cuda_nc::gpu::cuda {
namespace {

template <typename F>
bool find(void *library, const char *symbol, F *function_p, std::string *why_p) {
    *function_p = reinterpret_cast<F>(dlsym(library, symbol));
    if (*function_p == nullptr) {
        *why_p = std::string("libcuda.so.1 has no ") + symbol;
    }
    return *function_p != nullptr;
}

bool fill(void *library, driver *all, std::string *why_p) {
    // an older driver still tells whose memory an address is
    std::string without;
    find(library, CUDA_NC_SYMBOL_OF(cuLaunchKernelEx), &all->launch, &without);
    find(library, CUDA_NC_SYMBOL_OF(cuStreamWriteValue32), &all->write_value, &without);
    find(library, CUDA_NC_SYMBOL_OF(cuMemRetainAllocationHandle), &all->retain_piece, &without);
    find(library, CUDA_NC_SYMBOL_OF(cuMemExportToShareableHandle), &all->export_piece, &without);
    find(library, CUDA_NC_SYMBOL_OF(cuMemImportFromShareableHandle), &all->import_piece, &without);
    find(library, CUDA_NC_SYMBOL_OF(cuMemRelease), &all->release_piece, &without);
    find(library, CUDA_NC_SYMBOL_OF(cuMemAddressReserve), &all->reserve_addresses, &without);
    find(library, CUDA_NC_SYMBOL_OF(cuMemAddressFree), &all->free_addresses, &without);
    find(library, CUDA_NC_SYMBOL_OF(cuMemMap), &all->map, &without);
    find(library, CUDA_NC_SYMBOL_OF(cuMemUnmap), &all->unmap, &without);
    find(library, CUDA_NC_SYMBOL_OF(cuMemSetAccess), &all->set_access, &without);
    find(library, "cuCtxGetId", &all->context_id, &without);
    find(library, "cuStreamGetId", &all->stream_id, &without);
    find(library, "cuStreamGetCtx", &all->stream_context, &without);
    find(library, "cuStreamGetCaptureInfo_v2", &all->capture_info, &without);
    find(library, "cuUserObjectCreate", &all->user_object_create, &without);
    find(library, "cuGraphRetainUserObject", &all->graph_retain, &without);
#define FIND(member, name) find(library, CUDA_NC_SYMBOL_OF(name), &all->member, why_p)
    return FIND(init, cuInit) && FIND(get_version, cuDriverGetVersion) &&
           FIND(get_error_string, cuGetErrorString) && FIND(device_count, cuDeviceGetCount) &&
           FIND(device_get, cuDeviceGet) && FIND(device_name, cuDeviceGetName) &&
           FIND(device_attribute, cuDeviceGetAttribute) && FIND(device_memory, cuDeviceTotalMem) &&
           FIND(device_bus_id, cuDeviceGetPCIBusId) &&
           FIND(device_can_access_peer, cuDeviceCanAccessPeer) &&
           FIND(primary_retain, cuDevicePrimaryCtxRetain) &&
           FIND(primary_release, cuDevicePrimaryCtxRelease) &&
           FIND(primary_state, cuDevicePrimaryCtxGetState) &&
           FIND(context_current, cuCtxGetCurrent) && FIND(context_device, cuCtxGetDevice) &&
           FIND(context_push, cuCtxPushCurrent) && FIND(context_pop, cuCtxPopCurrent) &&
           FIND(exchange_capture_mode, cuThreadExchangeStreamCaptureMode) &&
           FIND(pointer_attributes, cuPointerGetAttributes) &&
           FIND(address_range, cuMemGetAddressRange) && FIND(ipc_open, cuIpcOpenMemHandle) &&
           FIND(copy_gpu_memory, cuMemcpyDtoDAsync);
#undef FIND
}

}  // namespace

const driver *driver::load(std::string *why_p) {
    static driver only;
    static std::string why;
    static const bool loaded = [] {
        // Never closed: the driver does not survive dlclose().
        void *library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
        if (library == nullptr) {
            const char *text = dlerror();
            why = std::string("no NVIDIA driver: ") + (text != nullptr ? text : "libcuda.so.1");
            return false;
        }
        int version = 0;
        if (!fill(library, &only, &why)) {
            return false;
        }
        if (only.get_version(&version) != CUDA_SUCCESS) {
            why = "libcuda.so.1 is a stub, not a driver";
            return false;
        }
        return true;
    }();
    if (!loaded) {
        *why_p = why;
    }
    return loaded ? &only : nullptr;
}

}  // namespace cuda_nc::gpu::cuda
