#include "uct/cuda_nc/one_sided/mover.hpp"

#include <algorithm>
#include <iterator>
#include <new>
#include <utility>

#include "ucs/base/log.hpp"
#include "ucs/gpu/mover_pulse.hpp"
#include "uct/cuda_nc/one_sided/lane.hpp"

namespace cuda_nc::uct {

namespace {

void complete(abi::uct_completion *completion, ucs_status_t status) noexcept {
    if (completion->status == UCS_OK) {
        completion->status = status;
    }
    if (--completion->count == 0) {
        completion->func(completion);
    }
}

}  // namespace

list_mover::list_mover(const ucx_api &ucx, void *worker, worker_turns *turns) noexcept
    : progress_(
          ucx, worker, [](void *self) { return static_cast<list_mover *>(self)->progress(); },
          this),
      turns_(turns) {}

list_mover::~list_mover() {
    if (turns_ != nullptr) {
        turns_->close();
    }
    for (auto &one : lanes_) {
        for (const auto &running : one.second.lists) {
            if (running->is_launched) {
                running->await();
            }
        }
    }
}

list_mover::lane *list_mover::find_lane(int number, const remote_key &key) noexcept try {
    auto found = lanes_.find(number);
    if (found == lanes_.end()) {
        lane made;
        if (key.owner() != nullptr) {
            made.process = key.owner();
            made.writes = number == host_lane(*made.process, direction::put);
        } else {
            made.by_copies = number == unreached;
            made.device = made.by_copies ? 0 : number;
            made.gpu = gpu::platform::instance().get_device(made.device);
            if (made.gpu == nullptr || made.gpu->create_stream(&made.stream) != UCS_OK) {
                return nullptr;
            }
        }
        found = lanes_.emplace(number, std::move(made)).first;
    }
    recent_ = &found->second;
    recent_number_ = number;
    return recent_;
} catch (const std::bad_alloc &) {
    return nullptr;
}

void list_mover::forget_the_gone() noexcept {
    for (auto one = lanes_.begin(); one != lanes_.end();) {
        const lane &its = one->second;
        const bool is_used = its.open != nullptr || !its.lists.empty();
        const bool goes = its.process != nullptr && !is_used && its.process->has_ended();
        one = goes ? lanes_.erase(one) : std::next(one);
    }
    recent_ = nullptr;
}

// ---- completions, launches

void list_mover::complete_with(int number, abi::uct_completion *completion) noexcept try {
    const auto found = lanes_.find(number);
    list *last = nullptr;
    if (found != lanes_.end()) {
        lane &on = found->second;
        on.goes_on = false;
        last = on.open != nullptr  ? on.open.get()
               : !on.lists.empty() ? on.lists.back().get()
                                   : nullptr;
    }
    if (last != nullptr) {
        last->first_ends = last->calls_ended == 0 ? completion != nullptr : last->first_ends;
        ++last->calls_ended;
        found->second.note_call();
        if (completion != nullptr) {
            last->completions.push_back(completion);
        }
        begin_at_once(found->second);
    } else if (completion != nullptr) {
        owed_.push_back({{completion}, UCS_OK, nullptr});
        progress_.start();
    }
} catch (const std::bad_alloc &) {
    nc_error("out of memory: a put or get is waited for");
    await_all();
    complete(completion, UCS_OK);
}

void list_mover::close_list(lane &on) noexcept try {
    on.lists.push_back(nullptr);
    on.lists.back() = std::move(on.open);
    launch_closed(on);
} catch (const std::bad_alloc &) {
    // It stays open, and is closed later.
}

// Whether all lists up to `after` have ended or, for what is launched, go before it on its stream.
// Null: it is not launched.
bool list_mover::may_begin(const gpu::stream *behind, uint64_t after) const noexcept {
    return std::all_of(lanes_.begin(), lanes_.end(), [&](const auto &one) {
        const lane &other = one.second;
        return std::all_of(other.lists.begin(), other.lists.end(), [&](const auto &its) {
            return its->number > after || its->status != UCS_INPROGRESS ||
                   (behind != nullptr && its->stream == behind && !its->is_unordered());
        });
    });
}

void list_mover::begin(lane &on, list &closed, bool by_order) noexcept {
    if (on.process != nullptr) {
        closed.move(*on.process, on.writes);
        on.progressed = clock::now();  // it took a while
        return;
    }
    if (by_order && closed.give(false)) {
        return;
    }
    const ucs_status_t status = closed.launch();
    if (status != UCS_OK) {
        closed.status = status;
    }
}

void list_mover::launch_closed(lane &on) noexcept {
    for (const auto &one : on.lists) {
        if (one->is_launched) {
            continue;
        }
        const bool by_order = may_begin(nullptr, one->waits_for);
        if (!by_order && !may_begin(one->stream, one->waits_for)) {
            return;
        }
        begin(on, *one, by_order);
    }
}

// A GPU that has nothing to do begins with the first call's blocks, while later ones are gathered.
// The next ones may begin at once, too. As orders a few do: an order takes the CPU little more than
// a pair does. As copies do those of a program that posts few at a time, such as two faces that UCP
// receives: they would wait for others that do not come, and then for a kernel.
void list_mover::begin_at_once(lane &on) noexcept try {
    const bool is_first = on.lists.empty();
    if (on.gpu == nullptr || on.open == nullptr || on.open->calls_ended != 1 ||
        on.lists.size() >= most_begun_singly || !may_begin(nullptr, on.open->waits_for)) {
        return;
    }
    const bool may_copy = on.posts_few() && on.open->lone_block().length != 0;
    auto goes_beside = [may_copy](const auto &one) {
        return one->is_unordered() || (may_copy && one->is_copy);
    };
    if (!std::all_of(on.lists.begin(), on.lists.end(), goes_beside)) {
        return;
    }
    on.lists.push_back(nullptr);
    const bool given = on.open->give(on.posts_few());
    if (!given && !is_first && !may_copy) {
        on.lists.pop_back();
        return;
    }
    on.lists.back() = std::move(on.open);
    if (given) {
        return;
    }
    list &begun = *on.lists.back();
    begun.is_copy = may_copy;
    if (may_copy && !is_first) {
        use_copying_stream(on, begun);
    }
    begin(on, begun, false);
} catch (const std::bad_alloc &) {
    // It begins later.
}

void list_mover::close_all() noexcept {
    for (auto &one : lanes_) {
        if (one.second.open != nullptr) {
            close_list(one.second);
        }
    }
}

void list_mover::fence_lists() noexcept {
    close_all();
    fence_ = last_number_;
}

void list_mover::fence() noexcept {
    if (pending_.empty()) {
        fence_lists();
    } else if (!std::exchange(pending_.back().fence_follows, true)) {
        ++num_fences_;
    }
}

// ---- ends

// After a failure no later work may run on its streams. Nor is anything of it to run on.
void list_mover::renew_streams(lane &on) noexcept {
    on.stream.reset();  // which waits
    for (std::unique_ptr<gpu::stream> &one : on.copying) {
        one.reset();
    }
    if (on.gpu->create_stream(&on.stream) != UCS_OK) {
        on.stream.reset();
    }
    for (const auto &one : on.lists) {
        if (!one->is_launched || one->orders.is_given()) {  // orders that fail are launched
            one->use(on);
        }
    }
    if (on.open != nullptr) {
        on.open->use(on);
    }
}

// Completions tell of a failure, and no flush: that of another endpoint has nothing to do with it.
void list_mover::note_failure(ucs_status_t status, bool is_told) noexcept {
    failure_ = failure_ == UCS_OK && !is_told ? status : failure_;
}

bool list_mover::end_list(lane &on) noexcept try {
    reserve_owed();
    std::unique_ptr<list> ended = std::move(on.lists.front());
    on.lists.pop_front();
    const ucs_status_t own = ended->status;
    const ucs_status_t with_before = ended->continues && own == UCS_OK ? on.last_status : own;
    // For the call that goes on in the next list: this one is all of it where none ended here.
    on.last_status = ended->calls_ended == 0 ? with_before : own;
    if (on.process == nullptr) {
        note_failure(with_before, ended->has_completions());
    }
    if (own != UCS_OK && on.gpu != nullptr) {
        renew_streams(on);
    }
    std::vector<abi::uct_completion *> &all = ended->completions;
    if (ended->continues && ended->first_ends && with_before != own && !all.empty()) {
        owed_.push_back({{all.front()}, with_before, ended->order});
        all.erase(all.begin());
    }
    if (!all.empty()) {
        owed_.push_back({std::move(all), own, ended->order});
    }
    constexpr size_t most_idle_on_host = 2;
    if (ended->order == nullptr && (on.process == nullptr || on.idle.size() < most_idle_on_host)) {
        put_back(on, std::move(ended));
    }
    return true;
} catch (const std::bad_alloc &) {
    nc_error("out of memory: puts and gets end late");
    return false;
}

void list_mover::end_lists(lane &on) noexcept {
    while (!on.lists.empty() && on.lists.front()->query() != UCS_INPROGRESS && end_list(on)) {
    }
}

// Until no more than `most` are closed.
void list_mover::await_lists(const lane &on, size_t most) noexcept {
    while (on.lists.size() > most) {
        for (auto &one : lanes_) {  // the first list may wait for another GPU's
            launch_closed(one.second);
            if (!one.second.lists.empty() && one.second.lists.front()->is_launched) {
                one.second.lists.front()->await();
            }
            end_lists(one.second);
        }
    }
}

void list_mover::await_all() noexcept {
    close_all();
    for (const auto &one : lanes_) {
        await_lists(one.second, 0);
    }
}

void list_mover::make_room(int number) noexcept {
    const auto found = lanes_.find(number);
    if (found != lanes_.end()) {
        await_lists(found->second, most_lists - 1);
    }
}

// A completion that another thread calls costs the one that posts more than the call itself: it
// waits for the lock, and what UCP keeps of the put comes and goes between two processors. So while
// it posts without a pause, what has ended waits for its own progress; but not for long.
bool list_mover::is_left_to_poster() noexcept {
    constexpr auto longest = std::chrono::milliseconds(10);
    constexpr auto pause = std::chrono::microseconds(200);
    if (turns_ == nullptr || (owed_.empty() && flushes_.empty()) || !turns_->is_left_to_poster()) {
        left_.since = {};
        return false;
    }
    const clock::time_point now = clock::now();
    const uint64_t posts = turns_->num_posts();
    const bool begins = left_.since == clock::time_point();
    left_.since = begins ? now : left_.since;
    if (begins || posts != left_.posts) {
        left_.posts = posts;
        left_.posted = now;
    }
    const bool is_left = now - left_.since < longest && now - left_.posted < pause;
    if (!is_left) {
        left_.since = {};
        turns_->leave_no_more();
    }
    return is_left;
}

// What is called may add, flush and end anything here, and progress: the inner call says that none
// is left, so that a completion which waits for a flush comes to an end.
unsigned list_mover::call_owed() noexcept {
    unsigned called = 0;
    calls_ = true;
    while (!owed_.empty()) {
        std::vector<owed_completions> now;
        now.swap(owed_);
        for (const owed_completions &some : now) {
            for (abi::uct_completion *one : some.completions) {
                complete(one, some.status);
            }
            called += static_cast<unsigned>(some.completions.size());
        }
    }
    calls_ = false;
    return called;
}

uint64_t list_mover::oldest() const noexcept {
    uint64_t oldest = UINT64_MAX;
    for (const auto &one : lanes_) {
        const lane &on = one.second;
        if (!on.lists.empty()) {
            oldest = std::min(oldest, on.lists.front()->number);
        } else if (on.open != nullptr) {
            oldest = std::min(oldest, on.open->number);
        }
    }
    return oldest;
}

unsigned list_mover::end_flushes() noexcept {
    unsigned ended = 0;
    while (!flushes_.empty()) {
        flush_entry &front = flushes_.front();
        if (front.after_pending != 0) {
            if (!pending_.empty() && pending_.front().number <= front.after_pending) {
                break;
            }
            front.last = last_number_;  // they have been added
            front.after_pending = 0;
        }
        if (front.last >= oldest()) {
            break;
        }
        const flush_entry one = front;
        flushes_.pop_front();
        complete(one.completion, std::exchange(failure_, UCS_OK));
        ++ended;
    }
    return ended;
}

ucs_status_t list_mover::flush(abi::uct_completion *completion) noexcept try {
    close_all();
    if (is_idle() && pending_.empty()) {
        return std::exchange(failure_, UCS_OK);
    }
    if (completion != nullptr) {
        const uint64_t after = pending_.empty() ? 0 : pending_.back().number;
        flushes_.push_back({last_number_, after, completion});
    }
    return UCS_INPROGRESS;
} catch (const std::bad_alloc &) {
    return UCS_ERR_NO_MEMORY;
}

bool list_mover::is_idle() const noexcept {
    return owed_.empty() && !calls_ && oldest() == UINT64_MAX;
}

bool list_mover::is_quiet() const noexcept {
    return is_idle() && flushes_.empty() && pending_.empty();
}

// A launch takes as long as many puts do. So a list that another thread is still adding to, or that
// the GPU would not begin soon, gathers more meanwhile; but a GPU that has nothing to do is not
// kept waiting by one that adds slowly and for long.
//
// A list of host memory ends at a progress. But a program may progress after each put (Open MPI's
// windows do), and each would be a list of its own: so one that begins soon after a progress, or
// after the list before it was moved, gathers on until no more have come for a moment, and no
// longer than a GPU would be kept waiting.
bool list_mover::is_complete(lane &on) noexcept {
    constexpr size_t enough_lists = 2;
    constexpr auto pause = std::chrono::nanoseconds(1500);
    constexpr auto longest = std::chrono::microseconds(100);
    if (on.open == nullptr) {
        return false;
    }
    list &open = *on.open;
    const clock::time_point now = clock::now();
    if (open.seen_bytes == 0) {
        open.first_seen = now;
    }
    const bool has_waited = now - open.first_seen >= longest;
    if (on.process != nullptr) {
        // A progress that had something to tell is called again at once: that is no pause yet.
        constexpr auto breath = std::chrono::nanoseconds(500);
        if (std::exchange(open.seen_bytes, open.bytes) != open.bytes) {
            open.seen = now;
        }
        on.progressed = now;
        return !open.gathers_on || has_waited || now - open.seen >= breath;
    }
    const auto launched = std::count_if(on.lists.begin(), on.lists.end(), [&on](const auto &one) {
        return one->stream == on.stream.get() && !one->is_unordered();
    });
    if (static_cast<size_t>(launched) >= enough_lists) {
        return false;
    }
    if (open.seen_bytes != open.bytes) {
        open.seen_bytes = open.bytes;
        open.seen = now;
        return launched == 0 && has_waited;
    }
    return now - open.seen >= pause;
}

unsigned list_mover::progress() noexcept {
    constexpr unsigned calls_between_beats = 8;
    for (auto &one : lanes_) {
        lane &on = one.second;
        end_lists(on);
        if (is_complete(on)) {
            close_list(on);
        }
        launch_closed(on);
    }
    if (++calls_made_ % calls_between_beats == 0) {
        gpu::beat_pulses(gpu::beat::progress);
    }
    progresses_ = true;
    const unsigned ended = is_left_to_poster() ? 0 : call_owed() + end_flushes();
    const unsigned happened = ended + release_pending();
    progresses_ = false;
    if (is_quiet()) {
        progress_.note_idle();
    } else {
        progress_.note_busy();
    }
    return happened;
}

// ---- requests that found no room

ucs_status_t list_mover::add_pending(const void *ep, void *request) noexcept try {
    if (is_idle() && pending_.empty()) {
        return UCS_ERR_BUSY;  // there is room
    }
    pending_.push_back({ep, request, last_pending_ + 1, false});
    ++last_pending_;
    return UCS_OK;
} catch (const std::bad_alloc &) {
    await_all();
    return UCS_ERR_BUSY;  // there is room, and UCP sends it at once; it knows no other error here
}

unsigned list_mover::release_pending() noexcept {
    using send = ucs_status_t (*)(void *request);
    unsigned released = 0;
    for (size_t left = pending_.size(); left != 0 && !pending_.empty(); --left) {
        const pending_entry first = pending_.front();
        pending_.pop_front();  // what is called may purge the others
        releases_ = true;
        const ucs_status_t status = (*static_cast<send *>(first.request))(first.request);
        releases_ = false;
        if (status == UCS_ERR_NO_RESOURCE || status == UCS_INPROGRESS) {
            pending_.push_front(first);
            break;
        }
        if (first.fence_follows) {
            --num_fences_;
            fence_lists();
        }
        ++released;
    }
    return released;
}

void list_mover::purge_pending(const void *ep, purge_callback callback, void *argument) noexcept {
    // What is called may progress, flush and add others.
    for (const uint64_t last = last_pending_;;) {
        const auto found = std::find_if(
            pending_.begin(), pending_.end(),
            [&](const pending_entry &one) { return one.ep == ep && one.number <= last; });
        if (found == pending_.end()) {
            return;
        }
        void *const request = found->request;
        if (found->fence_follows) {
            // It still follows those before.
            if (found == pending_.begin()) {
                --num_fences_;
                fence_lists();
            } else if (std::exchange(std::prev(found)->fence_follows, true)) {
                --num_fences_;
            }
        }
        pending_.erase(found);
        if (callback != nullptr) {
            callback(request, argument);
        }
    }
}

}  // namespace cuda_nc::uct
