// Predicts how long a layout takes, from a machine's figures.
//
//     time = start of a call + packed MiB * rate(family, alignment, block, bytes touched)
//
// The family follows from the kernel that the layout would get. Strided blocks that lie apart are
// interpolated between `strided` and `sparse`, lists in some order between `strided` and `listed`.
#pragma once

#include <algorithm>
#include <string>

#include "ucs/layout/layout.hpp"
#include "ucs/model/profile.hpp"

namespace cuda_nc::exec {
struct kernel_choice;
}

namespace cuda_nc::model {

// The properties of a layout that matter to memory.
struct features {
    double block = 0;      // bytes, mean
    double distance = 0;   // bytes from where a block begins to where the next does, usually
    double scattered = 0;  // share of a list's blocks that do not follow the one before, 0 to 1
    double touched = 0;    // bytes of the memory's lines that hold the layout
    unsigned align_log2 = 0;
    bool list = false, uneven = false;
};

// `misalign`: bytes by which the buffer is off its alignment.
features features_of(const layout &what, size_t misalign);

// The kernel that a launch would choose for the beginning of a layout, by of.rules.
exec::kernel_choice choose_kernel(const gpu_profile &of, unsigned num_sms, const layout &what,
                                  gpu::direction dir, size_t misalign, unsigned max_sms);
// The same in short, for people.
struct planned_kernel {
    std::string text;  // for people: "words of 8 B"
    uint32_t grid = 0, threads = 0;
    bool tiles = false;
    unsigned word_log2 = 0;  // bytes moved at a time at most, where they are words or tiles
    bool words = false;
};
planned_kernel plan_kernel(const gpu_profile &of, unsigned num_sms, const layout &what,
                           gpu::direction dir, size_t misalign, unsigned max_sms);

struct prediction {
    family what = family::strided;  // mostly
    double rate = 0;                // us for a MiB
    double each = 0;                // us of one of many calls after each other
    double single = 0;              // us of one call to completion, seen by the CPU
};

// Where the packed bytes are, or how they get there.
enum class packed_side : uint8_t {
    gpu,     // in memory of the same GPU
    pinned,  // in pinned host memory that the kernel reaches itself
    staged   // in pinned host memory by a copy from, or to, GPU memory
};

// us of a call before its first byte moves, among many calls after each other: the rest of the
// CPU's cost of a call overlaps with the kernel before.
inline double start_of(const moving &by) noexcept {
    constexpr double between_kernels = 1.8;
    return std::min(by.call, between_kernels);
}

// `num_sms` is the GPU's.
prediction predict(const gpu_profile &of, unsigned num_sms, const layout &what, gpu::direction dir,
                   packed_side where, size_t misalign);
// Host memory on both sides, one thread.
prediction predict_host(const moving &by, const layout &what, gpu::direction dir, size_t misalign);

// us of a direct message between two such GPUs: the same layout and one kernel on each. `link` in
// us for a MiB.
double predict_direct(const gpu_profile &of, unsigned num_sms, const layout &what, double link,
                      size_t misalign);
// us of a message of `bytes` through host memory.
double predict_through_host(const gpu_profile &of, const moving &host, uint64_t bytes) noexcept;

}  // namespace cuda_nc::model
