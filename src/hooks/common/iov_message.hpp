// Messages whose buffer is a list of buffers (UCP_DATATYPE_IOV) in memory of one GPU. UCX moves
// them by a copy for each entry: UCP is given a generic datatype of ours in place of the list. So
// it is of contiguous memory that is better ours (contiguous.hpp): a list with one entry.
#pragma once

#include <ucp/api/ucp.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "ucp/dt/iov_type.hpp"

namespace cuda_nc::hooks {

// Whether this process may have lists in GPU memory that we serve.
bool may_serve_lists() noexcept;

// What a call of UCP is to be given in place of a list. To live as long as the call; what the
// message then needs it keeps itself.
class iov_message {
  public:
    enum class use : uint8_t { send, receive };

    // A call of the UCX `ucx` with `number` entries at `list` and the caller's `given`.
    iov_message(const ucx_instance &ucx, const void *list, size_t number,
                const ucp_request_param_t &given, use what) noexcept;
    // A send of contiguous memory.
    iov_message(const ucx_instance &ucx, const void *buffer, size_t bytes,
                const ucp_request_param_t &given) noexcept;

    // False: the call is to pass unchanged. The list has no bytes in GPU memory, or some in other
    // memory; it receives into a byte twice, which has an order; UCX or settings forbid it.
    bool is_served() const noexcept { return type_ != nullptr; }

    void *buffer() const noexcept { return buffer_; }
    static constexpr size_t count = 1;
    uint64_t bytes() const noexcept { return type_->packed; }
    const ucp_request_param_t &param() const noexcept { return param_; }

  private:
    void serve(const ucx_instance &ucx, const ucp_dt_iov_t *list, size_t number,
               const ucp_request_param_t &given, use what) noexcept;
    void use_type(std::shared_ptr<const dt::iov_type> type,
                  const ucp_request_param_t &given) noexcept;

    void *buffer_ = nullptr;
    std::shared_ptr<const dt::iov_type> type_;
    ucp_request_param_t param_;
};

}  // namespace cuda_nc::hooks
