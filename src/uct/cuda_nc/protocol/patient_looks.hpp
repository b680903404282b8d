// Looks for what may still be on its way from a process that is gone, and is then missed. A look
// counts only after a while and after many calls of progress: a program may progress seldom, and
// in each call tcp reads at most one segment of a socket, 64 KiB unless UCX is told otherwise, of
// at most 16 sockets. Systems let a socket's receive buffer grow to some MiB; 84 are read before
// the last look, by up to 16 sockets each.
#pragma once

#include <chrono>

#include "uct/cuda_nc/engine/agenda.hpp"

namespace cuda_nc::uct {

class patient_looks {
  public:
    static constexpr std::chrono::milliseconds pause{50};

    // `calls` of progress have been made so far. True: it is time for the next look.
    bool are_due(agenda::clock::time_point now, unsigned calls) const noexcept {
        return now >= next_ && calls - last_call_ >= calls_between;
    }
    void note(agenda::clock::time_point now, unsigned calls) noexcept {
        next_ = now + pause;
        last_call_ = calls;
    }
    // That so many looks found nothing is enough.
    static bool are_enough(unsigned looks) noexcept { return looks > most; }

  private:
    static constexpr unsigned most = 20, calls_between = 64;

    agenda::clock::time_point next_;
    unsigned last_call_ = 0;
};

}  // namespace cuda_nc::uct
