#include "ucs/exec/host/thread_pool.hpp"

#include <pthread.h>

#include <algorithm>
#include <climits>
#include <csignal>
#include <memory>
#include <new>

#include "ucs/base/compiler.hpp"
#include "ucs/base/log.hpp"

namespace cuda_nc::exec {
namespace {

using clock = std::chrono::steady_clock;

// Longer than a caller's pause between two calls of a loop; sleeping and waking cost about as much.
constexpr std::chrono::microseconds most_spinning(20);
constexpr std::chrono::milliseconds most_idle(1000);
constexpr size_t stack_bytes = 256 << 10;

std::atomic<thread_pool *> current{nullptr};
std::atomic<int64_t> idle_limit{most_idle.count()};  // milliseconds
std::atomic<unsigned> thread_limit{UINT_MAX};

template <class Condition>
bool spin_until(Condition &&condition) noexcept {
    const clock::time_point end = clock::now() + most_spinning;
    do {
        for (unsigned i = 0; i < 16; ++i) {
            if (condition()) {
                return true;
            }
            relax();
        }
    } while (clock::now() < end);
    return false;
}

// New threads inherit the mask. SIGSEGV and the like stay unblocked: an application may handle
// faults of its memory, and our accesses may cause them.
class most_signals_blocked {
  public:
    most_signals_blocked() noexcept {
        sigset_t most;
        sigfillset(&most);
        for (int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP}) {
            sigdelset(&most, fault);
        }
        pthread_sigmask(SIG_SETMASK, &most, &before_);
    }
    ~most_signals_blocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

  private:
    sigset_t before_;
};

// Disables cancellation of the caller, whose stack the parts read.
class not_cancelled {
  public:
    not_cancelled() noexcept { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
    ~not_cancelled() { pthread_setcancelstate(before_, nullptr); }

  private:
    int before_;
};

bool create(void *(*entry)(void *), void *argument, size_t stack) noexcept {
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0) {
        return false;
    }
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    if (stack != 0) {
        pthread_attr_setstacksize(&attributes, stack);
    }
    pthread_t thread;
    const bool made = pthread_create(&thread, &attributes, entry, argument) == 0;
    pthread_attr_destroy(&attributes);
    return made;
}

}  // namespace

thread_pool *thread_pool::instance() noexcept {
    thread_pool *known = current.load(std::memory_order_acquire);
    if (known != nullptr && known->process_ == getpid()) {
        return known;
    }
    std::unique_ptr<thread_pool> made(new (std::nothrow) thread_pool(known));
    if (made == nullptr) {
        return nullptr;
    }
    if (current.compare_exchange_strong(known, made.get(), std::memory_order_acq_rel,
                                        std::memory_order_acquire)) {
        return made.release();
    }
    return known;
}

bool thread_pool::run(unsigned num_helpers, uint64_t num_parts, task work,
                      const void *what) noexcept {
    if (in_use_.exchange(true, std::memory_order_acquire)) {
        return false;
    }
    not_cancelled caller;
    if (!have_threads(num_helpers)) {
        in_use_.store(false, std::memory_order_release);
        return false;
    }
    work_ = work;
    what_ = what;
    num_parts_ = num_parts;
    unfinished_.store(num_parts, std::memory_order_relaxed);
    {
        std::lock_guard<std::mutex> guard(mutex_);
        left_.store(num_parts, std::memory_order_release);
        num_to_wake_ = std::min(num_asleep_, num_helpers);
        wake(1);
    }
    work_on();
    wait_for_parts();
    in_use_.store(false, std::memory_order_release);
    return true;
}

unsigned thread_pool::num_threads() noexcept {
    std::lock_guard<std::mutex> guard(mutex_);
    return num_threads_;
}

void thread_pool::set_limits_for_test(std::chrono::milliseconds idle, unsigned threads) noexcept {
    idle_limit.store(idle.count(), std::memory_order_relaxed);
    thread_limit.store(threads, std::memory_order_relaxed);
}

void thread_pool::reset_limits_for_test() noexcept {
    set_limits_for_test(most_idle, UINT_MAX);
}

// Creates threads until there are `wanted`, or the system refuses. True: there is at least one.
bool thread_pool::have_threads(unsigned wanted) noexcept {
    unsigned there;
    {
        std::lock_guard<std::mutex> guard(mutex_);
        while (num_threads_ < wanted && !refused_) {
            refused_ = !add_thread();
        }
        there = num_threads_;
    }
    if (CUDA_NC_UNLIKELY(there < wanted)) {
        nc_warn_once("%u threads help in host memory instead of %u: no more can be made", there,
                     wanted);
    }
    return there != 0;
}

// With mutex_ held, so that a new thread is counted before it can end.
bool thread_pool::add_thread() noexcept {
    if (num_threads_ >= thread_limit.load(std::memory_order_relaxed)) {
        return false;
    }
    most_signals_blocked guard;
    // A stack of the default size where a program's thread-local variables do not fit into a short
    // one.
    if (!create(thread_main, this, stack_bytes) && !create(thread_main, this, 0)) {
        return false;
    }
    ++num_threads_;
    return true;
}

void *thread_pool::thread_main(void *pool) noexcept {
    pthread_setname_np(pthread_self(), "cuda_nc_host");
    static_cast<thread_pool *>(pool)->serve();
    return nullptr;
}

// With mutex_ held. Waking a thread takes up to 25 us of the caller's time (measured). So the
// caller wakes one, and each thread that wakes up wakes two more.
void thread_pool::wake(unsigned most) noexcept {
    for (; most != 0 && num_to_wake_ != 0; --most) {
        --num_to_wake_;
        posted_.notify_one();
    }
}

void thread_pool::serve() noexcept {
    auto posted = [this] { return left_.load(std::memory_order_relaxed) != 0; };
    for (;;) {
        if (spin_until(posted)) {
            work_on();
            continue;
        }
        const std::chrono::milliseconds idle(idle_limit.load(std::memory_order_relaxed));
        std::unique_lock<std::mutex> lock(mutex_);
        ++num_asleep_;
        const bool wanted = posted_.wait_for(lock, idle, posted);
        --num_asleep_;
        if (!wanted) {
            --num_threads_;
            refused_ = false;  // the system may allow one again
            return;
        }
        wake(2);
    }
}

// Claims and does part after part until none is left. A thread that has claimed a part may read
// what the caller wrote: the caller does not return, or start other work, before that part is done.
void thread_pool::work_on() noexcept {
    uint64_t left = left_.load(std::memory_order_relaxed);
    while (left != 0) {
        if (!left_.compare_exchange_weak(left, left - 1, std::memory_order_acquire,
                                         std::memory_order_relaxed)) {
            continue;
        }
        work_(what_, num_parts_ - left);
        if (unfinished_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
            std::lock_guard<std::mutex> guard(mutex_);
            finished_.notify_one();
        }
        left = left_.load(std::memory_order_relaxed);
    }
}

void thread_pool::wait_for_parts() noexcept {
    auto finished = [this] { return unfinished_.load(std::memory_order_acquire) == 0; };
    if (!spin_until(finished)) {
        std::unique_lock<std::mutex> lock(mutex_);
        finished_.wait(lock, finished);
    }
}

}  // namespace cuda_nc::exec
