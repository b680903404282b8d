#include "uct/cuda_nc/engine/event_pool.hpp"

#include <new>

namespace cuda_nc::uct {

std::unique_ptr<gpu::event> event_pool::acquire(int device) noexcept {
    for (auto &[where, idle] : all_) {
        if (where == device && idle != nullptr) {
            return std::move(idle);
        }
    }
    gpu::device *gpu = gpu::platform::instance().get_device(device);
    std::unique_ptr<gpu::event> made;
    if (gpu == nullptr || gpu->create_event(&made) != UCS_OK) {
        return nullptr;
    }
    return made;
}

void event_pool::release(int device, std::unique_ptr<gpu::event> back) noexcept try {
    for (auto &[where, place] : all_) {
        if (place == nullptr) {
            where = device;
            place = std::move(back);
            return;
        }
    }
    all_.emplace_back(device, std::move(back));
} catch (const std::bad_alloc &) {
    // the event ends here
}

}  // namespace cuda_nc::uct
