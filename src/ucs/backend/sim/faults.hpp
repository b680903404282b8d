// Injected faults: UCX_CUDA_NC_SIM_FAULTS, see README.md.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

namespace cuda_nc::gpu::sim {

enum class fault : unsigned {
    alloc,
    pinned,
    pin,
    stream,
    event,
    ipc_open,
    launch,
    load,
    copy,
    mark,
    kernel,
    stuck,
    mover,
    mover_dies,
    mover_late
};
constexpr unsigned num_faults = 15;

class fault_plan {
  public:
    // False, with a sentence in *error_p, where the text is wrong.
    bool parse(const std::string &text, std::string *error_p);

    // Counts one operation; true where it shall fail. Thread safe.
    bool strikes(fault what) noexcept;

    double slow() const noexcept { return slow_; }

  private:
    struct entry {
        uint64_t from, to;  // operations, counted from 1, inclusive
    };
    std::vector<entry> entries_[num_faults];
    std::atomic<uint64_t> counts_[num_faults] = {};
    double slow_ = 1;
};

}  // namespace cuda_nc::gpu::sim
