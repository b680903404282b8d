// The convertors whose buffers lie in GPU memory.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "ucp/dt/request_state.hpp"
#include "ucs/gpu/device.hpp"
#include "ucs/layout/layout.hpp"

namespace cuda_nc::hooks {

// What a convertor was prepared with, and how far it has come.
struct tracked_convertor {
    const void *datatype = nullptr;
    size_t count = 0;
    char *buffer = nullptr;
    gpu::memory_info info;
    layout_ref what;      // null before the first move
    size_t position = 0;  // packed bytes passed
    dt::request_state *running = nullptr;

    tracked_convertor() = default;
    tracked_convertor(const tracked_convertor &) = delete;
    tracked_convertor &operator=(const tracked_convertor &) = delete;
    ~tracked_convertor() { stop(); }

    void stop() noexcept {
        if (running != nullptr) {
            running->finish();
            running = nullptr;
        }
    }
};

// By the convertor's address. A convertor is used by one thread at a time, as Open MPI demands; the
// tracker itself is thread safe. Nobody tells us that a convertor has died: an entry stays until
// its address is prepared again.
class convertor_tracker {
  public:
    static convertor_tracker &instance() noexcept;

    // Throws std::bad_alloc.
    void remember(const void *convertor, std::unique_ptr<tracked_convertor> entry);
    void forget(const void *convertor) noexcept;
    // Null where unknown. Valid until the same convertor is remembered or forgotten.
    tracked_convertor *find(const void *convertor) noexcept;

    // No lock, no look-up: almost always true.
    bool empty() const noexcept { return size_.load(std::memory_order_relaxed) == 0; }

  private:
    std::mutex mutex_;
    std::unordered_map<const void *, std::unique_ptr<tracked_convertor>> entries_;
    std::atomic<size_t> size_{0};
};

}  // namespace cuda_nc::hooks
