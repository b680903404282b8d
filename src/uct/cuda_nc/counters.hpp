// What the transport did in this process, for UCX_CUDA_NC_STATS and for tests.
#pragma once

#include <atomic>
#include <cstdint>

namespace cuda_nc::uct {

struct counters {
    // Messages that ended well.
    std::atomic<uint64_t> sent_by_pull{0}, sent_by_pipe{0}, sent_by_slots{0}, sent_by_host_slots{0},
        sent_by_network{0}, sent_straight{0};
    std::atomic<uint64_t> received_by_pull{0}, received_by_pipe{0}, received_by_slots{0},
        received_by_host_slots{0}, received_by_network{0}, received_straight{0};
    std::atomic<uint64_t> received_by_copy{0};  // of those by pull: by copy engines
    std::atomic<uint64_t> declined{0};          // offers of ours that were not taken, or too late
    std::atomic<uint64_t> abandoned{0};  // messages begun from GPU to GPU that went on otherwise
    std::atomic<uint64_t> early{0};      // offers taken before UCP asked for data
    std::atomic<uint64_t> relaunches{0};
    std::atomic<uint64_t> launches{0}, launched_sides{0};  // of pipes; one launch serves several
    std::atomic<uint64_t> orders{0};    // that a mover was given, in place of launches
    std::atomic<uint64_t> of_sets{0};   // of launched_sides: orders that share a launch
    std::atomic<uint64_t> mappings{0};  // made of what users of peers have allocated

    struct one_sided {
        std::atomic<uint64_t> puts{0}, gets{0};
        std::atomic<uint64_t> lists{0};          // that moved them
        std::atomic<uint64_t> layout_orders{0};  // of those: one each from layout to layout
        std::atomic<uint64_t> given_lists{0};    // of all lists: by orders to a mover, not launches
    };
    one_sided on_gpus, on_host;

    static counters &all() noexcept;
    static void report_at_exit() noexcept;  // once, whoever asks
};

inline void count(std::atomic<uint64_t> &what) noexcept {
    what.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace cuda_nc::uct
