#include "uct/cuda_nc/protocol/gpu_preparation.hpp"

#include <array>
#include <atomic>
#include <cstdint>

#include "ucs/base/log.hpp"
#include "ucs/base/settings.hpp"
#include "ucs/base/trace.hpp"
#include "ucs/gpu/device.hpp"
#include "uct/cuda_nc/engine/admission.hpp"
#include "uct/cuda_nc/engine/stream_pool.hpp"
#include "uct/cuda_nc/pipe/port.hpp"

namespace cuda_nc::uct {
namespace {

// The events of libucm, and how early it calls us: after its own handlers (1000), so that UCX knows
// of memory before we use it.
constexpr int gpu_memory_allocated = 1 << 20, after_ucx = 2000;

struct preparation {
    std::atomic<bool> busy{false};
    bool done = false;
    uint64_t requests = 0;  // of the device by then, if all are the preparation's; else 0
};

// A program may reset a GPU before its first message. Where nobody has used it, nor what was
// prepared, that is as if nothing had been.
bool has_lost_all(int device, gpu::device &on, const preparation &before) noexcept {
    return on.requests() == before.requests && on.was_reset() && drop_unused_streams(device) &&
           drop_unused_ports(device);
}

void prepare(int device, gpu::device &on, preparation &its) noexcept {
    if (has_lost_all(device, on, its)) {
        on.begin_again();
        its.done = false;
    }
    if (!its.done) {
        const trace_span span("prepare a GPU");
        const uint64_t before = on.requests(), own_before = on.requests_of_this_thread();
        const bool made = has_stream(device) && has_ports(device);
        nc_debug("GPU %d is %sprepared for messages", device, made ? "" : "not ");
        its.done = true;
        const uint64_t after = on.requests(), own = on.requests_of_this_thread() - own_before;
        its.requests = before == its.requests && after - before == own ? after : 0;
    }
}

// UCX calls it in the allocating thread, after the allocation. Only a GPU whose primary context the
// program has made is prepared: we make none that it may not want. Our own allocations do not come
// so far: who makes them may hold locks that are needed here. What fails is tried again by the
// message that needs it.
void after_allocation(int, void *, void *) {
    static std::array<preparation, max_devices> all;
    gpu::platform &gpus = gpu::platform::instance();
    const int device = gpus.current_primary_device();
    gpu::device *on = device < max_devices ? gpus.get_device(device) : nullptr;
    if (on == nullptr) {
        return;
    }
    preparation &its = all[static_cast<size_t>(device)];
    if (!its.busy.exchange(true, std::memory_order_acquire)) {  // else another thread is at it
        prepare(device, *on, its);
        its.busy.store(false, std::memory_order_release);
    }
}

}  // namespace

void prepare_gpus_at_allocations(const ucx_api &ucx) noexcept {
    static std::array<std::atomic<bool>, max_ucx_instances> watched{};
    if (ucx.ucm_set_event_handler == nullptr || watched[ucx.instance].exchange(true) ||
        !config().watches_allocations) {
        return;
    }
    const ucs_status_t status =
        ucx.ucm_set_event_handler(gpu_memory_allocated, after_ucx, after_allocation, nullptr);
    nc_debug("UCX %s of allocations of GPU memory", status == UCS_OK ? "tells" : "does not tell");
}

}  // namespace cuda_nc::uct
