#include "uct/cuda_nc/ep.hpp"
#include "uct/cuda_nc/protocol/route_pull.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <new>
#include <optional>

#include "ucs/base/settings.hpp"
#include "ucs/base/trace.hpp"
#include "ucs/gpu/layout_move.hpp"
#include "uct/cuda_nc/counters.hpp"
#include "uct/cuda_nc/engine/stream_pool.hpp"
#include "uct/cuda_nc/pipe/shape.hpp"
#include "uct/cuda_nc/protocol/route_copy.hpp"

namespace cuda_nc::uct {
namespace {

// Bytes beside those wanted that a pull may read, at most; nothing: a pull does not pay at all.
//
// A pipe's second kernel, and what the two kernels tell each other, take as long as 2 MB cross a
// link. Among many messages it is launches that a pull saves, as long as 1.75 MB take: what crosses
// for nothing is others' time, and the reads of long messages keep the link busy the other way too.
// Measured on two H200 (bench/results, messages). Where there is no pipe the bytes would go through
// host memory: then a message is pulled as if it were alone.
//
// Straight is one kernel too, of the sender, which waits for the answer and tells of its end: that
// takes some 4 us, a third of a short message, and does not show in longer ones.
std::optional<uint64_t> most_detour(uint64_t bytes, bool alone,
                                    pull_receiver::instead_of other) noexcept {
    constexpr uint64_t alone_most = 2 << 20, long_message = 4 << 20, launch_bytes = 7 << 18,
                       straight_most = 256 << 10;
    if (other == pull_receiver::instead_of::straight) {
        return bytes <= straight_most ? std::optional<uint64_t>(straight_most) : std::nullopt;
    }
    if (alone || other == pull_receiver::instead_of::slots) {
        return alone_most;
    }
    if (bytes > long_message) {
        return std::nullopt;
    }
    return std::max(bytes / 8, launch_bytes - std::min(bytes, launch_bytes));
}

// Whether there are ports and streams on a GPU, which stay once they are there.
bool can_launch(int device) noexcept {
    static std::array<std::atomic<bool>, max_devices> known{};
    std::atomic<bool> &its = known[static_cast<size_t>(device)];
    if (!its.load(std::memory_order_relaxed) && has_stream(device) && has_ports(device)) {
        its.store(true, std::memory_order_relaxed);
    }
    return its.load(std::memory_order_relaxed);
}

}  // namespace

bool pull_sender::handle(const wire::control &message) noexcept {
    if (message.kind != wire::control_kind::pulled) {
        return false;
    }
    state_ = state::complete;
    return true;
}

std::atomic<uint64_t> &pull_sender::counter() const noexcept {
    return counters::all().sent_by_pull;
}

std::unique_ptr<receive_route> pull_receiver::prepare(receive_context &context,
                                                      const wire::early_offer &offer,
                                                      instead_of other) noexcept {
    const int device = context.device;
    const uint64_t total = context.total;
    gpu::device *gpu = gpu::platform::instance().get_device(device);
    char *base;
    const layout *target = context.buffer->laid_out(&base);
    if (gpu == nullptr || target == nullptr || !uses_pipes() || message_channels(device) == 0 ||
        total > std::min<uint64_t>(config().pull_max, gpu::max_pipe_length)) {
        return nullptr;
    }
    const bool same_gpu = is_on(gpu, offer.offer), alone = context.services.messages.size() == 1;
    const std::optional<uint64_t> most = same_gpu ? UINT64_MAX : most_detour(total, alone, other);
    if (!most) {
        return nullptr;
    }
    source from = reach_source(device, offer, *target, total, *most);
    if (!from) {
        return nullptr;
    }
    gpu::pipe_work work;
    work.pulls = true;
    work.source = from.what != nullptr ? &from.what->view() : nullptr;
    work.source_base = from.base;
    const bool of_list =
        target->view().num_blocks > 1 || (work.source != nullptr && work.source->num_blocks > 1);
    // On one GPU a kernel is as quick as a copy engine, and quicker for longer messages.
    work.copies = !same_gpu && copy_receiver::is_quicker(context, *gpu, work, *target, base);
    std::unique_ptr<pull_receiver> made(
        work.copies ? new (std::nothrow) copy_receiver(context, std::move(from))
                    : new (std::nothrow) pull_receiver(context, std::move(from)));
    if (made == nullptr && work.copies) {
        release_copy(device);
    }
    if (made == nullptr || !can_launch(device)) {
        return nullptr;
    }
    work.geometry = work.copies ? copy_geometry() : gpu::pipe_geometry();
    made->work_ = work;
    made->lone_list_ = of_list && alone;
    return made;
}

pull_receiver::~pull_receiver() {
    pull_receiver::stop();
    release_port(false);
}

// The kernel is launched first: the sender can wait, and must hear of the end after the beginning.
void pull_receiver::answer(uint32_t flags) noexcept {
    begin_pull(work_, work_.source == nullptr, lone_list_);
    drive_.try_launch();
    message_.services.launch_early();
    is_answered_ = true;
    if (!message_.is_silent) {
        wire::control said = {};
        said.kind = wire::control_kind::accept_pull;
        said.flags = flags;
        message_.send(said);
        trace_mark("answer leaves", message_.sender);
    }
}

unsigned pull_receiver::progress() noexcept {
    const unsigned happened = drive_.progress();
    drive_.consume_launch_notice();  // there is no kernel of the sender's to wake
    // Not before the FIN is here: the sender's process may end as soon as its send is complete, and
    // over tcp take a FIN with it that still waits there. A process's FIN to itself comes last.
    const bool may_tell = has_fin_ || (message_.ep != nullptr && message_.ep->is_loopback);
    if (drive_.now() == pipe_drive::state::complete && is_answered_ && may_tell && !is_told_) {
        is_told_ = true;
        message_.send(wire::control_kind::pulled);
    }
    return happened;
}

// The sender must have heard of it before: after the receive has ended the user may close the
// endpoint.
bool pull_receiver::is_through() const noexcept {
    return drive_.now() == pipe_drive::state::complete &&
           !message_.services.control.has_unsent_of(message_.id);
}

// The sender has sent its FIN ahead, and can still send the bytes in fragments.
bool pull_receiver::has_failed() const noexcept {
    return is_answered_ && drive_.now() == pipe_drive::state::failed;
}

// What was to be said may wait for room for ever.
receive_route::rest_of pull_receiver::without_sender() noexcept {
    return drive_.now() == pipe_drive::state::complete ? rest_of::complete
           : drive_.now() == pipe_drive::state::failed ? rest_of::lost
                                                       : rest_of::moving;
}

void pull_receiver::stop() noexcept {
    drive_.stop();
    source_ = {};  // nobody reads there any more
}

void pull_receiver::release(bool) noexcept {
    release_port(false);
}

void pull_receiver::count_received() const noexcept {
    count(counters::all().received_by_pull);
}

}  // namespace cuda_nc::uct
