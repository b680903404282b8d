// What protects a message's state from ending twice while UCP cancels its receive.
//
// No UCX calls a datatype's finish() for a receive that it cancels, so the hooks do it afterwards
// (hooks/common/request_cancel.hpp). Another thread, or a later UCX, may call finish() meanwhile:
// whoever is second does nothing.
#pragma once

#include <atomic>

#include "ucs/base/compiler.hpp"

namespace cuda_nc::dt {

// A cancel of the receive that keeps `state`, from before UCP's call to after it. On the stack of
// the thread that cancels.
class cancelled_state {
  public:
    explicit cancelled_state(const void *state) noexcept;
    ~cancelled_state();
    cancelled_state(const cancelled_state &) = delete;
    cancelled_state &operator=(const cancelled_state &) = delete;

    // Whether finish() was called for the state since this object was made.
    bool is_finished() const noexcept;

  private:
    friend void note_finish_slow(const void *) noexcept;

    const void *const state_;
    bool finished_ = false;
    cancelled_state *next_;
};

extern std::atomic<unsigned> cancels_under_way;
void note_finish_slow(const void *state) noexcept;

// To be called first by every finish() with the word that UCX keeps. Costs one load.
inline void note_finish(const void *state) noexcept {
    if (CUDA_NC_UNLIKELY(cancels_under_way.load(std::memory_order_relaxed) != 0)) {
        note_finish_slow(state);
    }
}

}  // namespace cuda_nc::dt
