#include "ucs/gpu/mover_desk.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <numeric>
#include <utility>

#include "ucs/base/log.hpp"
#include "ucs/base/tick_clock.hpp"
#include "ucs/gpu/mover_pulse.hpp"

namespace cuda_nc::gpu {
namespace {

bool has_tables(const layout_view *side) noexcept {
    return side != nullptr && side->num_blocks > 1 && side->progression.first_length == 0;
}

uint64_t bytes_of_long(const move_order &one) noexcept {
    const uint64_t most =
        has_tables(one.target) || has_tables(one.source) ? longest_listed_of_many : longest_of_many;
    return one.length > most ? one.length : 0;
}

// Bytes.
uint64_t mean_length(const move_order *orders, size_t number) noexcept {
    return std::accumulate(orders, orders + number, uint64_t{0},
                           [](uint64_t sum, const move_order &one) { return sum + one.length; }) /
           std::max<size_t>(number, 1);
}

}  // namespace

void mover_memory::begin() noexcept {
    mover_door none;
    none.gone = true;
    __atomic_store_n(&door.value, none.word(), __ATOMIC_RELAXED);
    __atomic_store_n(&position.value, uint64_t{1}, __ATOMIC_RELEASE);
}

// Writes lines. A GPU reads each part whole: the half with the tag is written last.
struct mover_desk::pen {
    static constexpr uint32_t parts = order_parts;
    mover_memory &shared;
    const uint32_t (*words)[order_words];  // of the orders from `first` on
    ticket first;

