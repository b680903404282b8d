// One side of a pipe from the CPU: launches its kernel when there is room on the GPU, sees it
// leave, launches it again while the message is not complete, and ends it.
#pragma once

#include <chrono>
#include <memory>

#include "uct/cuda_nc/protocol/direct.hpp"
#include "uct/cuda_nc/pipe/side.hpp"

namespace cuda_nc::uct {

class traffic;

class pipe_drive {
  public:
    enum class state : uint8_t {
        idle,      // not begun
        waiting,   // for room, for its time, or for the peer
        admitted,  // takes part in the owner's next launch
        running,   // its kernel is in flight
        complete,  // all bytes have been moved; nothing runs
        failed     // nothing runs
    };

    // `trace`: the message's number in timelines.
    pipe_drive(traffic &owner, uint64_t message, uint64_t trace = 0) noexcept
        : owner_(owner), message_(message), trace_(trace) {}
    ~pipe_drive() { stop(); }
    pipe_drive(const pipe_drive &) = delete;
    pipe_drive &operator=(const pipe_drive &) = delete;

    // Moves packed bytes [0, total) of `end` in segments of at most `segment` bytes. `work` has
    // geometry, sequence, ring, flags and credits. A later segment begins when both sides are
    // through with the one before: a sender waits for call(). The side stays the caller's.
    // `in_memory_order`: see direct_end::prepare().
    void begin(pipe_side &side, direct_end &end, gpu::direction dir, const gpu::pipe_work &work,
               uint64_t total, uint64_t segment, bool in_memory_order) noexcept;

    // From begin() on: takes part in the next launch where there is room, else waits for it.
    void try_launch() noexcept;
    // From begin() on: waits for call(), though not for ever.
    void await_call() noexcept { due_ = clock::now() + std::chrono::milliseconds(5); }

    // The peer's kernel has been launched, for segment `number`.
    void call(uint64_t number) noexcept;

    unsigned progress() noexcept;  // how much has happened
    // While it is running: whether progress() will find that its kernel has left.
    bool has_left() const noexcept { return side_->turns.has_left(); }

    // For the owner's launches, while admitted: what is to be launched on the stream; and what
    // became of it.
    ucs_status_t prepare(gpu::stream &on, gpu::pipe_work *work_p) noexcept;
    void launched(const std::shared_ptr<pipe_stream> &on) noexcept;
    void launch_failed(ucs_status_t status) noexcept;
    int device() const noexcept { return side_->device; }
    uint64_t message() const noexcept { return message_; }

    // Ends the kernel; on return it touches no memory. Waits for the GPU.
    void stop() noexcept;

    state now() const noexcept { return state_; }
    uint64_t segment() const noexcept { return segment_; }
    // Whether the peer ought to hear of a launch; once for each.
    bool take_news() noexcept {
        bool news = news_;
        news_ = false;
        return news;
    }
    // The side cannot be used again: its kernel failed.
    bool is_broken() const noexcept { return broken_; }

  private:
    using clock = std::chrono::steady_clock;

    const char *kernel_name() const noexcept {
        return work_.dir == gpu::direction::pack ? "pack kernel"
               : work_.copies                    ? "pull copy"
               : work_.pulls                     ? "pull kernel"
                                                 : "unpack kernel";
    }
    unsigned see_left() noexcept;
    void next_segment() noexcept;
    void wait_for_peer(clock::time_point now) noexcept;
    bool stream_failed() noexcept;
    void stop_kernel() noexcept;
    void give_back_channels() noexcept;
    void release() noexcept;
    void fail() noexcept;

    traffic &owner_;
    const uint64_t message_, trace_;
    pipe_side *side_ = nullptr;
    direct_end *end_ = nullptr;
    gpu::pipe_work work_;
    uint64_t total_ = 0, segment_bytes_ = 0;
    uint64_t segment_ = 0;  // that is under way
    uint64_t called_ = 0;   // the peer's, plus one: highest that it has launched
    uint64_t first_sequence_ = 0;
    state state_ = state::idle;
    bool in_memory_order_ = false;
    bool fresh_call_ = false;  // since our last launch
    bool relaunching_ = false;
    bool news_ = false;
    bool broken_ = false;
    bool marked_ = false;
    unsigned polls_ = 0;
    std::shared_ptr<pipe_stream> stream_;  // while running
    std::unique_ptr<gpu::event> mark_;
    clock::time_point launched_, due_, call_time_;
    std::chrono::microseconds pause_{0};
};

}  // namespace cuda_nc::uct
