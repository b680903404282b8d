// A pipe moves one message between two GPUs whose kernels wait for each other, not for their CPUs.
//
// The sender's kernel gathers the message chunk by chunk into a ring in the receiver's memory and
// raises a flag there; the receiver's kernel scatters each chunk and returns a credit by a store
// into the sender's memory. Both are launched once. Chunk c belongs to channel c % channels; a
// channel has a thread block on each side and `depth` slots of the ring to itself.
//
// Flags and credits are never cleared: each value is `sequence` plus a number of chunks, and a
// later message over the same words has a larger sequence, so that a stale value never counts. No
// credit is returned for the last `depth` chunks of a channel: nothing touches the sender's memory
// after its kernel has left.
//
// A kernel that sees no progress for `patience_us` stores its position and leaves (ends). Launched
// again, it resumes there; so neither a busy peer nor a dead one holds a GPU.
//
// A pull needs the receiver's kernel alone, which gathers each chunk from the sender's memory and
// scatters it. It waits for nobody. Where both sides are rows (box.hpp) a copy engine pulls them
// without a kernel, in the time of contiguous memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "ucs/base/bits.hpp"
#include "ucs/gpu/direction.hpp"
#include "ucs/layout/layout_view.hpp"

namespace cuda_nc::gpu {

constexpr uint32_t max_pipe_channels = 256;
constexpr uint32_t many_pipe_channels = 64;                 // most of a GPU, for one message
constexpr size_t pipe_word_stride = 128;                    // bytes between words of two channels
constexpr uint64_t pipe_sequence_step = uint64_t{1} << 32;  // sequences are multiples of it
constexpr uint64_t max_pipe_length = uint64_t{512} << 20;   // bytes of a message or segment
constexpr uint32_t min_pipe_chunk = 16, max_pipe_chunk = 1u << 24;
constexpr uint32_t max_pipe_sides = 4;         // of one launch
constexpr uint32_t max_pipe_groups = 16;       // of channels
constexpr uint32_t max_pull_chunk = 32 << 10;  // so that a multiprocessor holds several chunks

// What both sides must agree on.
struct pipe_geometry {
    uint32_t channels = 0;    // 1 to max_pipe_channels
    uint32_t chunk_size = 0;  // bytes, a multiple of 16
    uint32_t depth = 0;       // slots of a channel, at least 1

