// Pinned memory through which tables are uploaded to a GPU, so that the CPU need not wait for the
// bus.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "ucs/gpu/device.hpp"

namespace cuda_nc::worklist {

// A few slots for each device, reused when the copies out of them are done. Thread safe.
class upload_staging {
  public:
    explicit upload_staging(gpu::device &where) noexcept : where_(where) {}

    // Enqueues on `on` a copy of `length` bytes of ordinary host memory to `destination`. Where all
    // slots are in flight the copy reads `source` itself, which must stay until it is done. Never
    // waits for the GPU, beyond what a copy from pageable memory does by itself.
    ucs_status_t copy(gpu::stream &on, char *destination, const char *source,
                      size_t length) noexcept;

  private:
    struct slot {
        std::unique_ptr<gpu::memory> pinned;
        std::unique_ptr<gpu::event> done;
        bool in_flight = false;
    };
    // An idle slot, or null.
    slot *acquire() noexcept;

    static constexpr size_t slot_size = size_t{1} << 20;
    static constexpr size_t max_slots = 4;

    gpu::device &where_;
    std::mutex mutex_;
    std::vector<std::unique_ptr<slot>> slots_;
};

}  // namespace cuda_nc::worklist
