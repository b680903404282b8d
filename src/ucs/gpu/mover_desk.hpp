// The CPU's side of a mover, the same for every backend: which orders are under way, the ring, when
// a kernel is launched, and what becomes of orders where it fails.
#pragma once

#include <atomic>
#include <array>
#include <cstdint>
#include <mutex>

#include "ucs/gpu/arrival_rhythm.hpp"
#include "ucs/gpu/mover.hpp"
#include "ucs/gpu/order_ring.hpp"
#include "ucs/gpu/pace_trial.hpp"

namespace cuda_nc::gpu {

// What CPU and kernel share, in pinned memory, zero before begin(). The CPU writes lines and
// `stay`; the kernel the rest. Words that one side polls have a cache line of their own.
struct mover_memory {
    struct alignas(64) word {
        uint64_t value;
    };
    order_line lines[order_ring_size];
    order_ends ends[order_ring_size];
    struct alignas(64) stay_words {
        uint64_t asked;  // kernels up to this one shall leave
        uint64_t pulse;  // of the process: see mover_pulse.hpp
    };
    word door;        // mover_door
    word position;    // the first order that no kernel has taken
    stay_words stay;  // read whole

    void begin() noexcept;
};

// As `position`: a kernel that fails to deal an order out has perhaps taken all.
constexpr uint64_t dealer_gave_up = ~uint64_t{0};

// Launches are numbered from 1 to this one, and then from 1 again.
constexpr uint32_t last_mover_instance = 0xfffffffeu;

// One launch of the kernel.
struct mover_launch {
    uint32_t instance = 0;  // its number
    uint64_t first = 1;     // it takes no order before this one, and none before `position`
    uint64_t idle_ns = 0;   // how long it waits for an order, ...
    uint64_t away_ns = 0;   // ... and how long where the pulse stands still
    uint64_t pulse = 0;     // as it was when the order before the last one came
};

class mover_desk : public mover {
  public:
    given give(const move_order *orders, size_t number, ticket *tickets,
               giving how = {}) noexcept final;
    bool takes_at_once() const noexcept final;
    void expect() noexcept final;
    ucs_status_t state(ticket which) const noexcept final;
    order_end_mark mark_of(ticket which) const noexcept final;
    ucs_status_t ask(ticket which) noexcept final;
    void release(ticket which) noexcept final;
    void leave() noexcept final;

    // Launches so far.
    uint32_t launches() noexcept;

  protected:
    // `most_idle_us`: microseconds, 1 to 1000 or the nearest of these. `always`: orders are taken
    // where no kernel is there too, and launch one, or every second time a set. `away_ns`: of a
    // launch.
    mover_desk(unsigned most_idle_us, bool always, uint64_t away_ns) noexcept;

    // Before the first order; it outlives the desk's use.
    void use(mover_memory *shared) noexcept;
    // For tests: the first order's number.
    void begin_with(ticket first) noexcept { next_ = first_ = first; }
    // Before the memory goes: no pulse is written any more.
    void retire() noexcept;

    // The GPU can be used, and shared() is there. Asked without a lock too: a forked child, which
    // says false, may have got it locked.
    virtual bool is_usable() noexcept = 0;
    // Writes what its line says of order `which`; false: the kernel does not serve it.
    virtual bool describe(const move_order &one, ticket which,
                          uint32_t (*words_p)[order_words]) noexcept = 0;
    // Enqueues the kernel behind those launched before.
    virtual ucs_status_t launch(const mover_launch &how) noexcept = 0;
    // UCS_OK: all that were launched have ended. UCS_INPROGRESS: one runs, or waits for its turn.
    // Else one has failed, and none will run.
    virtual ucs_status_t ask_kernels() noexcept = 0;
    // Enqueues a launch that moves orders [first, first + number), 2 to most_of_set, and tells of
    // their ends as the kernel does. It waits for nothing.
    virtual ucs_status_t launch_set(const uint32_t (*words)[order_words], size_t number,
                                    ticket first) noexcept = 0;
    // As ask_kernels(), of those launches.
    virtual ucs_status_t ask_sets() noexcept = 0;

  private:
    struct place {
        std::atomic<ticket> number{0};                      // of the order that holds it; 0: nobody
        std::atomic<ucs_status_t> outcome{UCS_INPROGRESS};  // unless the end word says UCS_OK
        std::atomic<uint64_t> length{0};                    // bytes, if it is a long one
        bool is_of_set = false;                             // guarded by mutex_
    };
    static constexpr size_t most_at_once = 32;
    struct pen;

    place &place_of(ticket which) noexcept { return places_[which % order_ring_size]; }
    bool has_room(ticket which) const noexcept;
    uint64_t release_ended_long() noexcept;
    size_t describe_all(const move_order *orders, size_t number, bool long_ones = true) noexcept;
    void take_places(const move_order *orders, size_t count, ticket *tickets,
                     bool for_set) noexcept;
    given give_set_locked(const move_order *orders, size_t number, ticket *tickets) noexcept;
    bool launch_locked() noexcept;
    void settle(ticket first, ucs_status_t outcome, bool of_sets) noexcept;
    ucs_status_t ask_locked(ticket which) noexcept;
    void fail_locked(ucs_status_t kernels) noexcept;
    void take_back_locked() noexcept;
    size_t keep_taken(ticket *tickets, size_t number) noexcept;

    const bool always_;
    const uint64_t away_ns_;
    mover_memory *shared_ = nullptr;
    std::array<place, order_ring_size> places_;
    std::atomic<uint64_t> long_bytes_{0};          // of all long orders that hold a place
    std::atomic<bool> launches_for_first_{false};  // where no kernel is there
    std::atomic<bool> failed_{false};              // no order is taken any more; under mutex_

    std::mutex mutex_;  // guards what follows
    uint64_t now_ = 0;  // nanoseconds, when orders came last
    arrival_rhythm rhythm_;
    bool were_alone_ = false;  // the orders that came last: no kernel waited for the next ones
    uint64_t pulse_ = 0, pulse_before_ = 0;  // when orders came last, and the time before that
    pace_trial trial_;
    ticket next_ = 1;   // to be given
    ticket first_ = 1;  // orders before it are taken, or never will be
    uint32_t launched_ = 0;
    bool launches_set_next_ = false;  // where orders are always taken
    bool owes_launch_ = false;        // for orders in the ring that no kernel may see
    bool expects_ = false;            // a kernel would be of use to the orders that come
    ticket expected_ = 0;             // the next one, when a kernel was launched for it
    unsigned in_vain_ = 0;  // how often in a row none had come when the next kernel was wanted
    uint32_t words_[most_at_once][order_words];
    size_t chosen_[most_at_once];  // which of the orders that are given each of words_ describes
};

}  // namespace cuda_nc::gpu
