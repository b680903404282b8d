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

// What a convertor was prepared with, and how many bytes it has passed.
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

// Convertors by their addresses. One thread at a time uses a convertor, as Open MPI demands; the
// tracker itself is thread safe. Open MPI does not tell us when a convertor dies: its entry stays
// until a convertor at the same address is prepared.
class convertor_tracker {
  public:
    static convertor_tracker &instance() noexcept;

    // Replaces the convertor's entry. Throws std::bad_alloc.
    void remember(const void *convertor, std::unique_ptr<tracked_convertor> entry);
    void forget(const void *convertor) noexcept;
    // Null where it is not tracked. Valid until the same convertor is remembered or forgotten.
    tracked_convertor *find(const void *convertor) noexcept;

    // Takes no lock. True in all jobs that pack no GPU memory by a convertor.
    bool empty() const noexcept { return size_.load(std::memory_order_relaxed) == 0; }

  private:
    std::mutex mutex_;
    std::unordered_map<const void *, std::unique_ptr<tracked_convertor>> entries_;
    std::atomic<size_t> size_{0};
};

}  // namespace cuda_nc::hooks
