#include "uct/cuda_nc/engine/event_pool.hpp"

#include <new>
#include <utility>

namespace cuda_nc::uct {

std::unique_ptr<gpu::event> event_pool::acquire(int device) noexcept {
    const auto found = idle_.find(device);
    if (found != idle_.end() && !found->second.empty()) {
        std::unique_ptr<gpu::event> idle = std::move(found->second.back());
        found->second.pop_back();
        return idle;
    }
    gpu::device *gpu = gpu::platform::instance().get_device(device);
    std::unique_ptr<gpu::event> made;
    if (gpu == nullptr || gpu->create_event(&made) != UCS_OK) {
        return nullptr;
    }
    return made;
}

void event_pool::release(int device, std::unique_ptr<gpu::event> back) noexcept try {
    idle_[device].push_back(std::move(back));
} catch (const std::bad_alloc &) {
    // the event ends here
}

}  // namespace cuda_nc::uct
