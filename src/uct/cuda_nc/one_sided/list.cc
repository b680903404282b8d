#include "uct/cuda_nc/one_sided/lane.hpp"

#include <algorithm>
#include <atomic>
#include <memory>
#include <new>

#include "ucs/base/log.hpp"
#include "ucs/base/settings.hpp"
#include "ucs/gpu/layout_move.hpp"
#include "uct/cuda_nc/counters.hpp"

namespace cuda_nc::uct {
namespace {

// A program's messages, which it waits for one by one, tell by their pace what a kernel that stays
// costs it; and so do few gets at a time, by which UCP receives contiguous messages. Other puts and
// gets have another pace.
constexpr gpu::giving puts_pace = [] {
    gpu::giving how;
    how.counts_in_trials = false;
    return how;
}();

// Blocks that follow each other may belong to several allocations, over which a kernel reads and
// the driver refuses to copy. Set where a copy of several blocks at once has failed: from then on
// lists of several go by kernels.
std::atomic<bool> joined_copies_fail{false};

// Whether `next` follows `block` on both sides.
bool goes_on(const gpu::block_pair &block, const gpu::block_pair &next) noexcept {
    return next.from == block.from + block.length && next.to == block.to + block.length;
}

}  // namespace

void list_mover::list::use(const lane &on) noexcept {
    gpu = on.gpu;
    stream = on.stream.get();
    by_copies = on.by_copies;
}

ucs_status_t list_mover::list::copy_block(const gpu::block_pair &block) const noexcept {
    return by_copies ? stream->copy(block.to, block.from, block.length)
                     : stream->copy_gpu_memory(block.to, block.from, block.length);
}

// One block after the other, without a kernel.
ucs_status_t list_mover::list::copy() const noexcept {
    ucs_status_t copied = UCS_OK;
    for (size_t i = 0; i < num_pairs && copied == UCS_OK;) {
        const size_t first = i;
        gpu::block_pair one = pairs[i++];
        const bool may_join = !joined_copies_fail.load(std::memory_order_relaxed);
        for (; may_join && i < num_pairs && goes_on(one, pairs[i]); ++i) {
            one.length += pairs[i].length;
        }
        copied = copy_block(one);
        if (copied != UCS_OK && i > first + 1) {
            joined_copies_fail.store(true, std::memory_order_relaxed);
            copied = UCS_OK;
            i = first;  // again, one by one
        }
    }
    return copied;
}

// Length 0: it is not one block.
gpu::block_pair list_mover::list::lone_block() const noexcept {
    gpu::block_pair whole = num_pairs != 0 ? pairs[0] : alone;
    for (size_t i = 1; i < num_pairs; ++i) {
        if (!goes_on(whole, pairs[i])) {
            return {};
        }
        whole.length += pairs[i].length;
    }
    return whole;
}

ucs_status_t list_mover::list::launch_pairs() noexcept {
    const gpu::block_pair lone = lone_block();
    ends.count = 0;
    if (lone.length != 0 &&
        (num_pairs <= 1 || !joined_copies_fail.load(std::memory_order_relaxed))) {
        const ucs_status_t copied = copy_block(lone);
        if (copied == UCS_OK || num_pairs <= 1) {
            return copied;
        }
        joined_copies_fail.store(true, std::memory_order_relaxed);
        nc_debug("several blocks cannot be copied as one: lists go by kernels from now on");
    }
    ends.renew();
    gpu::pair_list work;
    work.pairs = pairs;
    work.count = num_pairs;
    work.max_sms = config().max_sms;
    work.ends = &ends;
    if (!by_copies && memory != nullptr && stream->launch(work) == UCS_OK) {
        return UCS_OK;
    }
    ends.renew();
    return copy();
}

gpu::block_pair list_mover::list::next_pair(common_blocks *rest) const noexcept {
    auto at = [](char *base, int64_t displacement) {
        return reinterpret_cast<char *>(reinterpret_cast<uintptr_t>(base) +
                                        static_cast<uintptr_t>(displacement));
    };
    const common_block one = rest->next(UINT64_MAX);
    char *const local = at(order->local_base, one.left);
    char *const remote = at(order_remote, one.right);
    return {order->puts ? local : remote, order->puts ? remote : local, one.length};
}

ucs_status_t list_mover::list::copy_order() const noexcept {
    common_blocks rest(order->local(), order->remote());
    for (gpu::block_pair one = next_pair(&rest); one.length != 0; one = next_pair(&rest)) {
        const ucs_status_t copied = copy_block(one);
        if (copied != UCS_OK) {
            return copied;
        }
    }
    return UCS_OK;
}

ucs_status_t list_mover::list::launch_order() const noexcept {
    const layout_view *local = nullptr, *remote = nullptr;
    const ucs_status_t prepared = order->prepare(*gpu, *stream, &local, &remote);
    if (prepared == UCS_OK) {
        gpu::layout_move work;
        work.alike = order->local().equal(order->remote());
        work.source = order->puts ? local : remote;
        work.target = order->puts ? remote : local;
        work.source_base = order->puts ? order->local_base : order_remote;
        work.target_base = order->puts ? order_remote : order->local_base;
        // Another process's memory may be of the same GPU.
        work.is_local = !work.alike && gpu::platform::instance().device_of(order_remote) ==
                                           gpu->properties().ordinal;
        work.max_sms = config().max_sms;
        if (gpu::launch(*stream, work) == UCS_OK) {
            return UCS_OK;
        }
    }
    return copy_order();
}

ucs_status_t list_mover::list::make_room(gpu::device &where, bool of_pairs) {
    most_pairs = of_pairs ? list_pairs : 0;
    const size_t before_ends = most_pairs * sizeof(gpu::block_pair);
    const ucs_status_t made = where.create_event(&done);
    if (made != UCS_OK || !of_pairs) {
        return made;
    }
    if (where.allocate_pinned(before_ends + gpu::end_words::bytes, &memory) == UCS_OK) {
        pairs = reinterpret_cast<gpu::block_pair *>(memory->address());
        ends.use(memory->address() + before_ends);
    } else {
        nc_debug("no pinned memory for a list of puts and gets: each of its blocks is copied");
        keep_on_host(list_pairs);
    }
    return UCS_OK;
}

void list_mover::list::note_begin(counters::one_sided &kind) noexcept {
    is_launched = true;
    kind.puts.fetch_add(puts, std::memory_order_relaxed);
    kind.gets.fetch_add(gets, std::memory_order_relaxed);
    count(kind.lists);
    if (order != nullptr) {
        count(kind.layout_orders);
    }
}

// Pairs that follow each other on both sides are one order; each is a part of `packed`, which is as
// long as the longest. 0: they are too many.
size_t list_mover::list::describe(gpu::move_order *all, layout_view *packed) const noexcept {
    gpu::block_pair one = num_pairs != 0 ? pairs[0] : alone;
    uint64_t longest = 0;
    size_t described = 0;
    for (size_t i = 1; i <= num_pairs || described == 0; ++i) {
        if (i < num_pairs && goes_on(one, pairs[i])) {
            one.length += pairs[i].length;
            continue;
        }
        if (described == gpu::given_orders::most) {
            return 0;
        }
        gpu::move_order &made = all[described++];
        made.target = packed;
        made.target_base = one.to;
        made.source_base = one.from;
        made.length = one.length;
        made.into_own_memory = puts == 0 && !continues;
        longest = std::max(longest, one.length);
        one = i < num_pairs ? pairs[i] : one;
    }
    *packed = contiguous_view(longest);
    return described;
}

bool list_mover::list::give_order() noexcept {
    const layout_view *local = nullptr, *remote = nullptr;
    if (order->describe(*gpu, &local, &remote) != UCS_OK) {
        return false;
    }
    gpu::move_order one;
    one.target = order->puts ? remote : local;
    one.source = order->local().equal(order->remote()) ? nullptr : order->puts ? local : remote;
    one.source_base = order->puts ? order->local_base : order_remote;
    one.target_base = order->puts ? order_remote : order->local_base;
    one.length = bytes;
    one.into_own_memory = !order->puts;
    return orders.give(*gpu, &one, 1, puts_pace);
}

bool list_mover::list::give(bool is_awaited) noexcept {
    if (bytes > gpu::longest_order || by_copies || was_refused) {
        return false;
    }
    bool given = false;
    if (order != nullptr) {
        given = give_order();
    } else {
        gpu::move_order all[gpu::given_orders::most];
        layout_view packed;
        const size_t described = describe(all, &packed);
        gpu::giving how = puts_pace;
        how.to_present_kernel = described == 1;  // a block by itself is copied where it is refused
        how.counts_in_trials = is_awaited && described == 1 && gets == 1 && puts == 0;
        given = described != 0 && orders.give(*gpu, all, described, how);
    }
    was_refused = !given;
    if (given) {
        note_begin(counters::all().on_gpus);
        count(counters::all().on_gpus.given_lists);
    }
    return given;
}

ucs_status_t list_mover::list::enqueue() noexcept {
    if (stream == nullptr) {
        return UCS_ERR_NO_RESOURCE;  // one has failed, and the driver has given no other
    }
    began = asked = clock::now();
    const ucs_status_t launched = order != nullptr ? launch_order() : launch_pairs();
    ucs_status_t recorded = stream->record(*done);
    if (recorded != UCS_OK) {
        recorded = stream->record(*done);  // nothing else would tell of its end
    }
    if (launched != UCS_OK) {  // some of it may run
        done->synchronize();
    }
    return launched != UCS_OK ? launched : recorded;
}

ucs_status_t list_mover::list::launch() noexcept {
    note_begin(counters::all().on_gpus);
    const ucs_status_t launched = enqueue();
    if (was_refused) {
        gpu::given_orders::launched_instead(*gpu);
    }
    return launched;
}

ucs_status_t list_mover::list::move_order(const host_process &with, bool writes) const noexcept {
    common_blocks rest(order->local(), order->remote());
    ucs_status_t moved = UCS_OK;
    const std::unique_ptr<gpu::block_pair[]> some(new (std::nothrow)
                                                      gpu::block_pair[host_process::most_blocks]);
    if (some == nullptr) {
        return UCS_ERR_NO_MEMORY;
    }
    while (moved == UCS_OK) {
        size_t ready = 0;
        for (; ready < host_process::most_blocks; ++ready) {
            some[ready] = next_pair(&rest);
            if (some[ready].length == 0) {
                break;
            }
        }
        if (ready == 0) {
            break;
        }
        moved = with.move(writes, some.get(), ready);
    }
    return moved;
}

void list_mover::list::move(const host_process &with, bool writes) noexcept {
    note_begin(counters::all().on_host);
    status = order != nullptr ? move_order(with, writes) : with.move(writes, pairs, num_pairs);
    // Those whose memory is there are not to suffer by another.
    for (size_t i = 0; order == nullptr && status == UCS_ERR_INVALID_ADDR && i < num_pairs; ++i) {
        with.move(writes, &pairs[i], 1);
    }
}

// A question to the driver takes 1.5 us, as long as a program needs for several puts, and the
// worker is locked meanwhile. So the longer a list has been under way the less often it is asked:
// a 16th of that time is the latest that its end is seen; of a long block, for which a program
// waits alone, a 128th. Of a kernel that tells of its end itself the driver knows no more than an
// error.
bool list_mover::list::is_to_be_asked() noexcept {
    constexpr auto overdue = std::chrono::microseconds(20);
    const clock::time_point now = clock::now();
    const auto under_way = now - began;
    const auto distance =
        ends.count != 0 ? under_way / 2 + overdue : under_way / (alone.length != 0 ? 128 : 16);
    if (now - asked < distance) {
        return false;
    }
    asked = now;
    return true;
}

ucs_status_t list_mover::list::query() noexcept {
    if (status == UCS_INPROGRESS && is_launched && orders.is_given()) {
        status = orders.query();
        if (UCS_STATUS_IS_ERR(status)) {  // what has been moved is moved again
            nc_debug("orders to a mover have not ended (%s): a list is launched",
                     status_text(status));
            orders.forget();
            const ucs_status_t enqueued = enqueue();
            status = enqueued == UCS_OK ? UCS_INPROGRESS : enqueued;
        }
    } else if (status == UCS_INPROGRESS && is_launched) {
        status = ends.reached() ? UCS_OK : is_to_be_asked() ? done->query() : UCS_INPROGRESS;
    }
    return status;
}

void list_mover::list::await() noexcept {
    while (query() == UCS_INPROGRESS && orders.is_given()) {
    }
    if (status == UCS_INPROGRESS) {
        status = done->synchronize();
    }
}

void list_mover::list::clear() noexcept {
    num_pairs = 0;
    puts = gets = 0;
    bytes = seen_bytes = 0;
    alone = {};
    continues = is_launched = first_ends = was_refused = is_copy = gathers_on = false;
    orders.forget();
    calls_ended = 0;
    mappings.clear();
    completions.clear();
    status = UCS_INPROGRESS;
}

}  // namespace cuda_nc::uct
