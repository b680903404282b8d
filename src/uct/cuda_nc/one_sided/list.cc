#include "uct/cuda_nc/one_sided/list.hpp"

#include <memory>
#include <new>

#include "ucs/base/settings.hpp"
#include "ucs/gpu/layout_move.hpp"
#include "uct/cuda_nc/counters.hpp"

namespace cuda_nc::uct {

// One block after the other, without a kernel.
ucs_status_t list_mover::list::copy(gpu::stream &stream) const noexcept {
    ucs_status_t copied = UCS_OK;
    for (size_t i = 0; i < num_pairs && copied == UCS_OK; ++i) {
        copied = stream.copy(pairs[i].to, pairs[i].from, pairs[i].length);
    }
    return copied;
}

ucs_status_t list_mover::list::launch_pairs(gpu::stream &stream, bool by_copies) noexcept {
    ends.renew();
    if (alone.length != 0) {
        return stream.copy(alone.to, alone.from, alone.length);
    }
    gpu::pair_list work;
    work.pairs = pairs;
    work.count = num_pairs;
    work.max_sms = config().max_sms;
    work.ends = &ends;
    const ucs_status_t launched = by_copies ? UCS_ERR_UNSUPPORTED : stream.launch(work);
    if (launched == UCS_OK) {
        return UCS_OK;
    }
    ends.renew();
    return copy(stream);
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

ucs_status_t list_mover::list::copy_order(gpu::stream &stream) const noexcept {
    common_blocks rest(order->local(), order->remote());
    for (gpu::block_pair one = next_pair(&rest); one.length != 0; one = next_pair(&rest)) {
        const ucs_status_t copied = stream.copy(one.to, one.from, one.length);
        if (copied != UCS_OK) {
            return copied;
        }
    }
    return UCS_OK;
}

ucs_status_t list_mover::list::launch_order(gpu::device &gpu, gpu::stream &stream) const noexcept {
    const layout_view *local = nullptr, *remote = nullptr;
    const ucs_status_t prepared = order->prepare(gpu, stream, &local, &remote);
    if (prepared == UCS_OK) {
        gpu::layout_move work;
        work.alike = order->local().equal(order->remote());
        work.source = order->puts ? local : remote;
        work.target = order->puts ? remote : local;
        work.source_base = order->puts ? order->local_base : order_remote;
        work.target_base = order->puts ? order_remote : order->local_base;
        work.max_sms = config().max_sms;
        if (gpu::launch(stream, work) == UCS_OK) {
            return UCS_OK;
        }
    }
    return copy_order(stream);
}

ucs_status_t list_mover::list::make_room(gpu::device &gpu) noexcept {
    constexpr size_t of_pairs = list_pairs * sizeof(gpu::block_pair);
    ucs_status_t made = gpu.allocate_pinned(of_pairs + gpu::end_words::bytes, &memory);
    if (made == UCS_OK) {
        made = gpu.create_event(&done);
    }
    if (made == UCS_OK) {
        pairs = reinterpret_cast<gpu::block_pair *>(memory->address());
        ends.use(memory->address() + of_pairs);
    }
    return made;
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

ucs_status_t list_mover::list::launch(gpu::device &gpu, gpu::stream &stream,
                                      bool by_copies) noexcept {
    note_begin(counters::all().on_gpus);
    began = asked = clock::now();
    const ucs_status_t launched =
        order != nullptr ? launch_order(gpu, stream) : launch_pairs(stream, by_copies);
    const ucs_status_t recorded = stream.record(*done);
    if (launched != UCS_OK) {  // some of it may run
        done->synchronize();
    }
    return launched != UCS_OK ? launched : recorded;
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
// a 16th of that time is the latest that its end is seen. Of a kernel that tells of its end itself
// the driver knows no more than an error.
bool list_mover::list::is_to_be_asked() noexcept {
    constexpr auto overdue = std::chrono::microseconds(20);
    const clock::time_point now = clock::now();
    const auto under_way = now - began;
    const auto distance = ends.count != 0 ? under_way / 2 + overdue : under_way / 16;
    if (now - asked < distance) {
        return false;
    }
    asked = now;
    return true;
}

ucs_status_t list_mover::list::query() noexcept {
    if (status == UCS_INPROGRESS && is_launched) {
        status = ends.reached() ? UCS_OK : is_to_be_asked() ? done->query() : UCS_INPROGRESS;
    }
    return status;
}

void list_mover::list::clear() noexcept {
    num_pairs = 0;
    puts = gets = 0;
    bytes = seen_bytes = 0;
    alone = {};
    continues = is_launched = first_ends = false;
    calls_ended = 0;
    mappings.clear();
    completions.clear();
    status = UCS_INPROGRESS;
}

}  // namespace cuda_nc::uct
