// Streams of the application's on a simulated GPU: what cuda_nc_sim_stream_create() gives.
#pragma once

#include <memory>

#include "ucs/backend/sim/stream.hpp"

namespace cuda_nc::gpu::sim {

class user_stream {
  public:
    // Throws std::bad_alloc. Alive until the last reference is gone, which waits for its work.
    static std::shared_ptr<user_stream> make(environment &all, int ordinal);
    ~user_stream();

    int ordinal() const noexcept { return ordinal_; }
    uint64_t id() const noexcept { return id_; }
    sim_stream &stream() noexcept { return stream_; }
    // Waits for the work that was enqueued before.
    ucs_status_t synchronize() noexcept;

  private:
    user_stream(environment &all, int ordinal);

    const int ordinal_;
    const uint64_t id_;
    sim_stream stream_;
};

// UCS_ERR_INVALID_PARAM: `wanted` is no stream that is alive, or another GPU's. Throws
// std::bad_alloc.
ucs_status_t borrow(user_stream *wanted, int ordinal, std::unique_ptr<borrowed_stream> *stream_p);
// Null: it is none that is alive.
std::shared_ptr<user_stream> find_user_stream(const void *address) noexcept;

// Of the simulated platform `on`; null: there is no such GPU. Throw std::bad_alloc.
std::shared_ptr<user_stream> make_user_stream(platform &on, int ordinal);
user_stream *default_stream(platform &on, int ordinal);

}  // namespace cuda_nc::gpu::sim
