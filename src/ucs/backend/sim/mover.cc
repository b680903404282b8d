#include "ucs/backend/sim/mover.hpp"

#include <sched.h>
#include <sys/prctl.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <system_error>
#include <utility>

#include "ucs/base/blocked_signals.hpp"
#include "ucs/base/log.hpp"
#include "ucs/backend/backends.hpp"
#include "ucs/backend/sim/access.hpp"

namespace cuda_nc::gpu::sim {
namespace {

using clock = std::chrono::steady_clock;
using std::chrono::microseconds;
using std::chrono::nanoseconds;

uint64_t nanoseconds_of(clock::time_point when) noexcept {
    return static_cast<uint64_t>(nanoseconds(when.time_since_epoch()).count());
}

void sleep_for(uint64_t ns) noexcept {
    if (ns < 1000) {
        sched_yield();
        return;
    }
    timespec time = {static_cast<time_t>(ns / 1000000000), static_cast<long>(ns % 1000000000)};
    nanosleep(&time, nullptr);
}

}  // namespace

uint32_t sim_mover::word_of(const described &order, uint32_t which) noexcept {
    return static_cast<uint32_t>(mix64(order.length + order.packed_offset * 3 +
                                       reinterpret_cast<uintptr_t>(order.target_base) * 5 +
                                       which * 7));
}

// One launch.
class sim_mover::kernel {
  public:
    static constexpr uint32_t parts = order_parts, ring_size = order_ring_size;
    using part = order_part;

    kernel(runner &all, const launched &one, uint64_t seed)
        : all_(all), launch_(one), random_(seed) {}

    // UCS_ERR_IO_ERROR: it has died.
    ucs_status_t run() {
        if (launch_.set != 0) {
            gone_ = true;  // nothing else is taken
            for (size_t i = 0; i < launch_.set; ++i) {
                accept(launch_.how.first + i);
            }
        }
        const ticket position = __atomic_load_n(&all_.shared->position.value, __ATOMIC_ACQUIRE);
        taker_.begin(launch_.how.instance, std::max(position, launch_.how.first));
        const clock::time_point begun = clock::now();
        stay_.begin(nanoseconds_of(begun), launch_.how.idle_ns, launch_.how.away_ns,
                    launch_.how.pulse);
        const uint64_t death = launch_.dies ? 1 + random_.up_to(40) : UINT64_MAX;
        for (uint64_t steps = 0; !gone_ || !taken_.empty(); ++steps) {
            if (steps == death) {
                return UCS_ERR_IO_ERROR;
            }
            const bool moves = !taken_.empty() && (gone_ || random_.up_to(1) != 0);
            if (moves) {
                if (!move_some(random_.up_to(taken_.size() - 1))) {
                    return UCS_ERR_IO_ERROR;
                }
            } else {
                take(begun);
            }
            if (random_.up_to(3) == 0) {
                flush(random_.up_to(stores_.size()));
            }
        }
        flush(stores_.size());
        return UCS_OK;
    }

    // For the taker.
    void read_part(ticket number, uint32_t which, part *value) {
        const uint32_t line = number % ring_size;
        if (random_.up_to(3) != 0) {
            refresh(line, which);
        }
        *value = all_.seen[line].parts[which];
    }
    bool is_of(const part &value, ticket number) const noexcept {
        return value.tag == order_tag(number);
    }
    void store_door(uint64_t word) { store_later(&all_.shared->door.value, word); }
    void store_position(ticket number) { store_later(&all_.shared->position.value, number); }
    // After it every look sees what was written before.
    void fence() {
        flush(stores_.size());
        static std::atomic<int> own{0};
        own.exchange(1, std::memory_order_seq_cst);
        for (uint32_t line = 0; line < ring_size; ++line) {
            for (uint32_t which = 0; which < parts; ++which) {
                refresh(line, which);
            }
        }
    }

  private:
    struct taken {
        ticket number;
        transfer source, target;  // tables translated
        uint64_t done, end;
    };

