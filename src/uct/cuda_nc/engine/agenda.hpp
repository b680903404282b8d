// Which messages the next call of progress looks at: those that something happened to, those whose
// time has come, and those whose work shows only by looking. All others cost nothing, however many
// are outstanding. Used with UCX's worker locked.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "ucs/base/tick_clock.hpp"
#include "uct/cuda_nc/engine/message_owner.hpp"
#include "uct/cuda_nc/engine/progress_hook.hpp"

namespace cuda_nc::uct {

class agenda {
  public:
    using clock = tick_clock;

    agenda(message_owner &messages, progress_hook &progress) noexcept
        : messages_(messages), progress_(progress) {}

    // Something happened to the message: looked at once.
    void look_soon(uint64_t message) noexcept;
    // Looked at once at `when` or soon after; in place of the time that the message had before.
    void look_at(uint64_t message, clock::time_point when) noexcept;
    void forget_time(uint64_t message) noexcept;
    // Its GPU or network is at work: looked at again and again, as long as
    // message_owner::is_polled() says so.
    void poll(uint64_t message) noexcept;

    unsigned progress() noexcept;  // how much has happened
    bool empty() const noexcept {
        return soon_.empty() && times_.empty() && polled_.empty() && !looks_at_all_;
    }

  private:
    unsigned look_at_due() noexcept;
    unsigned look_at_polled() noexcept;

    message_owner &messages_;
    progress_hook &progress_;
    std::deque<uint64_t> soon_;
    std::set<std::pair<clock::time_point, uint64_t>> times_;
    std::unordered_map<uint64_t, clock::time_point> time_of_;
    std::vector<uint64_t> polled_;
    std::unordered_set<uint64_t> is_listed_;  // in polled_
    size_t next_polled_ = 0;                  // an index
    bool looks_at_all_ = false;               // memory was short: the lists are not complete
};

}  // namespace cuda_nc::uct
