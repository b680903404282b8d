#include "uct/cuda_nc/one_sided/mover.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "ucs/base/log.hpp"
#include "ucs/layout/layout.hpp"
#include "uct/cuda_nc/counters.hpp"
#include "uct/cuda_nc/one_sided/list.hpp"

namespace cuda_nc::uct {

using gpu::block_pair;

namespace {

void complete(abi::uct_completion *completion, ucs_status_t status) noexcept {
    if (completion->status == UCS_OK) {
        completion->status = status;
    }
    if (--completion->count == 0) {
        completion->func(completion);
    }
}

// Numbers of lists are never used twice in a process: a key's note of a mapping names one.
uint64_t next_list_number() noexcept {
    static std::atomic<uint64_t> last{0};
    return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace

struct list_mover::lane {
    int device = 0;          // the ordinal of `gpu`
    bool by_copies = false;  // launches do not reach the local memory
    gpu::device *gpu = nullptr;
    std::unique_ptr<gpu::stream> stream;
    std::unique_ptr<list> open;               // null: none
    std::deque<std::unique_ptr<list>> lists;  // closed; the first ones are launched
    std::vector<std::unique_ptr<list>> idle;
    ucs_status_t last_status = UCS_OK;  // of the list that ended last
};

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

list_mover::lane *list_mover::lane_of(int device) noexcept try {
    const auto found = lanes_.find(device);
    if (found != lanes_.end()) {
        return &found->second;
    }
    lane made;
    made.by_copies = device == unreached;
    made.device = made.by_copies ? 0 : device;
    made.gpu = gpu::platform::instance().get_device(made.device);
    if (made.gpu == nullptr || made.gpu->create_stream(&made.stream) != UCS_OK) {
        return nullptr;
    }
    return &lanes_.emplace(device, std::move(made)).first->second;
} catch (const std::bad_alloc &) {
    return nullptr;
}

// ---- gathering

ucs_status_t list_mover::open_list(lane &on) noexcept try {
    std::unique_ptr<list> made;
    if (!on.idle.empty()) {
        made = std::move(on.idle.back());
        on.idle.pop_back();
    } else {
        made = std::make_unique<list>();
        constexpr size_t bytes = list_pairs * sizeof(block_pair);
        ucs_status_t status = on.gpu->allocate_pinned(bytes + gpu::end_words::bytes, &made->memory);
        if (status == UCS_OK) {
            status = on.gpu->create_event(&made->done);
        }
        if (status != UCS_OK) {
            return status;
        }
        made->ends.use(made->memory->address() + bytes);
    }
    made->number = last_number_ = next_list_number();
    made->waits_for = fence_;
    on.open = std::move(made);
    progress_.start();
    return UCS_OK;
} catch (const std::bad_alloc &) {
    return UCS_ERR_NO_MEMORY;
}

// Cuts the block into pairs. Those that the open list has no room for go into the next ones.
ucs_status_t list_mover::append(lane &on, const block_pair &block) noexcept try {
    for (uint64_t done = 0; done < block.length;) {
        if (on.open->is_full()) {
            // The mapping that the block needs is among them.
            std::vector<std::shared_ptr<gpu::memory>> mappings = on.open->mappings;
            close_list(on);
            const ucs_status_t status = open_list(on);
            if (status != UCS_OK) {
                return status;
            }
            on.open->continues = true;
            on.open->mappings = std::move(mappings);
        }
        list &open = *on.open;
        const uint64_t part = std::min(block.length - done, block_pair::best_length);
        open.pairs()[open.num_pairs++] = {block.from + done, block.to + done, part};
        open.bytes += part;
        done += part;
    }
    return UCS_OK;
} catch (const std::bad_alloc &) {
    return UCS_ERR_NO_MEMORY;
}

ucs_status_t list_mover::add(int device, direction dir, char *local, remote_key &key,
                             uint64_t remote, uint64_t length) noexcept try {
    if (!key.contains(remote, length)) {
        nc_error("a put or get leads out of the memory of its key");
        return UCS_ERR_INVALID_PARAM;
    }
    note_post();
    lane *on = lane_of(device);
    remote_key::note *note = key.note_for(device);
    if (on == nullptr || note == nullptr) {
        return UCS_ERR_NO_MEMORY;
    }
    if (on->lists.size() >= most_lists) {
        return UCS_ERR_NO_RESOURCE;
    }
    if (on->open != nullptr && on->open->is_full()) {
        close_list(*on);
    }
    const ucs_status_t opened = on->open == nullptr ? open_list(*on) : UCS_OK;
    if (opened != UCS_OK) {
        return opened;
    }
    list &open = *on->open;
    if (note->user != open.number) {
        peer_memory memory = key.reach(on->device);
        if (!memory) {
            return UCS_ERR_UNREACHABLE;
        }
        open.mappings.push_back(memory.keeper);
        *note = {open.number, memory.address};
    }
    char *there = note->mapped + (remote - key.base());
    const bool puts = dir == direction::put;
    const block_pair block = {puts ? local : there, puts ? there : local, length};
    if (open.is_empty() && length >= copied_length) {
        count(dir == direction::put ? counters::all().puts : counters::all().gets);
        open.alone = block;
        open.bytes = length;
        return UCS_OK;
    }
    if (open.alone.length != 0) {
        open.bytes = 0;
        const ucs_status_t status = append(*on, std::exchange(open.alone, {}));
        if (status != UCS_OK) {
            return status;
        }
    }
    count(dir == direction::put ? counters::all().puts : counters::all().gets);
    const ucs_status_t status = append(*on, block);
    if (status == UCS_OK && on->open->bytes >= list_bytes) {
        close_list(*on);  // the GPU begins while more is added
    }
    return status;
} catch (const std::bad_alloc &) {
    return UCS_ERR_NO_MEMORY;
}

ucs_status_t list_mover::add(int device, layout_order &order, remote_key &key,
                             abi::uct_completion *completion) noexcept try {
    note_post();
    lane *on = lane_of(device);
    if (on == nullptr) {
        return UCS_ERR_NO_MEMORY;
    }
    make_room(device);
    auto made = std::make_unique<list>();
    peer_memory memory = key.reach(on->device);
    if (!memory) {
        return UCS_ERR_UNREACHABLE;
    }
    const ucs_status_t status = on->gpu->create_event(&made->done);
    if (status != UCS_OK) {
        return status;
    }
    made->order = order.shared_from_this();
    made->order_remote = memory.address + (order.remote_base - key.base());
    made->bytes = order.local().packed_size();
    made->mappings.push_back(memory.keeper);
    if (completion != nullptr) {
        made->completions.push_back(completion);
    }
    if (on->open != nullptr && !on->open->is_empty()) {
        close_list(*on);
    }
    made->waits_for = fence_;
    made->number = last_number_ = next_list_number();
    on->lists.push_back(std::move(made));
    if (on->open != nullptr) {  // what is added to it comes later
        on->open->number = last_number_ = next_list_number();
    }
    count(order.puts ? counters::all().puts : counters::all().gets);
    count(counters::all().layout_orders);
    progress_.start();
    launch_closed(*on);
    return UCS_OK;
} catch (const std::bad_alloc &) {
    return UCS_ERR_NO_MEMORY;
}

void list_mover::complete_with(int device, abi::uct_completion *completion) noexcept try {
    const auto found = lanes_.find(device);
    list *last = nullptr;
    if (found != lanes_.end()) {
        lane &on = found->second;
        last = on.open != nullptr  ? on.open.get()
               : !on.lists.empty() ? on.lists.back().get()
                                   : nullptr;
    }
    if (last != nullptr) {
        last->completions.push_back(completion);
    } else {
        owed_.push_back({{completion}, UCS_OK, nullptr});
        progress_.start();
    }
} catch (const std::bad_alloc &) {
    nc_error("out of memory: a put or get is waited for");
    make_room(device);
    flush(nullptr);
    complete(completion, UCS_ERR_NO_MEMORY);
}

// ---- launching

void list_mover::close_list(lane &on) noexcept try {
    on.lists.push_back(nullptr);
    on.lists.back() = std::move(on.open);
    launch_closed(on);
} catch (const std::bad_alloc &) {
    // It stays open, and is closed later.
}

bool list_mover::may_begin(const lane &on, uint64_t after) const noexcept {
    return std::all_of(lanes_.begin(), lanes_.end(), [&](const auto &one) {
        const lane &other = one.second;
        return &other == &on || other.lists.empty() || other.lists.front()->number > after;
    });
}

void list_mover::launch_closed(lane &on) noexcept {
    for (const auto &one : on.lists) {
        if (one->is_launched) {
            continue;
        }
        if (!may_begin(on, one->waits_for)) {
            return;
        }
        const ucs_status_t status = one->launch(*on.gpu, *on.stream, on.by_copies);
        if (status != UCS_OK) {
            one->status = status;
        }
    }
}

// An empty list has a number from before the fence.
void list_mover::fence() noexcept {
    for (auto &one : lanes_) {
        lane &on = one.second;
        if (on.open != nullptr && on.open->is_empty()) {
            on.open.reset();
        } else if (on.open != nullptr) {
            close_list(on);
        }
    }
    fence_ = last_number_;
}

// ---- ends

void list_mover::end_list(lane &on) noexcept try {
    std::unique_ptr<list> ended = std::move(on.lists.front());
    on.lists.pop_front();
    if (ended->continues && ended->status == UCS_OK) {
        ended->status = on.last_status;
    }
    on.last_status = ended->status;
    failure_ = failure_ == UCS_OK ? ended->status : failure_;
    if (!ended->completions.empty()) {
        owed_.push_back({std::move(ended->completions), ended->status, ended->order});
    }
    if (ended->order == nullptr) {
        ended->clear();
        on.idle.push_back(std::move(ended));
    }
} catch (const std::bad_alloc &) {
    nc_error("out of memory: puts and gets end without a word");
}

void list_mover::end_lists(lane &on) noexcept {
    while (!on.lists.empty() && on.lists.front()->query() != UCS_INPROGRESS) {
        end_list(on);
    }
}

void list_mover::make_room(int device) noexcept {
    const auto found = lanes_.find(device);
    while (found != lanes_.end() && found->second.lists.size() >= most_lists) {
        for (auto &one : lanes_) {  // the first list may wait for another GPU's
            launch_closed(one.second);
            if (!one.second.lists.empty() && one.second.lists.front()->is_launched) {
                one.second.lists.front()->await();
            }
            end_lists(one.second);
        }
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
        } else if (on.open != nullptr && !on.open->is_empty()) {
            oldest = std::min(oldest, on.open->number);
        }
    }
    return oldest;
}

unsigned list_mover::end_flushes() noexcept {
    unsigned ended = 0;
    while (!flushes_.empty() && flushes_.front().last < oldest()) {
        const flush_entry one = flushes_.front();
        flushes_.pop_front();
        complete(one.completion, std::exchange(failure_, UCS_OK));
        ++ended;
    }
    return ended;
}

ucs_status_t list_mover::flush(abi::uct_completion *completion) noexcept try {
    for (auto &one : lanes_) {
        if (one.second.open != nullptr && !one.second.open->is_empty()) {
            close_list(one.second);
        }
    }
    if (is_idle()) {
        return std::exchange(failure_, UCS_OK);
    }
    if (completion != nullptr) {
        flushes_.push_back({last_number_, completion});
    }
    return UCS_INPROGRESS;
} catch (const std::bad_alloc &) {
    return UCS_ERR_NO_MEMORY;
}

bool list_mover::is_idle() const noexcept {
    return owed_.empty() && !calls_ && oldest() == UINT64_MAX;
}

// A launch takes as long as many puts do. So a list that another thread is still adding to, or that
// the GPU would not begin soon, gathers more meanwhile; but a GPU that has nothing to do is not
// kept waiting by one that adds slowly and for long.
bool list_mover::is_complete(lane &on) noexcept {
    constexpr size_t enough_lists = 2;
    constexpr auto pause = std::chrono::nanoseconds(1500);
    constexpr auto longest = std::chrono::microseconds(100);
    if (on.open == nullptr || on.open->is_empty() || on.lists.size() >= enough_lists) {
        return false;
    }
    list &open = *on.open;
    const clock::time_point now = clock::now();
    if (open.seen_bytes == 0) {
        open.first_seen = now;
    }
    if (open.seen_bytes != open.bytes) {
        open.seen_bytes = open.bytes;
        open.seen = now;
        return on.lists.empty() && now - open.first_seen >= longest;
    }
    return now - open.seen >= pause;
}

unsigned list_mover::progress() noexcept {
    for (auto &one : lanes_) {
        lane &on = one.second;
        end_lists(on);
        if (is_complete(on)) {
            close_list(on);
        }
        launch_closed(on);
    }
    progresses_ = true;
    const unsigned ended = is_left_to_poster() ? 0 : call_owed() + end_flushes();
    const unsigned happened = ended + release_pending();
    progresses_ = false;
    if (is_idle() && flushes_.empty() && pending_.empty()) {
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
    pending_.push_back({ep, request});
    return UCS_OK;
} catch (const std::bad_alloc &) {
    return UCS_ERR_NO_MEMORY;
}

unsigned list_mover::release_pending() noexcept {
    using send = ucs_status_t (*)(void *request);
    unsigned released = 0;
    for (size_t left = pending_.size(); left != 0 && !pending_.empty(); --left) {
        const pending_entry first = pending_.front();
        pending_.pop_front();  // what is called may purge the others
        const ucs_status_t status = (*static_cast<send *>(first.request))(first.request);
        if (status == UCS_ERR_NO_RESOURCE || status == UCS_INPROGRESS) {
            pending_.push_front(first);
            break;
        }
        ++released;
    }
    return released;
}

void list_mover::purge_pending(const void *ep, purge_callback callback, void *argument) noexcept {
    const std::deque<pending_entry> all = std::exchange(pending_, {});
    for (const pending_entry &one : all) {
        if (one.ep != ep) {
            pending_.push_back(one);
        } else if (callback != nullptr) {
            callback(one.request, argument);
        }
    }
}

}  // namespace cuda_nc::uct
