// A received message that an MPI library unpacks itself, where it can do so only as a whole: MPICH
// leaves out a value that two fragments share, and reports an error. UCX's fragments are gathered
// in host memory.
#pragma once

#include <ucp/api/ucp.h>

#include <cstddef>

namespace cuda_nc::hooks {

class gathered_receive {
  public:
    // `original`: what the library's start_unpack returned, who stays its owner. Null: no memory.
    static gathered_receive *start(const ucp_generic_dt_ops_t &originals, void *original) noexcept;

    void *original() const noexcept { return original_; }

    // In any order, no byte twice. The call with the last missing byte of the whole receive
    // unpacks, and returns how that ended.
    ucs_status_t unpack(size_t offset, const void *source, size_t length) noexcept;

    // UCX says that no more will come: unpacks a message that is shorter than the receive, as far
    // as it came without a hole. UCX takes no error any more, so that is logged. Deletes this.
    void finish() noexcept;

  private:
    gathered_receive(const ucp_generic_dt_ops_t &originals, void *original) noexcept
        : originals_(originals), original_(original), size_(originals.packed_size(original)) {}
    ~gathered_receive();

    const ucp_generic_dt_ops_t &originals_;
    void *const original_;
    const size_t size_;
    char *bytes_ = nullptr;         // of malloc; null: nothing is kept
    size_t arrived_ = 0, end_ = 0;  // how many are kept, and behind which the last one lies
};

}  // namespace cuda_nc::hooks
