// Entry points of the CUDA driver, found at run time, so that the library also loads without a
// driver. Used where the runtime's counterpart would make a context that nobody asked for.
#pragma once

#include <cuda.h>

#include <string>

#define CUDA_NC_TEXT_OF(name) #name
// The name that cuda.h gives to this version of a function: cuMemGetAddressRange_v2.
#define CUDA_NC_SYMBOL_OF(name) CUDA_NC_TEXT_OF(name)

namespace cuda_nc::gpu::cuda {

struct driver {
    decltype(&::cuInit) init;
    decltype(&::cuDriverGetVersion) get_version;
    decltype(&::cuGetErrorString) get_error_string;
    decltype(&::cuDeviceGetCount) device_count;
    decltype(&::cuDeviceGet) device_get;
    decltype(&::cuDeviceGetName) device_name;
    decltype(&::cuDeviceGetAttribute) device_attribute;
    decltype(&::cuDeviceTotalMem) device_memory;
    decltype(&::cuDeviceGetPCIBusId) device_bus_id;
    decltype(&::cuDeviceCanAccessPeer) device_can_access_peer;
    decltype(&::cuDevicePrimaryCtxRetain) primary_retain;
    decltype(&::cuDevicePrimaryCtxRelease) primary_release;
    decltype(&::cuDevicePrimaryCtxGetState) primary_state;
    decltype(&::cuCtxGetCurrent) context_current;
    decltype(&::cuCtxGetDevice) context_device;
    decltype(&::cuCtxPushCurrent) context_push;
    decltype(&::cuCtxPopCurrent) context_pop;
    decltype(&::cuThreadExchangeStreamCaptureMode) exchange_capture_mode;
    decltype(&::cuPointerGetAttributes) pointer_attributes;
    decltype(&::cuMemGetAddressRange) address_range;
    decltype(&::cuIpcOpenMemHandle) ipc_open;
    decltype(&::cuMemcpyDtoDAsync) copy_gpu_memory;
    decltype(&::cuLaunchKernelEx) launch;                            // null before CUDA 11.8
    decltype(&::cuStreamWriteValue32) write_value;                   // null before CUDA 11.7
    CUresult(CUDAAPI *context_id)(CUcontext, unsigned long long *);  // null before CUDA 12.0

    // For memory made of pieces; null where the driver lacks one.
    decltype(&::cuMemRetainAllocationHandle) retain_piece;
    decltype(&::cuMemExportToShareableHandle) export_piece;
    decltype(&::cuMemImportFromShareableHandle) import_piece;
    decltype(&::cuMemRelease) release_piece;
    decltype(&::cuMemAddressReserve) reserve_addresses;
    decltype(&::cuMemAddressFree) free_addresses;
    decltype(&::cuMemMap) map;
    decltype(&::cuMemUnmap) unmap;
    decltype(&::cuMemSetAccess) set_access;
    bool shares_pieces() const noexcept {
        return retain_piece != nullptr && export_piece != nullptr && import_piece != nullptr &&
               release_piece != nullptr && reserve_addresses != nullptr &&
               free_addresses != nullptr && map != nullptr && unmap != nullptr &&
               set_access != nullptr;
    }

    // For the application's streams; null where the driver lacks one.
    CUresult(CUDAAPI *stream_id)(CUstream, unsigned long long *);
    CUresult(CUDAAPI *stream_context)(CUstream, CUcontext *);
    CUresult(CUDAAPI *capture_info)(CUstream, CUstreamCaptureStatus *, cuuint64_t *, CUgraph *,
                                    const CUgraphNode **, size_t *);
    CUresult(CUDAAPI *user_object_create)(CUuserObject *, void *, CUhostFn, unsigned, unsigned);
    CUresult(CUDAAPI *graph_retain)(CUgraph, CUuserObject, unsigned, unsigned);
    bool borrows_streams() const noexcept {
        return stream_id != nullptr && stream_context != nullptr && capture_info != nullptr &&
               user_object_create != nullptr && graph_retain != nullptr;
    }

    // Loads libcuda.so.1 once per process and calls only cuDriverGetVersion. Null, with a sentence
    // in *why_p: there is no driver.
    static const driver *load(std::string *why_p);
};

}  // namespace cuda_nc::gpu::cuda
