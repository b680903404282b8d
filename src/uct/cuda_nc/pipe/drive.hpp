// One end of a pipe, or a pull, as the CPU sees it: launches its kernel when there is room on the
// GPU, sees it leave, launches it again while the message is not complete, and ends it.
//
// Used with UCX's worker locked. Only stop() waits for the GPU.
#pragma once

#include <chrono>
#include <memory>

#include "ucs/base/tick_clock.hpp"
#include "uct/cuda_nc/engine/agenda.hpp"
#include "uct/cuda_nc/engine/event_pool.hpp"
#include "uct/cuda_nc/engine/launch_client.hpp"
#include "uct/cuda_nc/engine/scheduler.hpp"
#include "uct/cuda_nc/engine/stream_pool.hpp"
#include "uct/cuda_nc/pipe/port.hpp"
#include "uct/cuda_nc/user_buffer.hpp"

namespace cuda_nc::uct {

class pipe_drive final : public launch_client {
  public:
    enum class state : uint8_t {
        idle,      // begin() was not called
        waiting,   // for room on the GPU, for its time, or for the peer
        ready,     // takes part in the scheduler's next orders or launch
        running,   // its kernel is in flight, or the mover has its order
        complete,  // all bytes have been moved; nothing runs
        failed     // nothing runs
    };

    // `message`: the message's number; `trace`: its number in timelines.
    pipe_drive(scheduler &schedule, event_pool &events, agenda &looks, uint64_t message,
               uint64_t trace = 0) noexcept
        : scheduler_(schedule), events_(events), looks_(looks), message_(message), trace_(trace) {}
    ~pipe_drive() { stop(); }
    pipe_drive(const pipe_drive &) = delete;
    pipe_drive &operator=(const pipe_drive &) = delete;

    // Moves packed bytes [0, total) of `buffer` in segments of at most `segment` bytes. `work` has
    // geometry, sequence, ring, flags and credits. A segment begins when sender and receiver are
    // through with the one before: a sender waits for peer_launched(). The port stays the caller's.
    // `in_memory_order`: see user_buffer::prepare().
    void begin(pipe_port &port, user_buffer &buffer, gpu::direction dir, const gpu::pipe_work &work,
               uint64_t total, uint64_t segment, bool in_memory_order) noexcept;
    // The same for a pull of `total` bytes, which is an order to the mover where that takes it.
    // Where it is launched its port is acquired for as long as the kernel runs, so that any number
    // of pulls may wait. work.geometry without channels: the drive chooses, when it is launched, as
    // for one of several messages. `lone_list`: see choose_pull_geometry().
    void begin_pull(user_buffer &buffer, const gpu::pipe_work &work, uint64_t total,
                    bool in_memory_order, bool lone_list = false) noexcept;

    // From begin() on: takes part in the next orders, or in the next launch if there is room, else
    // waits for room.
    void try_launch() noexcept;
    // From begin() on: waits for peer_launched() before the first launch, 5 ms at most.
    void await_peer() noexcept { wait_until(clock::now() + std::chrono::milliseconds(5)); }

    // The peer says that its kernel has been launched, for segment `number`.
    void peer_launched(uint64_t number) noexcept;

    unsigned progress() noexcept;  // how much has happened

    // After state::failed without a kernel that failed: takes the segment's bytes out of the ring
    // by copies. The sender must have put all of them there. Waits for the GPU.
    ucs_status_t empty_ring() noexcept;

    // Stops the kernel; on return it touches no memory. Waits for the GPU.
    void stop() noexcept;

    state now() const noexcept { return state_; }
    uint64_t segment() const noexcept { return segment_; }
    // Whether the peer should be told of a launch; true once for each launch.
    bool consume_launch_notice() noexcept {
        bool owed = owes_launch_notice_;
        owes_launch_notice_ = false;
        return owed;
    }
    // How many kernels have left before their segment was complete: the peer was silent.
    uint64_t left_in_vain() const noexcept { return left_in_vain_; }
    // The port cannot be used again: its kernel failed.
    bool is_broken() const noexcept { return broken_; }

