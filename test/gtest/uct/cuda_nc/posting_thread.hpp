// A thread that posts without a pause.
#pragma once

#include <atomic>
#include <chrono>
#include <thread>

#include "uct/cuda_nc/turns.hpp"

namespace cuda_nc::uct {

class posting_thread {
  public:
    enum class progresses : bool { never, too };  // the worker, before it begins

    posting_thread(worker_turns &turns, progresses how) {
        thread_ = std::thread([this, &turns, how] {
            turns.note_post();
            if (how == progresses::too) {
                turns.await();
            }
            while (!ends_) {
                turns.note_post();
            }
        });
    }
    ~posting_thread() {
        ends_ = true;
        thread_.join();
    }
    posting_thread(const posting_thread &) = delete;
    posting_thread &operator=(const posting_thread &) = delete;

  private:
    std::atomic<bool> ends_{false};
    std::thread thread_;
};

// Waits beside a thread that posts and progresses, until what has ended is left to it. False: this
// machine has kept the threads from running side by side.
inline bool await_until_left(worker_turns &turns) {
    using clock = std::chrono::steady_clock;
    const auto limit = clock::now() + std::chrono::seconds(20);
    while (!turns.is_left_to_poster() && clock::now() < limit) {
        turns.await();
    }
    return turns.is_left_to_poster();
}

}  // namespace cuda_nc::uct
