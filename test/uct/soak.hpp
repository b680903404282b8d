// A matrix that goes on for a time: when its last batch is, and whether its processes grow.
#pragma once

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <string>

#include "test/mpi/support/process_size.hpp"
#include "test/uct/options.hpp"

namespace matrix {

// In memory of all processes. None waits for the others before a batch, so the last batch is one
// that none has begun when the time is over.
class batch_gate {
  public:
    // False: there is no batch `number` any more.
    bool may_begin(int number, bool is_over) {
        while (busy_.exchange(true)) {
            sched_yield();
        }
        if (is_over && number_of_batches_ < 0) {
            number_of_batches_ = std::max(furthest_, number - 1) + 1;
        }
        const bool may = number_of_batches_ < 0 || number < number_of_batches_;
        furthest_ = may ? std::max(furthest_, number) : furthest_;
        busy_ = false;
        return may;
    }

  private:
    std::atomic<bool> busy_{false};
    int furthest_ = -1;
    int number_of_batches_ = -1;
};

// The largest size of a process in each third of the time: the first one fills pools and caches.
class growth_watch {
  public:
    void look(double part_of_time) {
        const auto now = mpi_test::process_size::now();
        auto &largest = largest_[std::clamp(static_cast<int>(part_of_time * 3), 0, 2)];
        largest.kilobytes = std::max(largest.kilobytes, now.kilobytes);
        largest.descriptors = std::max(largest.descriptors, now.descriptors);
        largest.mappings = std::max(largest.mappings, now.mappings);
    }
    // Ends the process where it has grown.
    void check() const {
        // What threads of the C library's allocator and of UCX add and return.
        constexpr long kilobytes = 8 << 10, descriptors = 4, mappings = 64;
        const auto &before = largest_[1], &after = largest_[2];
        std::printf("rank %d: %ld KiB, %ld descriptors, %ld mappings; before: %ld, %ld, %ld\n",
                    rank_, after.kilobytes, after.descriptors, after.mappings, before.kilobytes,
                    before.descriptors, before.mappings);
        if (after.kilobytes > before.kilobytes + kilobytes) {
            fail("its memory grows");
        }
        if (after.descriptors > before.descriptors + descriptors) {
            fail("its descriptors become more");
        }
        if (after.mappings > before.mappings + mappings) {
            fail("its mappings become more");
        }
    }

  private:
    mpi_test::process_size largest_[3];
};

}  // namespace matrix
