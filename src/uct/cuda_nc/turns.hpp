// Whose turn it is to have a worker of UCP: the threads that post puts and gets go before those
// that only make progress.
//
// Each call of UCP takes the worker's lock, a spin lock that is not fair. A thread that calls
// ucp_worker_progress again and again (as NIXL's does, without a pause) has it most of the time,
// and every put of another thread waits for it (bench/results/2026-11-26-h100x2-posting.md). So
// while another thread posts, or progresses the worker itself, such a thread waits outside the
// lock: what there is to do, the other one does.
#pragma once

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <cstdint>

namespace cuda_nc::uct {

class worker_turns {
  public:
    // A wait ends once nobody has posted for `quiet`, and after `most` in any case.
    static constexpr auto quiet = std::chrono::microseconds(2),
                          most = std::chrono::microseconds(30);

    // ---- of the transport

    // One for a worker that is being made by this thread, and the same one for all that belongs to
    // `transports`, UCT's worker, if it is not null. It need not be there: null where there are too
    // many.
    static worker_turns *open(const void *transports) noexcept;
    void close() noexcept;
    // This thread posts. With the worker locked.
    void note_post() noexcept {
        const pthread_t self = pthread_self();
        if (!is_poster(self)) {
            poster_.store(self, std::memory_order_relaxed);
            num_posters_.fetch_add(1, std::memory_order_relaxed);
            poster_progresses_.store(false, std::memory_order_relaxed);
            posts_ = 0;
        } else if (++posts_ == many_posts) {
            num_posters_.store(0, std::memory_order_relaxed);
        }
        num_posts_.store(num_posts_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }

    uint64_t num_posts() const noexcept { return num_posts_.load(std::memory_order_relaxed); }

    // Whether another thread goes on posting, and also progresses the worker for itself: what has
    // ended is best left to it, as it has what UCP keeps of each put in the cache of its processor.
    bool is_left_to_poster() const noexcept {
        return posts_go_on_.load(std::memory_order_relaxed) &&
               poster_progresses_.load(std::memory_order_relaxed) && !is_poster(pthread_self());
    }

    // It has not taken what was left to it: nothing is, until it progresses again.
    void leave_no_more() noexcept { poster_progresses_.store(false, std::memory_order_relaxed); }

    // ---- of the hooks

    // How many were opened in this process.
    static uint64_t number_opened() noexcept;
    // `worker` is UCP's and was made by this thread just now: it has the one that this thread has
    // opened since there were `before`. False: none was.
    static bool give(const void *worker, uint64_t before) noexcept;
    // Null: it has none. Takes no lock.
    static worker_turns *of(const void *worker) noexcept;
    // This thread wants to progress the worker. Returns when it should: after `most` where posts go
    // on, after `quiet` where the poster has progressed the worker since the last call, else at
    // once; and at once if this thread is the one that has posted last. True: it has waited.
    bool await() noexcept;
    // There was something to progress, so there may be more: the next await() returns at once.
    void go_on() noexcept { goes_on_.store(true, std::memory_order_relaxed); }

  private:
    // Where threads post by turns so often, each also progresses for itself, and nobody waits
    // until one has posted so much. A few times a thread that only progresses posts too: what UCP
    // kept until an endpoint was connected.
    static constexpr unsigned most_posters = 64, many_posts = 256;

    static std::atomic<const void *> &worker_of(const worker_turns &which) noexcept;
    bool is_poster(pthread_t self) const noexcept {
        return pthread_equal(poster_.load(std::memory_order_relaxed), self) != 0;
    }

    const void *transports_ = nullptr;
    std::atomic<unsigned> users_{0};
    std::atomic<unsigned> num_posters_{0};  // counted again each time that it is another one
    std::atomic<pthread_t> poster_{};       // the last one
    std::atomic<bool> poster_progresses_{false};
    pthread_t opener_ = {};
    uint64_t number_ = 0;
    unsigned posts_ = 0;  // of the last one, since it is
    // Written by the poster, read by those who wait, who write the others.
    alignas(128) std::atomic<uint64_t> num_posts_{0};
    std::atomic<uint64_t> num_progressed_{0};
    alignas(128) std::atomic<uint64_t> seen_{0};
    std::atomic<bool> goes_on_{false};
    std::atomic<bool> posts_go_on_{false};  // still, when the last wait ended
};

}  // namespace cuda_nc::uct
