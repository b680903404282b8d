// Staging memory and streams of one GPU, shared by all requests of the process.
//
// No request ever waits for another's staging: where none is left it gets null, and moves its bytes
// through the shared bounce buffer, which is locked for one call at a time.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "ucs/base/status.hpp"
#include "ucs/gpu/completion.hpp"
#include "ucs/gpu/device.hpp"
#include "ucs/gpu/given_orders.hpp"

namespace cuda_nc::dt {

// A part of a staging buffer: packed bytes [offset, offset + length) lie at `position` of it.
struct staged_range {
    size_t position;
    uint64_t offset;
    uint64_t length;
};

// Pinned memory, and GPU memory of the same size where a request asked for it. The last work that
// uses the buffer is `order`, where one is given, else what `done` marks.
struct staging_buffer {
    std::unique_ptr<gpu::memory> pinned;
    std::unique_ptr<gpu::memory> device;  // null until ensure_device_part()
    std::unique_ptr<gpu::event> done;
    // Written by the same work when it ends, where ends.count is not 0. Behind the pinned bytes.
    gpu::end_words ends;
    gpu::given_orders order;
    staged_range ordered = {};  // what `order` moves
    unsigned size_log2 = 0;
    // What a receiver has gathered here. It is kept here and not by each message, most of which
    // gather nothing: four slots of it are 6 KB a message.
    static constexpr unsigned max_ranges = 64;
    unsigned num_ranges = 0;
    staged_range ranges[max_ranges];

    size_t size() const noexcept { return size_t(1) << size_log2; }
    size_t footprint() const noexcept { return device != nullptr ? 2 * size() : size(); }
};

// A stream that several requests enqueue on. Hold `mutex` from ready() to the last call on it, and
// never while waiting for a GPU.
struct shared_stream {
    std::mutex mutex;
    std::unique_ptr<gpu::stream> stream;

    // The stream, made if need be; null where that fails.
    gpu::stream *ready(gpu::device &device) noexcept {
        if (stream == nullptr && device.create_stream(&stream) != UCS_OK) {
            stream.reset();
        }
        return stream.get();
    }

    // Waits for the stream's work and destroys it; the next ready() makes another.
    void give_up() noexcept {
        std::lock_guard<std::mutex> guard(mutex);
        stream.reset();
    }
};

// Staging for requests that got none, used by one call at a time. `owner` and the range say whose
// packed bytes it holds: a sender may find here what it packed ahead in an earlier call.
struct bounce_buffer {
    std::mutex mutex;
    staging_buffer *buffer = nullptr;  // null: no pinned memory
    uint64_t owner = 0;                // serial number of a request; 0: nobody
    uint64_t begin = 0, end = 0;       // packed bytes
};

class device_staging {
  public:
    // Null where the process has no such GPU. Lives as long as the process; takes no lock once
    // made.
    static device_staging *get(int ordinal) noexcept;

    gpu::device &device() const noexcept { return *device_; }

    // A buffer of at least `wanted` bytes; where the process's bound or memory does not allow that,
    // a smaller one of at least `least` bytes, or null. Never waits for other requests.
    staging_buffer *acquire(size_t wanted, size_t least) noexcept;
    // No work may use the buffer any more.
    void release(staging_buffer *buffer) noexcept;
    // Instead of release(), where work on the buffer may still run (the GPU is lost): its memory is
    // never used again.
    void abandon(staging_buffer *buffer) noexcept;

    // False: no GPU memory, or the bound is reached.
    bool ensure_device_part(staging_buffer &buffer) noexcept;

    // The next stream in turn; one that cannot be made is skipped where another is there. Where
    // none of its kind can be made: one of another kind, which also serves.
    shared_stream &pick_stream(gpu::direction dir) noexcept {
        return pick_of(streams_[static_cast<size_t>(dir)]);
    }
    // Of those on which no kernel is launched, unless the GPU gives no streams for copies alone.
    shared_stream &pick_copies_stream() noexcept { return pick_of(streams_.back()); }

    std::unique_ptr<gpu::completion> acquire_completion() noexcept;  // null: out of resources
    void release_completion(std::unique_ptr<gpu::completion> one) noexcept;

    // Lock its mutex, then call ready_bounce(); false: no pinned memory at all.
    bounce_buffer &bounce() noexcept { return bounce_; }
    bool ready_bounce() noexcept;
    // Makes what the slow paths need, a completion, the bounce buffer, a stream for each way and
    // one for copies, before requests acquire all staging and streams that the process may hold.
    void reserve_slow_paths() noexcept {
        if (!bounce_reserved_.load(std::memory_order_acquire)) {
            std::lock_guard<std::mutex> guard(bounce_.mutex);
            if (std::unique_ptr<gpu::completion> one = acquire_completion()) {
                release_completion(std::move(one));
            }
            ready_bounce();
            ready_first(streams_[static_cast<size_t>(gpu::direction::pack)]);
            ready_first(streams_[static_cast<size_t>(gpu::direction::unpack)]);
            ready_first(streams_.back());
            bounce_reserved_.store(true, std::memory_order_release);
        }
    }

    // Bytes of staging, of all GPUs: acquired by requests; held by the process, idle ones included.
    static size_t bytes_in_use() noexcept;
    static size_t bytes_held() noexcept;

    // Frees idle buffers, streams and completions of every GPU. Waits for the streams' work; a
    // stream is made again when it is next needed.
    static void release_all_unused() noexcept;

  private:
    static constexpr unsigned min_log2 = 12, max_log2 = 26;
    static constexpr unsigned streams_per_direction = 4;
    using streams = std::array<shared_stream, streams_per_direction>;

    explicit device_staging(gpu::device *device) noexcept : device_(device) {}

    shared_stream &pick_of(streams &all) noexcept;
    // One of them that is there or can be made, from `turn` on; null: none.
    shared_stream *find_ready(streams &all, unsigned turn) noexcept;
    // The first of them is there afterwards, if one can be made.
    void ready_first(streams &all) noexcept {
        std::lock_guard<std::mutex> guard(all[0].mutex);
        all[0].ready(*device_);
    }
    staging_buffer *pop_idle(unsigned size_log2) noexcept;
    staging_buffer *make(unsigned size_log2) noexcept;
    static void destroy(staging_buffer *buffer) noexcept;
    static void trim_idle() noexcept;

    gpu::device *device_;
    std::mutex mutex_;  // of idle_ and completions_
    std::array<std::vector<staging_buffer *>, max_log2 + 1> idle_;
    std::vector<std::unique_ptr<gpu::completion>> completions_;
    std::array<streams, 4> streams_;  // by direction; the last are those of copies alone
    std::atomic<unsigned> next_stream_{0};
    bounce_buffer bounce_;
    std::atomic<bool> bounce_reserved_{false};  // or tried once
};

}  // namespace cuda_nc::dt