    void refresh(uint32_t line, uint32_t which) {
        auto *from = reinterpret_cast<const uint64_t *>(&all_.shared->lines[line].parts[which]);
        // The half with the tag first: it is written last.
        const uint64_t high = __atomic_load_n(from + 1, __ATOMIC_ACQUIRE);
        const uint64_t low = __atomic_load_n(from, __ATOMIC_ACQUIRE);
        all_.seen[line].parts[which] = {
            {static_cast<uint32_t>(low), static_cast<uint32_t>(low >> 32),
             static_cast<uint32_t>(high)},
            static_cast<uint32_t>(high >> 32)};
    }
    void store_later(uint64_t *word, uint64_t value) { stores_.push_back({word, nullptr, value}); }
    void flush(size_t count) {
        for (size_t i = 0; i < count; ++i) {
            const store &one = stores_[i];
            if (one.word != nullptr) {
                __atomic_store_n(one.word, one.value, __ATOMIC_RELEASE);
            } else {
                __atomic_store_n(one.end, static_cast<uint32_t>(one.value), __ATOMIC_RELEASE);
            }
        }
        stores_.erase(stores_.begin(), stores_.begin() + static_cast<std::ptrdiff_t>(count));
    }

    // As by pieces, which end in any order.
    void tell_end(ticket number) {
        const auto pieces = static_cast<uint32_t>(1 + random_.up_to(most_order_pieces - 1));
        const auto first = static_cast<uint32_t>(random_.up_to(pieces - 1));
        for (uint32_t i = 0; i < pieces; ++i) {
            uint32_t *end = &all_.shared->ends[number % ring_size].words[(first + i) % pieces];
            stores_.push_back({nullptr, end, end_word(number, pieces)});
        }
    }

    void take(clock::time_point begun) {
        const clock::time_point now = clock::now();
        order_taker<kernel>::wishes wish;
        stay_.note_pulse(nanoseconds_of(now),
                         __atomic_load_n(&all_.shared->stay.pulse, __ATOMIC_RELAXED));
        wish.idle = taken_.empty() && stay_.is_over(nanoseconds_of(now));
        wish.leave =
            __atomic_load_n(&all_.shared->stay.asked, __ATOMIC_ACQUIRE) >= launch_.how.instance ||
            now - begun > microseconds(longest_stay_us);
        switch (taker_.step(*this, wish)) {
            case order_taker<kernel>::result::took:
                stay_.note_order(nanoseconds_of(now));
                accept(taker_.number());
                break;
            case order_taker<kernel>::result::gone:
                gone_ = true;
                break;
            case order_taker<kernel>::result::nothing:
                if (taken_.empty() && taker_.watches()) {
                    flush(stores_.size());
                    sleep_for(random_.up_to(5000));
                }
                break;
        }
    }

    void accept(ticket number) {
        const described order = all_.orders[number % ring_size];
        for (uint32_t i = 0; i < parts && launch_.set == 0; ++i) {
            if (taker_.part(i).words[2] != word_of(order, i)) {
                nc_error("simulated GPU %d: a mover takes an order from a torn line", all_.ordinal);
                std::abort();
            }
        }
        taken one = {};
        one.number = number;
        one.source.layout = order.source;
        one.source.base = const_cast<char *>(order.source_base);
        one.target.layout = order.target;
        one.target.base = order.target_base;
        one.target.into_own_memory = order.into_own_memory;
        one.done = order.packed_offset;
        one.end = order.packed_offset + order.length;
        broken_ |= !translate_tables(all_.all.space, all_.ordinal, &one.source.layout) ||
                   !translate_tables(all_.all.space, all_.ordinal, &one.target.layout);
        taken_.push_back(one);
    }

    // A piece of one order. False: an illegal access.
    bool move_some(size_t which) {
        taken &one = taken_[which];
        const uint64_t end = one.done + std::min(one.end - one.done, 1 + random_.up_to(256 << 10));
        if (broken_ ||
            !pull_piece(one.source, one.target, all_.ordinal, all_.all.space, one.done, end)) {
            return false;
        }
        one.done = end;
        if (one.done == one.end) {
            tell_end(one.number);
            taken_.erase(taken_.begin() + static_cast<std::ptrdiff_t>(which));
        }
        return true;
    }

    runner &all_;
    const launched launch_;
    random_source random_;
    order_taker<kernel> taker_;
    std::vector<taken> taken_;  // not ended
    struct store {
        uint64_t *word;  // or null
        uint32_t *end;   // if so
        uint64_t value;
    };
    std::vector<store> stores_;  // that the CPU does not see yet
    mover_stay stay_;
    bool gone_ = false, broken_ = false;
};

void sim_mover::runner::run(lane &own) noexcept {
    prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL);
    random_source random(all.seed * 7919 + static_cast<uint64_t>(ordinal) * 2 +
                         (&own == &sets ? 1 : 0));
    std::unique_lock<std::mutex> guard(own.mutex);
    for (;;) {
        own.changed.wait(guard, [&own] { return own.stop || !own.queue.empty(); });
        if (own.stop) {
            return;
        }
        const launched one = own.queue.front();
        own.queue.pop_front();
        if (own.status != UCS_OK) {
            continue;
        }
        own.busy = true;
        guard.unlock();
        constexpr uint64_t long_late = 30000;  // microseconds
        const uint64_t longest = one.late ? long_late : uint64_t{all.delay} / 2;
        sleep_for(static_cast<uint64_t>(static_cast<double>(random.up_to(longest * 1000)) *
                                        all.faults.slow()));
        ucs_status_t how = UCS_ERR_NO_MEMORY;
        try {
            how = kernel(*this, one, random.next()).run();
        } catch (const std::bad_alloc &) {
        }
        guard.lock();
        own.busy = false;
        own.status = own.status == UCS_OK ? how : own.status;
    }
}

