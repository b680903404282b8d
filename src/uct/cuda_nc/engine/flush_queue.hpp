// Flushes of endpoints that wait: the carrier knows nothing of requests and control messages that
// are held back here, so a flush reaches it when those of its endpoint have left. Used with UCX's
// worker locked.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>

#include "ucs/base/status.hpp"
#include "uct/cuda_nc/engine/pending_requests.hpp"
#include "uct/cuda_nc/ucx/abi_memory.hpp"

namespace cuda_nc::uct {

class flush_queue {
  public:
    flush_queue(const pending_requests &pending, const unsent_messages &unsent,
                progress_hook &progress) noexcept
        : pending_(pending), unsent_(unsent), progress_(progress) {}

    // In place of the carrier's operation, with its contract.
    ucs_status_t flush(endpoint &ep, unsigned flags, abi::uct_completion *completion) noexcept;
    unsigned progress() noexcept;  // how many reached the carrier
    // Completes those of `ep` with `status`.
    void end(const endpoint &ep, ucs_status_t status) noexcept;

    bool empty() const noexcept { return all_.empty(); }
    // Whether one could reach the carrier now.
    bool has_ready() const noexcept;

  private:
    struct held_flush {
        unsigned flags;
        abi::uct_completion *completion;
        uint64_t place;  // behind the pending requests with lower places
    };

    bool is_blocked(const endpoint &ep, uint64_t place) const noexcept;
    unsigned progress_those_of(endpoint &ep) noexcept;
    // The first flush that waits for `ep`, no longer in the queue.
    held_flush extract(const endpoint &ep) noexcept;

    const pending_requests &pending_;
    const unsent_messages &unsent_;
    progress_hook &progress_;
    std::map<endpoint *, std::deque<held_flush>, std::less<>> all_;  // none is empty
    endpoint *last_visited_ = nullptr;
};

}  // namespace cuda_nc::uct