    // launch_client
    int device() const noexcept override { return buffer_->device(); }
    uint64_t message() const noexcept override { return message_; }
    bool may_share() const noexcept override {
        return holds_order_ ? total_ <= gpu::longest_of_many : !work_.copies;
    }
    bool acquire_resources() noexcept override;
    ucs_status_t prepare(gpu::stream &on, gpu::pipe_work *work_p) noexcept override;
    void launched(const std::shared_ptr<pooled_stream> &on) noexcept override;
    void launch_failed(ucs_status_t status) noexcept override;
    bool describe(gpu::move_order *order_p) noexcept override;
    void ordered(gpu::mover &by, gpu::mover::ticket which) noexcept override;
    void order_refused() noexcept override;
    bool has_left() const noexcept override {
        return mover_ != nullptr ? mover_->state(ticket_) != UCS_INPROGRESS
                                 : port_->turns.has_left();
    }

  private:
    using clock = tick_clock;

    const char *kernel_name() const noexcept {
        return work_.dir == gpu::direction::pack ? "pack kernel"
               : work_.copies                    ? "pull copy"
               : work_.pulls                     ? "pull kernel"
                                                 : "unpack kernel";
    }
    void begin(user_buffer &buffer, gpu::direction dir, const gpu::pipe_work &work, uint64_t total,
               uint64_t segment, bool in_memory_order) noexcept;
    void choose_geometry() noexcept;
    void use_port(pipe_port &port) noexcept;
    void release_own_port() noexcept;
    void wait_until(clock::time_point when) noexcept;
    unsigned handle_left() noexcept;
    unsigned handle_order_end(ucs_status_t status) noexcept;
    unsigned doubt_order() noexcept;
    void release_order() noexcept;
    void next_segment() noexcept;
    void wait_for_peer(clock::time_point now) noexcept;
    bool stream_failed() noexcept;
    void await_order() noexcept;
    void stop_kernel() noexcept;
    void begin_trace() noexcept;
    void end_admission() noexcept;
    void end_order() noexcept;
    void release_launch() noexcept;
    void fail() noexcept;

    scheduler &scheduler_;
    event_pool &events_;
    agenda &looks_;
    const uint64_t message_, trace_;
    pipe_port *port_ = nullptr;
    user_buffer *buffer_ = nullptr;
    gpu::pipe_work work_;
    uint64_t total_ = 0, segment_bytes_ = 0;
    uint64_t segment_ = 0;        // that is under way
    uint64_t peer_segments_ = 0;  // the highest that the peer has launched, plus one
    uint64_t first_sequence_ = 0;
    uint64_t left_in_vain_ = 0;
    state state_ = state::idle;
    bool in_memory_order_ = false;
    bool owns_port_ = false;           // of a pull: the port is acquired and released here
    bool heard_since_launch_ = false;  // of a launch of the peer's
    bool relaunching_ = false;
    bool owes_launch_notice_ = false;
    bool broken_ = false;
    bool marked_ = false;  // mark_ was recorded behind the kernel
    unsigned polls_ = 0;
    unsigned refusals_ = 0;                  // launches that failed, one after the other
    std::shared_ptr<pooled_stream> stream_;  // while running
    std::unique_ptr<gpu::event> mark_;
    gpu::mover *mover_ = nullptr;  // while running: it has the order
    gpu::mover::ticket ticket_ = 0;
    bool asks_mover_ = false;  // before it is launched; decided once: it waits in one line alone
    bool lone_list_ = false;
    bool holds_channels_ = false;
    bool holds_order_ = false;  // admitted as one
    unsigned promised_ = 0;     // channels, of a pull
    clock::time_point launched_at_, due_, heard_at_;
    std::chrono::microseconds pause_{0};
};

}  // namespace cuda_nc::uct
