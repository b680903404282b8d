#include "uct/cuda_nc/pipe/drive.hpp"

#include <algorithm>
#include <utility>

#include "ucs/base/bits.hpp"
#include "ucs/base/log.hpp"
#include "ucs/base/settings.hpp"
#include "ucs/base/trace.hpp"
#include "ucs/gpu/layout_move.hpp"
#include "uct/cuda_nc/counters.hpp"

namespace cuda_nc::uct {
namespace {

using std::chrono::microseconds;

// Pause between launches while the peer is silent; it doubles each time.
constexpr auto first_pause = microseconds(100), longest_pause = microseconds(50000);
// A kernel that runs longer may have failed: its stream is asked.
constexpr auto doubt = std::chrono::milliseconds(5);

}  // namespace

void pipe_drive::begin(user_buffer &buffer, gpu::direction dir, const gpu::pipe_work &work,
                       uint64_t total, uint64_t segment, bool in_memory_order) noexcept {
    buffer_ = &buffer;
    work_ = work;
    work_.dir = dir;
    work_.packed_offset = 0;
    work_.length = std::min(total, segment);
    work_.patience_us = std::min(config().pipe_patience, 100000u);
    total_ = total;
    segment_bytes_ = segment;
    in_memory_order_ = in_memory_order;
    pause_ = first_pause;
    state_ = state::waiting;
    due_ = {};
}

void pipe_drive::begin(pipe_port &port, user_buffer &buffer, gpu::direction dir,
                       const gpu::pipe_work &work, uint64_t total, uint64_t segment,
                       bool in_memory_order) noexcept {
    begin(buffer, dir, work, total, segment, in_memory_order);
    use_port(port);
}

void pipe_drive::begin_pull(user_buffer &buffer, const gpu::pipe_work &work, uint64_t total,
                            bool in_memory_order, bool lone_list) noexcept {
    begin(buffer, gpu::direction::unpack, work, total, total, in_memory_order);
    owns_port_ = true;
    lone_list_ = lone_list;
    asks_mover_ = scheduler_.may_take(total);
}

// Of a pull that is to be launched. From then on new messages are cut by what is left.
void pipe_drive::choose_geometry() noexcept {
    const int on = device();
    if (work_.geometry.channels == 0) {
        const unsigned most = std::max(message_channels(on), 1u);
        work_.geometry =
            gpu::choose_pull_geometry(total_, share_of_channels(on, total_, most), lone_list_);
    }
    if (owns_port_ && promised_ == 0) {
        promised_ = work_.geometry.channels;
        promise_channels(on, promised_);
    }
}

void pipe_drive::use_port(pipe_port &port) noexcept {
    port_ = &port;
    work_.state = port.state;
    work_.report = port.report;
    first_sequence_ = work_.sequence;
    port.sequence = work_.sequence + divide_up(total_, segment_bytes_) * gpu::pipe_sequence_step;
}

bool pipe_drive::acquire_resources() noexcept {
    if (port_ == nullptr) {
        pipe_port *port = acquire_port(device(), port_use::pull);
        if (port == nullptr) {
            return false;
        }
        work_.sequence = port->sequence;
        use_port(*port);
    }
    return true;
}

// Nobody but our kernel writes to it, and that has left.
void pipe_drive::release_own_port() noexcept {
    if (owns_port_ && port_ != nullptr) {
        broken_ ? retire_port(port_) : release_port(port_);
        port_ = nullptr;
    }
    if (promised_ != 0) {
        end_promise(device(), std::exchange(promised_, 0));
    }
}

void pipe_drive::wait_until(clock::time_point when) noexcept {
    due_ = when;
    looks_.look_at(message_, when);
}

void pipe_drive::begin_trace() noexcept {
    trace_begin(kernel_name(), trace_, work_.length);
}

void pipe_drive::try_launch() noexcept {
    if (state_ != state::waiting) {
        return;
    }
    if (asks_mover_) {
        const scheduler::admission admitted = scheduler_.order(*this);
        if (admitted == scheduler::admission::waits) {
            return;
        }
        asks_mover_ = false;
        if (admitted == scheduler::admission::admitted) {
            holds_order_ = true;
            state_ = state::ready;
            return;
        }
    }
    choose_geometry();
    switch (scheduler_.admit(*this, work_.dir, work_.geometry.channels)) {
        case scheduler::admission::waits:
            return;
        case scheduler::admission::refused:
            nc_debug("a pull finds no port");
            fail();
            return;
        case scheduler::admission::admitted:
            break;
    }
    holds_channels_ = true;
    begin_trace();
    state_ = state::ready;
    if (!scheduler_.launch(*this)) {
        launch_failed(UCS_ERR_NO_MEMORY);
    }
}

ucs_status_t pipe_drive::prepare(gpu::stream &on, gpu::pipe_work *work_p) noexcept {
    port_->turns.begin(&work_);
    work_.resumes = relaunching_;
    ucs_status_t status = buffer_->prepare(work_, on, in_memory_order_);
    *work_p = work_;
    return status;
}

void pipe_drive::launched(const std::shared_ptr<pooled_stream> &on) noexcept {
    trace_mark("launched", trace_);
    port_->turns.launched(work_);
    stream_ = on;
    state_ = state::running;
    refusals_ = 0;
    launched_at_ = clock::now();
    if (relaunching_) {
        count(counters::all().relaunches);
    }
    // A peer that has told of its launch just now still waits; the kernel of another may have left.
    bool awaited =
        heard_since_launch_ && launched_at_ - heard_at_ <= microseconds(work_.patience_us / 2);
    bool at_once = work_.dir == gpu::direction::unpack && segment_ == 0 && !relaunching_;
    owes_launch_notice_ = !awaited && !(at_once && !heard_since_launch_);
    relaunching_ = true;
    heard_since_launch_ = marked_ = false;
    polls_ = 0;
}

bool pipe_drive::describe(gpu::move_order *order_p) noexcept {
    if (buffer_->describe(work_, in_memory_order_) != UCS_OK) {
        return false;  // a launch lets its stream wait for what is missing
    }
    *order_p = {work_.source,        work_.source_base, work_.layout,         work_.base,
                work_.packed_offset, work_.length,      work_.into_own_memory};
    return true;
}

void pipe_drive::order_refused() noexcept {
    end_order();
    state_ = state::waiting;
    try_launch();
    if (state_ == state::failed) {
        looks_.look_soon(message_);
    }
}

void pipe_drive::ordered(gpu::mover &by, gpu::mover::ticket which) noexcept {
    begin_trace();
    trace_mark("order given", trace_);
    mover_ = &by;
    ticket_ = which;
    state_ = state::running;
    refusals_ = 0;
    launched_at_ = clock::now();
    polls_ = 0;
}

void pipe_drive::release_order() noexcept {
    scheduler_.kernel_left(*this);
    trace_end(kernel_name(), trace_);
    end_order();
    mover_->release(ticket_);
    mover_ = nullptr;
}

unsigned pipe_drive::handle_order_end(ucs_status_t status) noexcept {
    release_order();
    if (status == UCS_OK) {
        next_segment();
    } else if (status == UCS_ERR_CANCELED) {
        due_ = {};
        order_refused();
    } else {
        nc_debug("an order to a mover has failed: %s", status_text(status));
        fail();
    }
    return 1;
}

// The order is overdue.
unsigned pipe_drive::doubt_order() noexcept {
    const ucs_status_t status = mover_->ask(ticket_);
    return status == UCS_INPROGRESS ? 0 : handle_order_end(status);
}

// Nothing was enqueued: it is tried again, a few times.
void pipe_drive::launch_failed(ucs_status_t status) noexcept {
    constexpr unsigned most_refusals = 8;
    nc_debug("a pipe's kernel cannot be launched: %s", status_text(status));
    end_admission();
    if (status == UCS_ERR_UNSUPPORTED || ++refusals_ == most_refusals) {
        fail();
        return;
    }
    state_ = state::waiting;
    wait_until(clock::now() + first_pause * (1 << refusals_));
}

void pipe_drive::peer_launched(uint64_t number) noexcept {
    if (state_ == state::idle || number > total_ / segment_bytes_) {
        return;
    }
    peer_segments_ = std::max(peer_segments_, number + 1);
    heard_since_launch_ = true;
    heard_at_ = clock::now();
    pause_ = first_pause;
    if (state_ == state::waiting) {
        due_ = {};
        progress();
    }
}

// An event is recorded only if the kernel is overdue: recording costs time.
bool pipe_drive::stream_failed() noexcept {
    if (stream_->is_finished()) {
        return !has_left();
    }
    if (!marked_) {
        if (mark_ == nullptr) {
            mark_ = events_.acquire(device());
        }
        if (mark_ == nullptr) {
            return false;  // there may be an event later
        }
        if (stream_->get().record(*mark_) != UCS_OK) {
            return true;
        }
        marked_ = true;
    }
    ucs_status_t status = mark_->query();
    return status != UCS_INPROGRESS && (status != UCS_OK || !has_left());
}

void pipe_drive::end_admission() noexcept {
    trace_end(kernel_name(), trace_);
    if (std::exchange(holds_channels_, false)) {
        scheduler_.end_admission(device(), work_.dir, work_.geometry.channels);
    }
}

void pipe_drive::end_order() noexcept {
    if (std::exchange(holds_order_, false)) {
        scheduler_.end_order(device());
    }
}

// The kernel has left: the scheduler hears of it, and the stream returns.
void pipe_drive::release_launch() noexcept {
    scheduler_.kernel_left(*this);
    end_admission();
    if (mark_ != nullptr) {
        events_.release(device(), std::move(mark_));
    }
    if (broken_) {
        stream_->spoil();
    }
    stream_.reset();
}

void pipe_drive::fail() noexcept {
    scheduler_.stop_waiting(message_);
    release_own_port();
    state_ = state::failed;
}

void pipe_drive::wait_for_peer(clock::time_point now) noexcept {
    state_ = state::waiting;
    if (heard_since_launch_) {
        due_ = {};
        looks_.look_soon(message_);
        return;
    }
    wait_until(now + pause_);
    pause_ = std::min(2 * pause_, microseconds(longest_pause));
}

void pipe_drive::next_segment() noexcept {
    work_.packed_offset += work_.length;
    if (work_.packed_offset == total_) {
        state_ = state::complete;
        release_own_port();
        return;
    }
    ++segment_;
    heard_since_launch_ = peer_segments_ > segment_;  // of this segment, not of the one before
    work_.length = std::min(total_ - work_.packed_offset, segment_bytes_);
    work_.sequence = first_sequence_ + segment_ * gpu::pipe_sequence_step;
    relaunching_ = false;
    pause_ = first_pause;
    state_ = state::waiting;
    due_ = {};
}

unsigned pipe_drive::handle_left() noexcept {
    release_launch();
    if (port_->turns.is_through()) {
        next_segment();
        if (state_ == state::waiting) {
            progress();
        }
    } else {
        ++left_in_vain_;
        wait_for_peer(clock::now());
    }
    return 1;
}

unsigned pipe_drive::progress() noexcept {
    if (state_ == state::running) {
        const ucs_status_t ordered = mover_ != nullptr ? mover_->state(ticket_) : UCS_INPROGRESS;
        if (ordered != UCS_INPROGRESS) {
            return handle_order_end(ordered);
        }
        if (mover_ == nullptr && has_left()) {
            return handle_left();
        }
        constexpr unsigned polls_between_doubts = 16;  // among many messages polls are rare
        if (++polls_ % polls_between_doubts != 0 || clock::now() - launched_at_ <= doubt) {
            return 0;
        }
        if (mover_ != nullptr) {
            return doubt_order();
        }
        if (stream_failed()) {
            nc_debug("a pipe's kernel failed");
            broken_ = true;
            release_launch();
            fail();
            return 1;
        }
        return 0;
    }
    if (state_ != state::waiting) {
        return 0;
    }
    // A ring is filled again only when the receiver is through with the segment before.
    bool peer_is_behind =
        work_.dir == gpu::direction::pack && segment_ != 0 && peer_segments_ <= segment_;
    if (peer_is_behind || (due_ != clock::time_point() && clock::now() < due_)) {
        return 0;
    }
    try_launch();
    return state_ != state::waiting ? 1 : 0;
}

// The sender puts a chunk into a place of the ring when our kernel has taken the one before: only
// the last chunks of each channel, one for each place, can still be there. Those that our kernel
// took before it left are copied once more.
ucs_status_t pipe_drive::empty_ring() noexcept {
    const gpu::pipe_geometry &g = work_.geometry;
    if (broken_ || work_.packed_offset + work_.length != total_) {
        return UCS_ERR_IO_ERROR;
    }
    std::unique_ptr<gpu::event> done = events_.acquire(device());
    ucs_status_t status = done != nullptr ? UCS_OK : UCS_ERR_NO_RESOURCE;
    for (uint32_t channel = 0; channel < g.channels && status == UCS_OK; ++channel) {
        const uint32_t chunks = gpu::pipe_channel_chunks(work_.length, g, channel);
        for (uint32_t k = chunks - std::min(chunks, g.depth); k < chunks && status == UCS_OK; ++k) {
            const uint64_t begin = (uint64_t{k} * g.channels + channel) * g.chunk_size;
            char *place = work_.ring + (uint64_t{channel} * g.depth + k % g.depth) * g.chunk_size;
            status = buffer_->enqueue_copies(work_.packed_offset + begin,
                                             std::min<uint64_t>(g.chunk_size, work_.length - begin),
                                             place, in_memory_order_, *done);
        }
    }
    if (status == UCS_OK) {
        status = done->synchronize();
    }
    if (done != nullptr) {
        events_.release(device(), std::move(done));
    }
    return status;
}

// Waits for the order: it is short, and its kernel waits for nobody.
void pipe_drive::await_order() noexcept {
    for (unsigned polls = 1; !has_left(); ++polls) {
        if (polls % 1024 == 0 && clock::now() - launched_at_ >= doubt &&
            mover_->ask(ticket_) != UCS_INPROGRESS) {
            break;
        }
    }
    release_order();
}

void pipe_drive::stop_kernel() noexcept {
    ucs_status_t told = write_abort(*port_, work_.sequence);
    if (told != UCS_OK) {
        nc_debug("a pipe's kernel is not told to leave, and does in a while");
    }
    for (unsigned polls = 1; !has_left(); ++polls) {
        if (polls % 1024 != 0 || clock::now() - launched_at_ < doubt) {
            continue;
        }
        if (!marked_ && mark_ == nullptr) {
            mark_ = events_.acquire(device());
        }
        if (mark_ == nullptr) {
            stream_->finish();
            broken_ = !has_left();
            break;
        }
        if (stream_failed()) {
            broken_ = true;
            break;
        }
    }
    release_launch();
}

void pipe_drive::stop() noexcept {
    if (state_ == state::ready) {
        scheduler_.cancel(*this);
        if (holds_channels_) {
            end_admission();
        }
        end_order();
    } else if (state_ == state::running) {
        mover_ != nullptr ? await_order() : stop_kernel();
    }
    if (state_ == state::ready || state_ == state::running || state_ == state::waiting) {
        fail();
    }
}

}  // namespace cuda_nc::uct
