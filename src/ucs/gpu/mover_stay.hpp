// How long a mover's kernel waits for the next order: the decision of the kernel, on a GPU and on
// the simulated one. Times are nanoseconds of any clock that does not go back.
//
// A process whose CPU waits in UCX for a message will give the next order at once, so the kernel
// waits for it up to the idle time. One whose CPU does something else may be waiting for the
// device, and so for this kernel. What tells them apart is a word, the pulse, which the kernel
// reads with the orders: posts of messages and calls of UCX's progress change it (mover_pulse.hpp).
// It counts where, since the last order, it has changed by progress: after packs and fragments
// nobody of ours is called while the process waits, though it may have posted a receive. A kernel
// that is launched behind an order takes it for the last one, and compares with the pulse at the
// order before that.
#pragma once

#include <cstdint>

#include "ucs/base/compiler.hpp"

namespace cuda_nc::gpu {

class mover_stay {
  public:
    // `idle`: the longest wait for an order. `away`: the longest one while the pulse stands still.
    // `pulse`: as it was, perhaps long ago, before the order that the kernel is launched behind.
    CUDA_NC_HD void begin(uint64_t now, uint64_t idle, uint64_t away, uint64_t pulse) {
        idle_ = idle;
        away_ = away;
        order_ = beat_ = now;
        pulse_ = pulse;
        beats_ = false;
    }
    CUDA_NC_HD void note_order(uint64_t now) {
        order_ = now;
        beats_ = false;
    }
    // The pulse as it was read; 0: it has never changed.
    CUDA_NC_HD void note_pulse(uint64_t now, uint64_t pulse) {
        if (pulse != pulse_) {
            beat_ = now;
            beats_ = beats_ || pulse >> 32 != pulse_ >> 32;
            pulse_ = pulse;
        }
    }
    CUDA_NC_HD bool is_over(uint64_t now) const {
        return since(now, order_) > idle_ ||
               (beats_ && since(now, order_) > away_ && since(now, beat_) > away_);
    }

  private:
    CUDA_NC_HD static uint64_t since(uint64_t now, uint64_t then) {
        return now > then ? now - then : 0;
    }

    uint64_t idle_ = 0, away_ = 0;
    uint64_t order_ = 0;  // when the last one came
    uint64_t pulse_ = 0, beat_ = 0;
    bool beats_ = false;  // by progress, since the last order
};

}  // namespace cuda_nc::gpu