ucs_status_t sim_mover::lane::ask() noexcept {
    std::lock_guard<std::mutex> guard(mutex);
    if (status != UCS_OK) {
        return status;
    }
    return busy || !queue.empty() ? UCS_INPROGRESS : UCS_OK;
}

void sim_mover::lane::end() noexcept {
    {
        std::lock_guard<std::mutex> guard(mutex);
        stop = true;
        changed.notify_all();
    }
    if (thread.joinable()) {
        thread.join();
    }
}

std::unique_ptr<sim_mover> sim_mover::make(device &on, environment &all,
                                           const options &how) noexcept try {
    auto own = std::make_unique<runner>(all, on.properties().ordinal);
    if (on.allocate_pinned(sizeof(mover_memory) + alignof(mover_memory), &own->pinned) != UCS_OK) {
        return nullptr;
    }
    const auto at = reinterpret_cast<uintptr_t>(own->pinned->address());
    own->shared = reinterpret_cast<mover_memory *>(round_up(at, uintptr_t{alignof(mover_memory)}));
    own->shared->begin();
    return std::unique_ptr<sim_mover>(new sim_mover(how, std::move(own)));
} catch (const std::bad_alloc &) {
    return nullptr;
}

sim_mover::~sim_mover() {
    if (forked()) {
        [[maybe_unused]] runner *left_behind = runner_.release();
        return;
    }
    retire();
    leave();
    runner_->kernels.end();
    runner_->sets.end();
}

bool sim_mover::is_usable() noexcept {
    return !forked();
}

bool sim_mover::describe(const move_order &one, ticket which,
                         uint32_t (*words_p)[order_words]) noexcept {
    described &made = runner_->orders[which % order_ring_size];
    made.target = *one.target;
    made.source = one.source != nullptr ? *one.source : *one.target;
    made.source_base = one.source_base;
    made.target_base = one.target_base;
    made.packed_offset = one.packed_offset;
    made.length = one.length;
    made.into_own_memory = one.into_own_memory;
    for (uint32_t i = 0; i < order_parts; ++i) {
        (*words_p)[i * part_words + 2] = word_of(made, i);
    }
    return true;
}

ucs_status_t sim_mover::launch(const mover_launch &how) noexcept {
    launched one;
    one.how = how;
    return enqueue(runner_->kernels, one);
}

ucs_status_t sim_mover::launch_set(const uint32_t (*)[order_words], size_t number,
                                   ticket first) noexcept {
    launched one;
    one.how.first = first;
    one.set = number;
    return enqueue(runner_->sets, one);
}

ucs_status_t sim_mover::enqueue(lane &on, launched one) noexcept {
    fault_plan &faults = runner_->all.faults;
    const bool refused = faults.strikes(fault::mover);
    one.dies = faults.strikes(fault::mover_dies);
    one.late = faults.strikes(fault::mover_late);
    if (refused) {
        return UCS_ERR_NO_MEMORY;
    }
    try {
        std::lock_guard<std::mutex> guard(on.mutex);
        if (on.status != UCS_OK) {
            return on.status;
        }
        if (!on.thread.joinable()) {
            all_signals_blocked blocked;
            on.thread = std::thread([own = runner_.get(), &on] { own->run(on); });
        }
        on.queue.push_back(one);
        on.changed.notify_all();
        return UCS_OK;
    } catch (const std::bad_alloc &) {
        return UCS_ERR_NO_MEMORY;
    } catch (const std::system_error &error) {
        nc_error("simulated GPU: no thread for a mover: %s", error.what());
        return UCS_ERR_IO_ERROR;
    }
}

ucs_status_t sim_mover::ask_kernels() noexcept {
    return runner_->kernels.ask();
}

ucs_status_t sim_mover::ask_sets() noexcept {
    return runner_->sets.ask();
}

}  // namespace cuda_nc::gpu::sim
