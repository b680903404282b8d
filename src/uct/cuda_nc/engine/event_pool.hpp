// Events of one interface that are not in use. Used with UCX's worker locked.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "ucs/gpu/device.hpp"

namespace cuda_nc::uct {

class event_pool {
  public:
    // An event of `device`; null: out of resources.
    std::unique_ptr<gpu::event> acquire(int device) noexcept;
    void release(int device, std::unique_ptr<gpu::event> back) noexcept;

  private:
    std::map<int, std::vector<std::unique_ptr<gpu::event>>> idle_;  // by device
};

}  // namespace cuda_nc::uct
