// A signal meant for the application must not be delivered to a thread that we start.
#pragma once

#include <pthread.h>
#include <signal.h>

namespace cuda_nc {

// In its scope this thread, and what it starts, takes no signal.
class all_signals_blocked {
  public:
    all_signals_blocked() noexcept {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~all_signals_blocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    all_signals_blocked(const all_signals_blocked &) = delete;
    all_signals_blocked &operator=(const all_signals_blocked &) = delete;

  private:
    sigset_t before_;
};

}  // namespace cuda_nc
