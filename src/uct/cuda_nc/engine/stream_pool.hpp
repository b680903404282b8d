// Streams for kernels that the transport launches: pools, one for each GPU. Thread safe.
#pragma once

#include <memory>

#include "ucs/gpu/device.hpp"

namespace cuda_nc::uct {

// A stream for one launch in flight, which several messages share. It returns to its pool when the
// last of them lets go.
class pooled_stream {
  public:
    explicit pooled_stream(int device) noexcept : device_(device) {}
    ~pooled_stream();
    pooled_stream(const pooled_stream &) = delete;
    pooled_stream &operator=(const pooled_stream &) = delete;

    gpu::stream &get() noexcept { return *stream_; }
    // Work on it failed: it does not return to the pool.
    void spoil() noexcept { spoilt_ = true; }
    // Waits for its work. There is no stream afterwards.
    void finish() noexcept { stream_.reset(); }
    bool is_finished() const noexcept { return stream_ == nullptr; }

  private:
    friend std::shared_ptr<pooled_stream> acquire_stream(int device, bool *later_p) noexcept;

    int device_;
    std::unique_ptr<gpu::stream> stream_;
    bool lent_ = false, spoilt_ = false;
};

// Null: out of resources. Then *later_p tells whether others are in use, one of which returns when
// the kernels on it have left.
std::shared_ptr<pooled_stream> acquire_stream(int device, bool *later_p) noexcept;

// Whether there is a stream, now or when one returns.
bool has_stream(int device) noexcept;

// Destroys those of a GPU that the program has reset. False: one was lent, now or before.
bool drop_unused_streams(int device) noexcept;

}  // namespace cuda_nc::uct
