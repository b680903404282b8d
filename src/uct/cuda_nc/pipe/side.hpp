// What one side of a pipe needs on its GPU beside the ring: kept in pools, one for each GPU, and
// lent to one message at a time. Thread safe.
#pragma once

#include <cstdint>
#include <memory>

#include "ucs/gpu/device.hpp"

namespace cuda_nc::uct {

constexpr int max_devices = 64;  // those with higher ordinals have no pipes
constexpr unsigned max_message_channels = gpu::max_pipe_channels;
constexpr size_t pipe_words_bytes = max_message_channels * gpu::pipe_word_stride;

// A message is cut in segments of at least so many bytes.
constexpr uint64_t least_segment = 64 << 10;

// Sequences beyond are refused: a hostile peer's could leave none for those who come after.
constexpr uint64_t last_sequence = uint64_t{1} << 62;

struct pipe_side {
    int device;
    char *words;              // flags or credits; the peer's kernel writes there
    uint64_t words_offset;    // in the allocation, as a peer sees it
    gpu::ipc_handle *handle;  // of the allocation
    gpu::pipe_state *state;
    gpu::pipe_report *report;                     // pinned
    uint64_t *abort_source;                       // pinned
    uint64_t sequence = gpu::pipe_sequence_step;  // the least that the next message may have
    gpu::pipe_turns turns;
};

// Null: out of resources, or the GPU has no pipes.
pipe_side *take_side(int device) noexcept;

// Neither our kernel nor the peer's touches it any more.
void give_side(pipe_side *back) noexcept;

// It cannot be used again: what it belongs to has failed. Its memory stays with the process.
void retire_side(pipe_side *broken) noexcept;

// A stream for one kernel in flight, which several sides share; it goes back to its pool with the
// last of them.
class pipe_stream {
  public:
    explicit pipe_stream(int device) noexcept : device_(device) {}
    ~pipe_stream();
    pipe_stream(const pipe_stream &) = delete;
    pipe_stream &operator=(const pipe_stream &) = delete;

    gpu::stream &get() noexcept { return *stream_; }
    // Its work failed: it is not used again.
    void spoil() noexcept { spoilt_ = true; }
    // Waits for its work; there is no stream any more.
    void finish() noexcept { stream_.reset(); }
    bool is_finished() const noexcept { return stream_ == nullptr; }

  private:
    friend std::shared_ptr<pipe_stream> take_stream(int device, bool *later_p) noexcept;

    int device_;
    std::unique_ptr<gpu::stream> stream_;
    bool lent_ = false, spoilt_ = false;
};
// Null: out of resources; *later_p: others are lent, of which one will come back when the kernels
// on it have left.
std::shared_ptr<pipe_stream> take_stream(int device, bool *later_p) noexcept;
// Whether there is one, now or later.
bool has_stream(int device) noexcept;

// Tells the side's kernel to leave message `sequence`; beside all streams.
ucs_status_t write_abort(pipe_side &side, uint64_t sequence) noexcept;

size_t sides_lent() noexcept;  // for tests

}  // namespace cuda_nc::uct