    void write_part(ticket number, uint32_t part) noexcept {
        const uint32_t *from = words[number - first] + part * part_words;
        auto *to =
            reinterpret_cast<uint64_t *>(&shared.lines[number % order_ring_size].parts[part]);
        __atomic_store_n(to, uint64_t{from[1]} << 32 | from[0], __ATOMIC_RELAXED);
        __atomic_store_n(to + 1, uint64_t{order_tag(number)} << 32 | from[2], __ATOMIC_RELEASE);
    }
    void fence() noexcept {
        // An exchange is a fence on x86, and one that thread sanitizers know.
        static std::atomic<int> own{0};
        own.exchange(1, std::memory_order_seq_cst);
#ifndef __x86_64__
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
    }
    uint64_t load_door() noexcept {
        return __atomic_load_n(&shared.door.value, __ATOMIC_SEQ_CST);
    }
};

mover_desk::mover_desk(unsigned most_idle_us, bool always, uint64_t away_ns) noexcept
    : always_(always),
      away_ns_(away_ns),
      rhythm_(uint64_t{std::clamp(most_idle_us, 1u, 1000u)} * 1000) {}

void mover_desk::use(mover_memory *shared) noexcept {
    shared_ = shared;
    add_pulse(&shared->stay.pulse);
}

void mover_desk::retire() noexcept {
    if (shared_ != nullptr) {
        remove_pulse(&shared_->stay.pulse);
    }
}

// Those that have ended no longer count, though their owners may not have asked: one of them may
// compute for long. Returns how many bytes were counted for these.
uint64_t mover_desk::release_ended_long() noexcept {
    uint64_t released = 0;
    for (place &one : places_) {
        const ticket its = one.number.load(std::memory_order_acquire);
        const uint64_t length = one.length.load(std::memory_order_relaxed);
        if (its != 0 && length != 0 && has_ended(shared_->ends[its % order_ring_size], its)) {
            release(its);
            released += length;
        }
    }
    return released;
}

// Into words_, those that the kernel serves, as many as there is room for. chosen_ says which. Long
// ones that are too many together are left, all of them: one launch moves those that are left as
// well as the others.
size_t mover_desk::describe_all(const move_order *orders, size_t number, bool long_ones) noexcept {
    size_t count = 0;
    uint64_t together = long_bytes_.load(std::memory_order_relaxed);
    for (size_t i = 0; i < number; ++i) {
        together += bytes_of_long(orders[i]);
    }
    if (long_ones && together > most_together) {
        together -= release_ended_long();
    }
    for (size_t i = 0; i < number && count < most_at_once; ++i) {
        const ticket its = next_ + count;
        if (!has_room(its)) {
            break;
        }
        const uint64_t length = bytes_of_long(orders[i]);
        std::memset(words_[count], 0, sizeof(words_[count]));
        if ((length == 0 || (long_ones && together <= most_together)) && valid(orders[i]) &&
            describe(orders[i], its, &words_[count])) {
            chosen_[count++] = i;
        }
    }
    return count;
}

// The place of an order that has ended is free, whether its owner has asked or not: an owner that
// does not progress would keep all others from the ring.
bool mover_desk::has_room(ticket which) const noexcept {
    const ticket before = places_[which % order_ring_size].number.load(std::memory_order_acquire);
    return before == 0 || has_ended(shared_->ends[which % order_ring_size], before);
}

bool mover_desk::launch_locked() noexcept {
    mover_launch how;
    how.instance = launched_ == last_mover_instance ? 1 : launched_ + 1;
    how.first = first_;
    how.idle_ns = rhythm_.wait();
    how.away_ns = away_ns_;
    how.pulse = pulse_before_;
    const ucs_status_t status = launch(how);
    owes_launch_ = status != UCS_OK;
    if (status != UCS_OK) {
        nc_debug("a mover cannot be launched: %s", status_text(status));
        return false;
    }
    launched_ = how.instance;
    return true;
}

// Those that words_ and chosen_ describe hold their places from now on.
void mover_desk::take_places(const move_order *orders, size_t count, ticket *tickets,
                             bool for_set) noexcept {
    for (size_t i = 0; i < count; ++i) {
        const ticket number_of = next_ + i;
        tickets[chosen_[i]] = number_of;
        release(place_of(number_of).number.load(std::memory_order_relaxed));
        if (must_zero_ends(number_of)) {
            for (uint32_t &word : shared_->ends[number_of % order_ring_size].words) {
                __atomic_store_n(&word, 0u, __ATOMIC_RELAXED);
            }
            for (order_part &part : shared_->lines[number_of % order_ring_size].parts) {
                __atomic_store_n(&part.tag, order_tag(number_of - 1), __ATOMIC_RELAXED);
            }
        }
        place &its = place_of(number_of);
        const uint64_t length = bytes_of_long(orders[chosen_[i]]);
        its.length.store(length, std::memory_order_relaxed);
        long_bytes_.fetch_add(length, std::memory_order_relaxed);
        its.outcome.store(UCS_INPROGRESS, std::memory_order_relaxed);
        its.is_of_set = for_set;
        its.number.store(number_of, std::memory_order_release);
    }
}

// No kernel is there that could wait for the tickets of a set. Long orders have no place in one:
// several launches spread over more of the GPU.
given mover_desk::give_set_locked(const move_order *orders, size_t number,
                                  ticket *tickets) noexcept {
    const size_t count = number <= most_of_set ? describe_all(orders, number, false) : 0;
    if (count < 2) {
        return {};
    }
    take_places(orders, count, tickets, true);
    const ucs_status_t status = launch_set(words_, count, next_);
    if (status != UCS_OK) {
        nc_debug("a set of orders cannot be launched: %s", status_text(status));
        for (size_t i = 0; i < count; ++i) {
            release(std::exchange(tickets[chosen_[i]], ticket{0}));
        }
        return {};
    }
    expected_ += expected_ == next_ ? count : 0;  // these had no use for a kernel
    next_ += count;
    first_ = next_;
    return {count, true};
}

bool mover_desk::takes_at_once() const noexcept {
    return launches_for_first_.load(std::memory_order_relaxed) ||
           failed_.load(std::memory_order_relaxed) ||
           !mover_door::of(__atomic_load_n(&shared_->door.value, __ATOMIC_RELAXED)).leaving;
}

given mover_desk::give(const move_order *orders, size_t number, ticket *tickets,
                       giving how) noexcept {
    std::fill(tickets, tickets + number, ticket{0});
    if (!is_usable()) {
        return {};
    }
    std::lock_guard<std::mutex> guard(mutex_);
    if (failed_) {
        return {};
    }
    expects_ = false;
    // Another CPU's clock may be a little behind.
    now_ = std::max(now_, static_cast<uint64_t>(tick_clock::now().time_since_epoch().count()));
    rhythm_.note(now_, mean_length(orders, number), std::exchange(were_alone_, false));
    const bool in_bursts = rhythm_.in_bursts();
    if (how.may_launch_set) {
        rhythm_.note_others(number - 1);
    }
    pulse_before_ = pulse_;
    pulse_ = __atomic_load_n(&shared_->stay.pulse, __ATOMIC_RELAXED);
    if (how.counts_in_trials) {
        trial_.note(now_, static_cast<unsigned>(number));
    }
    pen writes = {*shared_, words_, next_};
    const mover_door door = mover_door::of(writes.load_door());
    // Behind a set `door.next` lies before next_, perhaps by more than misses() can tell.
    const bool missing = owes_launch_ || (next_ == first_ && door.leaves(launched_)) ||
                         door.misses(next_, launched_);
    // A kernel that may come back would wait for the tickets of a set.
    const bool may_launch_set =
        how.may_launch_set && number >= 2 && !owes_launch_ && door.is_gone(launched_);
    if (always_ && may_launch_set && std::exchange(launches_set_next_, !launches_set_next_)) {
        const given taken = give_set_locked(orders, number, tickets);
        if (taken.number != 0) {
            return taken;
        }
    }
    const bool may_stay = how.counts_in_trials ? trial_.allows() : trial_.favours();
    launches_for_first_.store(may_stay && in_bursts, std::memory_order_relaxed);
    if (!always_ && !may_stay) {
        were_alone_ = true;
        return may_launch_set ? give_set_locked(orders, number, tickets) : given();
    }
    if (!always_ && (missing || !door.is_open(launched_)) &&
        (how.to_present_kernel || !in_bursts)) {
        were_alone_ = missing;
        const given taken = may_launch_set ? give_set_locked(orders, number, tickets) : given();
        // Where none is missing one is on its way, and will take later ones.
        expects_ =
            missing && rhythm_.pays() && (taken.number != 0 || describe_all(orders, number) != 0);
        return taken;
    }
    const size_t count = describe_all(orders, number);
    const bool owed = owes_launch_;
    // Where a kernel is missing it comes first: without one nothing is written.
    if (count == 0) {
        return {};
    }
    if (missing && !launch_locked()) {
        owes_launch_ = owed;
        return may_launch_set ? give_set_locked(orders, number, tickets) : given();
    }
    take_places(orders, count, tickets, false);
    order_giver<pen> giver;
    giver.begin(next_, static_cast<uint32_t>(count), launched_);
    while (!giver.step(writes)) {
    }
    next_ += count;
    // Without a launch nobody may ever take them.
    if (giver.is_late() && (how.to_present_kernel || !launch_locked())) {
        take_back_locked();
        owes_launch_ = false;
        const size_t left = keep_taken(tickets, number);
        were_alone_ = left != count;
        expects_ = were_alone_ && rhythm_.pays();
        return {left, false};
    }
    return {count, false};
}

// A kernel that leaves before the next order comes has been launched for nothing.
void mover_desk::expect() noexcept {
    constexpr unsigned most_in_vain = 4,
                       tried_again = 61;  // steps of a program have no such number
    if (!is_usable()) {
        return;
    }
    std::lock_guard<std::mutex> guard(mutex_);
    if (!expects_ || failed_) {
        return;
    }
    expects_ = false;
    const unsigned in_vain = next_ != expected_ ? 0 : in_vain_ + 1;
    const bool owed = owes_launch_, waits = in_vain > most_in_vain && in_vain % tried_again != 0;
    if (!waits && !launch_locked()) {
        owes_launch_ = owed;
        return;
    }
    were_alone_ = were_alone_ && waits;
    in_vain_ = in_vain;
    expected_ = next_;
}

// A place is another order's only after its own has ended: then this one's end is UCS_OK. The
// number is read last, for what was read before may be that order's.
ucs_status_t mover_desk::state(ticket which) const noexcept {
    const place &its = places_[which % order_ring_size];
    const ucs_status_t now = has_ended(shared_->ends[which % order_ring_size], which)
                                 ? UCS_OK
                                 : its.outcome.load(std::memory_order_acquire);
    return its.number.load(std::memory_order_acquire) == which ? now : UCS_OK;
}

order_end_mark mover_desk::mark_of(ticket which) const noexcept {
    return {&shared_->ends[which % order_ring_size].words[0], end_word(which, 0) >> end_pieces_bits,
            end_pieces_bits};
}

// What becomes of the orders from `first` on that have not ended: of those of sets, or of the
// others, where no such launch runs.
void mover_desk::settle(ticket first, ucs_status_t outcome, bool of_sets) noexcept {
    for (place &one : places_) {
        const ticket its = one.number.load(std::memory_order_relaxed);
        if (its >= first && its != 0 && one.is_of_set == of_sets && state(its) == UCS_INPROGRESS) {
            one.outcome.store(outcome, std::memory_order_release);
        }
    }
}

// What still runs, a kernel or a set, goes on, and tells of its ends: ask() settles the rest when
// it has left.
void mover_desk::fail_locked(ucs_status_t kernels) noexcept {
    nc_debug("a mover has failed: %s", kernels == UCS_OK
                                           ? "it has left, and not told of an order's end"
                                           : status_text(kernels));
    failed_ = true;
    if (ask_kernels() != UCS_INPROGRESS) {
        settle(1, UCS_ERR_IO_ERROR, false);
    }
    if (ask_sets() != UCS_INPROGRESS) {
        settle(1, UCS_ERR_IO_ERROR, true);
    }
}

// Those that were taken back have no ticket any more. Returns how many are left.
size_t mover_desk::keep_taken(ticket *tickets, size_t number) noexcept {
    size_t left = 0;
    for (ticket *one = tickets; one != tickets + number; ++one) {
        if (*one != 0 && state(*one) == UCS_ERR_CANCELED) {
            release(std::exchange(*one, ticket{0}));
        }
        left += *one != 0;
    }
    return left;
}

// The kernel was leaving when the last orders came, and has seen them or not. Its dealing warp
// runs, looks again, and says what it has found; where it finds orders, thread blocks that run take
// them first. Nothing else is waited for: other thread blocks may wait for a multiprocessor, and so
// for an application's kernel that waits for these bytes.
void mover_desk::take_back_locked() noexcept {
    constexpr unsigned tries_until_asked = 64;
    for (unsigned tries = 1;; ++tries) {
        const bool may_have_ended = tries % tries_until_asked == 0;
        const ucs_status_t kernels = may_have_ended ? ask_kernels() : UCS_INPROGRESS;
        const mover_door door =
            mover_door::of(__atomic_load_n(&shared_->door.value, __ATOMIC_ACQUIRE));
        ticket first;
        if (door.is_open(launched_) || state(next_ - 1) != UCS_INPROGRESS) {
            return;  // it stays, and takes all that the ring holds; or it has
        }
        if (door.has_gone(launched_, next_, &first)) {
            settle(first, UCS_ERR_CANCELED, false);
            first_ = next_;
            return;
        }
        if (__atomic_load_n(&shared_->position.value, __ATOMIC_ACQUIRE) == dealer_gave_up) {
            return;  // ask() finds it
        }
        if (kernels != UCS_INPROGRESS) {
            fail_locked(kernels);
            return;
        }
    }
}

ucs_status_t mover_desk::ask_locked(ticket which) noexcept {
    const bool is_of_set = place_of(which).is_of_set;
    const ucs_status_t kernels = is_of_set ? ask_sets() : ask_kernels();
    const ucs_status_t now = state(which);
    if (now != UCS_INPROGRESS || kernels == UCS_INPROGRESS) {
        return now;
    }
    const ticket position = __atomic_load_n(&shared_->position.value, __ATOMIC_ACQUIRE);
    if (kernels != UCS_OK || which < position || is_of_set) {
        fail_locked(kernels);
        return UCS_ERR_IO_ERROR;
    }
    // No kernel has taken it, nor will.
    if (!failed_ && launch_locked()) {
        return UCS_INPROGRESS;
    }
    settle(position, UCS_ERR_CANCELED, false);
    first_ = next_;
    owes_launch_ = false;
    return UCS_ERR_CANCELED;
}

ucs_status_t mover_desk::ask(ticket which) noexcept {
    ucs_status_t now = state(which);
    if (now != UCS_INPROGRESS || !is_usable()) {
        return now != UCS_INPROGRESS ? now : UCS_ERR_IO_ERROR;
    }
    std::lock_guard<std::mutex> guard(mutex_);
    now = state(which);
    return now != UCS_INPROGRESS ? now : ask_locked(which);
}

void mover_desk::release(ticket which) noexcept {
    place &its = place_of(which);
    ticket number = which;
    const uint64_t length = its.length.load(std::memory_order_relaxed);
    // Its owner and give() may do so at the same time.
    if (which != 0 && its.number.compare_exchange_strong(number, 0, std::memory_order_acq_rel)) {
        long_bytes_.fetch_sub(length, std::memory_order_relaxed);
    }
}

void mover_desk::leave() noexcept {
    std::lock_guard<std::mutex> guard(mutex_);
    if (shared_ != nullptr && launched_ != 0) {
        __atomic_store_n(&shared_->stay.asked, uint64_t{launched_}, __ATOMIC_RELEASE);
    }
}

uint32_t mover_desk::launches() noexcept {
    std::lock_guard<std::mutex> guard(mutex_);
    return launched_;
}

}  // namespace cuda_nc::gpu