    bool valid() const noexcept {
        return channels >= 1 && channels <= max_pipe_channels && depth >= 1 && depth <= 1024 &&
               chunk_size >= min_pipe_chunk && chunk_size <= max_pipe_chunk && chunk_size % 16 == 0;
    }
    uint64_t ring_size() const noexcept { return uint64_t{channels} * depth * chunk_size; }
    size_t words_size() const noexcept { return channels * pipe_word_stride; }  // flags, or credits
};

// How many chunks of a message of `length` bytes channel `channel` moves.
CUDA_NC_HD uint32_t pipe_channel_chunks(uint64_t length, const pipe_geometry &g, uint32_t channel) {
    auto all = static_cast<uint32_t>(divide_up(length, g.chunk_size));
    return all > channel ? (all - channel - 1) / g.channels + 1 : 0;
}

// One side's private words, in its GPU's memory, zero before the first use.
struct pipe_state {
    uint64_t abort;     // sequence of a message whose kernel is to leave soon
    uint64_t arrivals;  // of a large group: channels that have left; high half: complete ones
    uint64_t position[max_pipe_channels];  // sequence + chunks done
};

// What a side reports to its CPU, in pinned memory, zero before the first use: for each group of
// channels, pipe_left() of the last launch that it has left. From then on the group touches no
// memory. Each has a cache line of its own: a GPU's write to a line that a CPU polls takes longer.
struct pipe_report {
    struct alignas(64) group {
        uint16_t left;
    } groups[max_pipe_groups];
};

// Channels that report together. Each of a few channels reports alone, because waiting for each
// other takes a microsecond; many form one group.
CUDA_NC_HD uint32_t pipe_group_size(uint32_t channels) {
    return channels <= max_pipe_groups ? 1 : channels;
}

constexpr uint64_t pipe_left_period = (1 << 15) - 1;  // launches until a value repeats

// What a group reports when it leaves: the launch, and whether all its chunks have been moved (it
// is through). One word, so that one store says both. Never 0.
CUDA_NC_HD uint16_t pipe_left(uint64_t launch_number, bool through) {
    return static_cast<uint16_t>((launch_number % pipe_left_period + 1) * 2 + (through ? 1 : 0));
}

// One launch of one side of a pipe. The layouts are read during the call alone.
struct pipe_work {
    direction dir{};                      // pack: the sender; unpack: the receiver
    const layout_view *layout = nullptr;  // as in a transfer
    char *base = nullptr;                 // displacement 0 of the laid-out bytes
    uint64_t packed_offset = 0;
    uint64_t length = 0;  // bytes, 1 to max_pipe_length; the same on both sides
    pipe_geometry geometry;
    uint64_t sequence = 0;       // of the message; larger than any before over the same words
    uint64_t launch_number = 0;  // of this launch; larger than any before over the same report
    bool resumes = false;        // after a launch of the same message and sequence that has left
    char *ring = nullptr;        // in the receiver's memory; 16-byte aligned
    char *flags = nullptr;       // one word a channel, in the receiver's memory
    char *credits = nullptr;     // one word a channel, in the sender's memory
    // Both null: a pull that is not watched. It cannot be aborted, and only events tell of its end;
    // it can be launched again as it is, by a graph for instance.
    pipe_state *state = nullptr;
    pipe_report *report = nullptr;
    uint32_t patience_us = 0;  // microseconds without progress
    // The receiver pulls. The geometry's depth, ring, flags and credits are not used.
    bool pulls = false;
    // A pull by the GPU's copy engines, of layouts for which find_box() finds a box. It uses no
    // multiprocessor, cannot be aborted, and is always through when it leaves. Of its report only
    // the first group is written.
    bool copies = false;
    // Of a pull: all bytes land in memory of the kind `device` of the GPU that pulls.
    bool into_own_memory = false;
    const layout_view *source = nullptr;  // null: laid out as the target is
    char *source_base = nullptr;          // displacement 0 of the source
    // `layout` with tables that the CPU can read; null: there is none.
    const layout_view *on_host = nullptr;
};

CUDA_NC_HD uint64_t *pipe_word(char *words, uint32_t channel) {
    return reinterpret_cast<uint64_t *>(words + channel * pipe_word_stride);
}

// Whether all numbers are in range; addresses are not checked.
inline bool valid(const pipe_work &w) noexcept {
    return w.layout != nullptr && w.geometry.valid() && w.length >= 1 &&
           w.length <= max_pipe_length && w.packed_offset <= w.layout->packed_size &&
           w.length <= w.layout->packed_size - w.packed_offset && w.sequence != 0 &&
           w.sequence % pipe_sequence_step == 0 && w.launch_number != 0 &&
           (w.state == nullptr) == (w.report == nullptr) &&
           (w.state != nullptr || (w.pulls && !w.copies && !w.resumes)) &&
           (!w.copies || (w.pulls && w.packed_offset == 0)) &&
           (!w.pulls ||
            (w.geometry.chunk_size <= max_pull_chunk &&
             (w.source == nullptr || w.packed_offset + w.length <= w.source->packed_size)));
}

// Follows the launches of one side from its CPU: numbers them and reads their reports.
class launch_tracker {
  public:
    // Prepares the next launch; the one before has left.
    void begin(pipe_work *work_p) const noexcept {
        work_p->launch_number = number_ + 1;
        if (work_p->launch_number % pipe_left_period == 0) {  // from here on values repeat
            *work_p->report = {};
        }
    }
    // The launch that begin() prepared has been enqueued.
    void launched(const pipe_work &work) noexcept {
        number_ = work.launch_number;
        expected_ = pipe_left(number_, true);
        report_ = work.report;
        groups_ =
            work.copies ? 1 : work.geometry.channels / pipe_group_size(work.geometry.channels);
        seen_ = through_ = 0;
    }
    // Whether the last launch has left.
    bool has_left() noexcept {
        for (; seen_ < groups_; ++seen_) {
            // The last one first: it is the last to be launched.
            const pipe_report::group &group = report_->groups[groups_ - 1 - seen_];
            const uint16_t left = __atomic_load_n(&group.left, __ATOMIC_ACQUIRE);
            if ((left | 1) != expected_) {
                return false;
            }
            through_ += left & 1;
        }
        return true;
    }
    // After has_left(): whether all bytes have been moved.
    bool is_through() const noexcept { return through_ == groups_; }

  private:
    uint64_t number_ = 0;    // of the last launch
    uint16_t expected_ = 0;  // from groups that are through
    const pipe_report *report_ = nullptr;
    uint32_t groups_ = 0, seen_ = 0, through_ = 0;
};

}  // namespace cuda_nc::gpu
