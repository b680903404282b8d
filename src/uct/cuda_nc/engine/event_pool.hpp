// Events of one interface that are not in use. Used with UCX's worker locked.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "ucs/gpu/device.hpp"

namespace cuda_nc::uct {

class event_pool {
  public:
    // An event of `device`; null: out of resources.
    std::unique_ptr<gpu::event> acquire(int device) noexcept;
    void release(int device, std::unique_ptr<gpu::event> back) noexcept;

  private:
    std::vector<std::pair<int, std::unique_ptr<gpu::event>>> all_;  // null: the place is free
};

}  // namespace cuda_nc::uct
