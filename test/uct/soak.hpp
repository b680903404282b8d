// A matrix that goes on for a time: when its last batch is, and whether its processes grow.
#pragma once

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <string>
#include <vector>

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

// The sizes of a process in the second and the last third of the time. It has grown where the
// largest one and the usual one, the median, have: the largest by itself may be a window of large
// messages, the usual one pools and caches that are still filled.
class growth_watch {
  public:
    void look(double part_of_time) {
        const auto now = mpi_test::process_size::now();
        third &its = thirds_[std::clamp(static_cast<int>(part_of_time * 3), 0, 2)];
        its.kilobytes.push_back(now.kilobytes);
        its.descriptors.push_back(now.descriptors);
        its.mappings.push_back(now.mappings);
    }
    // Ends the process where it has grown.
    void check() {
        // What threads of the C library's allocator and of UCX add and return.
        compare("KiB", 16 << 10, thirds_[1].kilobytes, thirds_[2].kilobytes);
        compare("descriptors", 4, thirds_[1].descriptors, thirds_[2].descriptors);
        compare("mappings", 64, thirds_[1].mappings, thirds_[2].mappings);
    }

  private:
    static void compare(const char *what, long most, std::vector<long> &before,
                        std::vector<long> &after) {
        if (before.empty() || after.empty()) {
            fail("too short a time to tell whether it grows");
        }
        std::sort(before.begin(), before.end());
        std::sort(after.begin(), after.end());
        const long usual_before = before[before.size() / 2], usual = after[after.size() / 2];
        std::printf("rank %d: %s: usually %ld, at most %ld; before: %ld, %ld\n", rank_, what, usual,
                    after.back(), usual_before, before.back());
        if (usual > usual_before + most && after.back() > before.back() + most) {
            fail(std::string("it grows: ") + what);
        }
    }

    struct third {
        std::vector<long> kilobytes, descriptors, mappings;
    };
    third thirds_[3];
};

}  // namespace matrix
