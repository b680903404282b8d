// Whose turn it is to have a worker of UCP: the threads that post puts and gets go before those
// that only make progress.
//
// Each call of UCP takes the worker's lock, a spin lock that is not fair. A thread that calls
// ucp_worker_progress again and again (as NIXL's does, without a pause) has it most of the time,
// and every put of another thread waits for it (bench/results/2026-11-26-host-posting.md). So while
// another thread posts, or progresses the worker itself, such a thread waits outside the lock: what
// there is to do, the other one does.
#pragma once

#include <pthread.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>

namespace cuda_nc::uct {

class worker_turns {
  public:
    // A wait ends once nobody has posted or progressed for `quiet`, and after `most` in any case.
    static constexpr auto quiet = std::chrono::microseconds(2),
                          most = std::chrono::microseconds(30);

    // ---- of the transport

    // One for a worker that is being made by this thread. It need not be there: null where there
    // are too many.
    static worker_turns *open() noexcept;
    void close() noexcept;
    // This thread posts. With the worker locked.
    void note_post() noexcept {
        const pthread_t self = pthread_self();
        if (pthread_equal(last_poster_, self) == 0) {
            note_poster(self);
        }
        act();
    }

    // ---- of the hooks

    // How many were opened in this process.
    static uint64_t number_opened() noexcept;
    // `worker` is UCP's and was made by this thread just now: it has the one that this thread has
    // opened since there were `before`. False: none was.
    static bool give(const void *worker, uint64_t before) noexcept;
    // Null: it has none. Takes no lock.
    static worker_turns *of(const void *worker) noexcept;
    // This thread wants to progress the worker. Returns when it should, in `most` at the latest.
    void await() noexcept;

  private:
    // Threads beyond them are not told from those that only progress, so nobody waits any more.
    static constexpr size_t most_posters = 4;

    void act() noexcept {
        acts_.store(acts_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }
    void note_poster(pthread_t self) noexcept;
    bool is_poster(pthread_t self) const noexcept;

    std::atomic<const void *> worker_{nullptr};
    std::atomic<bool> is_used_{false};
    std::atomic<unsigned> num_posters_{0};  // more than most_posters: there are too many
    std::array<std::atomic<pthread_t>, most_posters> posters_ = {};
    pthread_t opener_ = {};
    uint64_t number_ = 0;
    pthread_t last_poster_ = {};
    // Written by those who post, read by those who wait, who write the other one.
    alignas(128) std::atomic<uint64_t> acts_{0};
    alignas(128) std::atomic<uint64_t> seen_{0};
};

}  // namespace cuda_nc::uct
