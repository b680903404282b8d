#include "capi/side.hpp"

#include "capi/error.hpp"
#include "ucp/dt/address.hpp"

namespace cuda_nc::capi {

// A null base is right for a layout of addresses, whose lowest byte lies well above 0.
ucs_status_t find_memory(side *of) noexcept {
    const layout &what = of->what;
    if (of->base == nullptr && what.lower_bound() <= 0) {
        return fail(UCS_ERR_INVALID_PARAM, "%s: null", of->name);
    }
    gpu::platform &gpus = gpu::platform::instance();
    of->memory = gpus.query(dt::displaced(of->base, what.lower_bound()));
    if (of->memory.kind == gpu::memory_kind::unknown) {
        return fail(UCS_ERR_UNSUPPORTED, "%s: GPU memory of a kind that is not served", of->name);
    }
    if (!gpu::are_alike(of->memory, gpus.query(dt::displaced(of->base, what.upper_bound() - 1)))) {
        return fail(UCS_ERR_UNSUPPORTED,
                    "%s: the lowest and the highest byte of the layout lie in memory of two kinds, "
                    "or of two GPUs",
                    of->name);
    }
    return UCS_OK;
}

ucs_status_t find_device(const side &one, const side &other, gpu::device **where_p) noexcept {
    *where_p = nullptr;
    if (!one.is_on_gpu() && !other.is_on_gpu()) {
        return UCS_OK;
    }
    for (const side *each : {&one, &other}) {
        if (each->memory.kind == gpu::memory_kind::host) {
            return fail(UCS_ERR_UNSUPPORTED,
                        "%s: pageable host memory, which kernels do not reach; the other buffer is "
                        "on a GPU",
                        each->name);
        }
    }
    const bool one_is_fixed = one.memory.kind == gpu::memory_kind::device,
               other_is_fixed = other.memory.kind == gpu::memory_kind::device;
    if (one_is_fixed && other_is_fixed && one.memory.device != other.memory.device) {
        return fail(UCS_ERR_UNSUPPORTED, "%s: on GPU %d, but %s is on GPU %d", one.name,
                    one.memory.device, other.name, other.memory.device);
    }
    const side &decides = one_is_fixed || (!other_is_fixed && one.is_on_gpu()) ? one : other;
    *where_p = gpu::platform::instance().get_device(decides.memory.device);
    return *where_p != nullptr ? UCS_OK
                               : fail(UCS_ERR_UNSUPPORTED, "%s: on GPU %d, which is not served",
                                      decides.name, decides.memory.device);
}

}  // namespace cuda_nc::capi
