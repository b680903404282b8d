// What is added: blocks become pairs of the open list, which closes when it is full or holds
// enough.
#include <algorithm>
#include <atomic>
#include <new>
#include <utility>

#include "ucs/base/log.hpp"
#include "ucs/layout/layout.hpp"
#include "uct/cuda_nc/one_sided/lane.hpp"

namespace cuda_nc::uct {

using gpu::block_pair;

namespace {

// Numbers of lists are never used twice in a process: a key's note of a mapping names one.
uint64_t next_list_number() noexcept {
    static std::atomic<uint64_t> last{0};
    return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace

ucs_status_t list_mover::open_list(lane &on, bool of_pairs) noexcept try {
    std::vector<std::unique_ptr<list>> &idle = of_pairs ? on.idle : on.idle_without_pairs;
    std::unique_ptr<list> made;
    if (!idle.empty()) {
        made = std::move(idle.back());
        idle.pop_back();
    } else {
        made = std::make_unique<list>();
        if (on.process != nullptr) {
            made->make_room_on_host();
        }
        const ucs_status_t status = on.gpu != nullptr ? made->make_room(*on.gpu, of_pairs) : UCS_OK;
        if (status != UCS_OK) {
            return status;
        }
    }
    if (on.gpu != nullptr && on.stream == nullptr && on.gpu->create_stream(&on.stream) != UCS_OK) {
        on.stream.reset();
        return UCS_ERR_NO_MEMORY;
    }
    made->use(on);
    if (!of_pairs) {
        use_copying_stream(on, *made);
    }
    made->reserve_completion();
    if (on.process != nullptr) {
        // The program adds soon after a progress: it progresses between its puts.
        constexpr auto soon = std::chrono::microseconds(20);
        made->gathers_on = clock::now() - on.progressed < soon;
    }
    made->continues = on.goes_on;
    made->number = last_number_ = next_list_number();
    made->waits_for = fence_;
    on.open = std::move(made);
    return UCS_OK;
} catch (const std::bad_alloc &) {
    return UCS_ERR_NO_MEMORY;
}

// Where there is none the list stays on the lane's stream.
void list_mover::use_copying_stream(lane &on, list &its) noexcept {
    std::unique_ptr<gpu::stream> &next = on.copying[on.next_copying];
    on.next_copying = (on.next_copying + 1) % on.copying.size();
    if (next != nullptr || on.gpu->create_stream(&next) == UCS_OK) {
        its.stream = next.get();
    }
}

// For the next one that opens, unless that had better ask for pinned memory again. Throws
// std::bad_alloc.
void list_mover::put_back(lane &on, std::unique_ptr<list> unused) {
    if (on.gpu != nullptr && !unused->on_host.empty()) {
        return;
    }
    unused->clear();
    (unused->most_pairs != 0 ? on.idle : on.idle_without_pairs).push_back(std::move(unused));
}

void list_mover::put_back_open(lane &on) noexcept try {
    put_back(on, std::move(on.open));
} catch (const std::bad_alloc &) {
    // It is freed.
}

ucs_status_t list_mover::append_parts(lane &on, const block_pair &block) noexcept try {
    for (uint64_t done = 0; done < block.length;) {
        if (on.open->is_full()) {
            // The mapping that the block needs is among them.
            std::vector<std::shared_ptr<gpu::memory>> mappings = on.open->mappings;
            close_list(on);
            const ucs_status_t status =
                on.open != nullptr ? UCS_ERR_NO_MEMORY : open_list(on, true);
            if (status != UCS_OK) {
                return status;
            }
            on.open->continues = true;  // where it is the first part of the call, too
            on.open->mappings = std::move(mappings);
        }
        list &open = *on.open;
        const uint64_t left = block.length - done;
        constexpr uint64_t on_host = 1 << 20;
        const uint64_t part =
            std::min(left, on.process != nullptr ? on_host : block_pair::best_length);
        open.add_pair({block.from + done, block.to + done, part});
        done += part;
    }
    return UCS_OK;
} catch (const std::bad_alloc &) {
    return UCS_ERR_NO_MEMORY;
}

// The memory of the key, as whoever moves the lane's lists reaches it.
peer_memory list_mover::reach(const lane &on, const remote_key &key) noexcept {
    return on.process != nullptr ? peer_memory{nullptr, reinterpret_cast<char *>(key.base())}
                                 : key.reach(on.device, true);
}

// Cuts the block into pairs. Those that the open list has no room for go into the next ones. After
// an error no GPU touches any of it.
ucs_status_t list_mover::append(lane &on, const block_pair &block) noexcept {
    const uint64_t number = on.open->number, bytes = on.open->bytes;
    const size_t num_pairs = on.open->num_pairs;
    const ucs_status_t status = append_parts(on, block);
    if (status == UCS_OK) {
        return UCS_OK;
    }
    if (on.open != nullptr && on.open->number == number) {
        on.open->num_pairs = num_pairs;
        on.open->bytes = bytes;
        return status;
    }
    if (on.open != nullptr) {  // it holds nothing else
        put_back_open(on);
    }
    await_lists(on, 0);
    return status;
}

// The block that was alone becomes pairs, as others come. Whoever waits for it waits for its last
// pair.
ucs_status_t list_mover::cut_alone(lane &on) noexcept try {
    reserve_owed();
    const bool is_told = on.open->has_completions();
    owed_completions failed = {std::move(on.open->completions), UCS_OK, nullptr};
    on.open->completions.clear();
    const size_t calls_ended = std::exchange(on.open->calls_ended, 0);
    const bool first_ends = std::exchange(on.open->first_ends, false);
    on.open->bytes = 0;
    failed.status = append(on, std::exchange(on.open->alone, {}));
    if (failed.status == UCS_OK) {
        on.open->completions = std::move(failed.completions);
        on.open->calls_ended = calls_ended;
        on.open->first_ends = first_ends;
        on.open->reserve_completion();
        return UCS_OK;
    }
    const ucs_status_t status = failed.status;
    note_failure(status, is_told);
    owed_.push_back(std::move(failed));
    progress_.start();
    return status;
} catch (const std::bad_alloc &) {
    return UCS_ERR_NO_MEMORY;  // and no completion is lost
}

// Most blocks are one more pair of the open list, and as many as fit into the time of a launch are
// gathered: so each counts. False: add_block() is to do it.
bool list_mover::add_pair(lane &on, direction dir, char *local, const remote_key &key,
                          const remote_key::note &note, uint64_t remote, uint64_t length) noexcept {
    if (on.open == nullptr || note.user != on.open->number) {
        return false;
    }
    list &open = *on.open;
    if (open.num_pairs == 0 || open.is_full() || length > block_pair::best_length ||
        open.bytes + length >= open.most_bytes ||
        open.completions.size() == open.completions.capacity()) {
        return false;
    }
    char *there = note.mapped + (remote - key.base());
    const bool puts = dir == direction::put;
    open.add_pair({puts ? local : there, puts ? there : local, length});
    ++(puts ? open.puts : open.gets);
    on.goes_on = true;
    return true;
}

ucs_status_t list_mover::add_block(lane &on, direction dir, char *local, remote_key &key,
                                   remote_key::note &note, uint64_t remote,
                                   uint64_t length) noexcept try {
    const bool by_itself = length >= always_copied_length && on.process == nullptr;
    if (on.open != nullptr && (by_itself || on.open->is_full())) {
        close_list(on);
        if (on.open != nullptr) {
            return UCS_ERR_NO_MEMORY;
        }
    }
    const ucs_status_t opened = on.open == nullptr ? open_list(on, !by_itself) : UCS_OK;
    if (opened != UCS_OK) {
        return opened;
    }
    list &open = *on.open;
    open.reserve_completion();
    const bool puts = dir == direction::put;
    if (note.user != open.number) {
        peer_memory memory = reach(on, key);
        if (!memory) {
            return UCS_ERR_UNREACHABLE;
        }
        if (memory.keeper != nullptr) {
            open.mappings.push_back(memory.keeper);
        }
        note = {open.number, memory.address};
    }
    ++(puts ? open.puts : open.gets);
    char *there = note.mapped + (remote - key.base());
    const block_pair block = {puts ? local : there, puts ? there : local, length};
    if (open.is_empty() && length >= copied_length && on.process == nullptr) {
        open.alone = block;
        open.bytes = length;
        if (by_itself) {
            close_list(on);
        }
        return UCS_OK;
    }
    ucs_status_t status = UCS_OK;
    if (open.alone.length != 0) {
        // What keeps the mapping of the block is among the list's own.
        status = cut_alone(on);
    }
    if (status == UCS_OK) {
        status = append(on, block);
    }
    if (status == UCS_OK && on.open->bytes >= on.open->most_bytes) {
        close_list(on);  // the GPU begins while more is added
    }
    return status;
} catch (const std::bad_alloc &) {
    return UCS_ERR_NO_MEMORY;
}

ucs_status_t list_mover::add(int number, direction dir, char *local, remote_key &key,
                             uint64_t remote, uint64_t length) noexcept {
    if (!key.contains(remote, length)) {
        nc_error("a put or get leads out of the memory of its key");
        return UCS_ERR_INVALID_PARAM;
    }
    note_post();
    if (CUDA_NC_UNLIKELY(is_fenced())) {
        return UCS_ERR_NO_RESOURCE;
    }
    lane *on = lane_of(number, key);
    remote_key::note *note = key.note_for(number);
    if (on == nullptr || note == nullptr) {
        return UCS_ERR_NO_MEMORY;
    }
    if (on->lists.size() >= most_lists && on->process != nullptr) {
        end_lists(*on);
    }
    if (on->lists.size() >= most_lists) {
        return UCS_ERR_NO_RESOURCE;
    }
    if (add_pair(*on, dir, local, key, *note, remote, length)) {
        return UCS_OK;
    }
    const ucs_status_t status = add_block(*on, dir, local, key, *note, remote, length);
    if (status == UCS_OK) {
        on->goes_on = true;
        progress_.start();
    } else if (on->open != nullptr && on->open->is_empty()) {
        put_back_open(*on);
    }
    return status;
}

ucs_status_t list_mover::add(int number, layout_order &order, remote_key &key,
                             abi::uct_completion *completion) noexcept try {
    note_post();
    if (CUDA_NC_UNLIKELY(is_fenced())) {
        return UCS_ERR_NO_RESOURCE;
    }
    lane *on = lane_of(number, key);
    if (on == nullptr) {
        return UCS_ERR_NO_MEMORY;
    }
    make_room(number);
    auto made = std::make_unique<list>();
    peer_memory memory = reach(*on, key);
    if (!memory) {
        return UCS_ERR_UNREACHABLE;
    }
    const ucs_status_t status = on->gpu != nullptr ? on->gpu->create_event(&made->done) : UCS_OK;
    if (status != UCS_OK) {
        return status;
    }
    ++(order.puts ? made->puts : made->gets);
    made->order = order.shared_from_this();
    made->order_remote = memory.address + (order.remote_base - key.base());
    made->bytes = order.local().packed_size();
    if (memory.keeper != nullptr) {
        made->mappings.push_back(memory.keeper);
    }
    if (completion != nullptr) {
        made->completions.push_back(completion);
    }
    if (on->open != nullptr) {
        close_list(*on);
        if (on->open != nullptr) {
            return UCS_ERR_NO_MEMORY;
        }
    }
    made->use(*on);
    made->waits_for = fence_;
    made->number = last_number_ = next_list_number();
    on->lists.push_back(nullptr);
    on->lists.back() = std::move(made);
    progress_.start();
    launch_closed(*on);
    return UCS_OK;
} catch (const std::bad_alloc &) {
    return UCS_ERR_NO_MEMORY;
}

}  // namespace cuda_nc::uct
