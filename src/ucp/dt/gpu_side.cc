#include "ucp/dt/gpu_side.hpp"

#include "ucs/base/compiler.hpp"
#include "uct/cuda_nc/thread_context.hpp"

namespace cuda_nc::dt {

ucs_status_t pack_gpu(gpu_sender &from, uint64_t offset, char *destination,
                      size_t *length_p) noexcept {
    uct::pack_call *call = uct::pack_call::current();
    if (CUDA_NC_LIKELY(call == nullptr || !from.packer().has_kernels())) {
        from.leave_transport();  // these bytes go through host memory, whatever moved the earlier
        return from.read(offset, destination, *length_p);
    }
    size_t first = *length_p;
    switch (call->ask(from, offset, &first)) {
        case uct::pack_answer::first:
            *length_p = first;
            return from.read(offset, destination, *length_p, 1);
        case uct::pack_answer::wait:
            return UCS_OK;
        case uct::pack_answer::fin:
            from.count_direct();
            *length_p = static_cast<size_t>(from.packed_bytes() - offset);
            return UCS_OK;
        case uct::pack_answer::fragment:
            break;
    }
    return from.read(offset, destination, *length_p);
}

ucs_status_t unpack_gpu(gpu_receiver &to, uint64_t offset, const char *source,
                        size_t length) noexcept {
    uct::unpack_call *&current = uct::unpack_call::current_;
    uct::unpack_call *call = current;
    if (CUDA_NC_LIKELY(call == nullptr)) {
        to.leave_transport();  // no kernel writes there after these bytes
        return to.write(offset, source, length);
    }
    current = nullptr;  // for these bytes alone
    if (call->fin) {
        if (call->buffer != &to) {
            return UCS_ERR_IO_ERROR;
        }
        if (call->whole && call->status == UCS_OK) {
            to.drop_gathered();
        }
        return to.arrived(length, call->status);
    }
    ucs_status_t status = to.write(offset, source, length);
    if (status == UCS_OK && to.packer().has_kernels()) {
        call->finder = to.handle.value();
    }
    return status;
}

}  // namespace cuda_nc::dt
