// A few threads that help one caller at a time.
//
// There is one pool for the process, never destroyed. Threads are created when a call first wants
// them, sleep while there is nothing to do, and end after a second of that. They block all signals
// except those that the thread's own memory accesses raise, have a name, and own no memory but
// their stacks.
#pragma once

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace cuda_nc::exec {

class thread_pool {
  public:
    using task = void (*)(const void *what, uint64_t part) noexcept;

    // The pool of this process; after a fork the child has a new one, without threads. Null: no
    // memory.
    static thread_pool *instance() noexcept;

    // Calls work(what, part) for each part in [0, num_parts), in any order, on the calling thread
    // and on up to `num_helpers` threads of the pool, and returns when all are done. False, with
    // nothing done: another caller uses the pool, or no thread can be created.
    bool run(unsigned num_helpers, uint64_t num_parts, task work, const void *what) noexcept;

    unsigned num_threads() noexcept;

    // For tests: how long a thread waits for work before it leaves, and how many may be made.
    static void set_limits_for_test(std::chrono::milliseconds idle, unsigned threads) noexcept;
    static void reset_limits_for_test() noexcept;

  private:
    explicit thread_pool(const thread_pool *parents) noexcept : parents_(parents) {}

    static void *thread_main(void *pool) noexcept;
    void serve() noexcept;
    void wake(unsigned most) noexcept;
    void work_on() noexcept;
    bool have_threads(unsigned wanted) noexcept;
    bool add_thread() noexcept;
    void wait_for_parts() noexcept;

    const pid_t process_ = getpid();
    const thread_pool
        *const parents_;  // of the parent process; keeps its memory known to leak checkers
    std::atomic<bool> in_use_{false};  // by a caller

    // Written by the caller before it sets left_, read by threads that have claimed a part.
    task work_ = nullptr;
    const void *what_ = nullptr;
    uint64_t num_parts_ = 0;
    std::atomic<uint64_t> left_{0};        // parts that no thread has claimed
    std::atomic<uint64_t> unfinished_{0};  // parts that are not done

    std::mutex mutex_;
    std::condition_variable posted_, finished_;
    unsigned num_threads_ = 0, num_asleep_ = 0, num_to_wake_ = 0;
    bool refused_ = false;  // the system gave no more threads
};

}  // namespace cuda_nc::exec
