// UCX's lists of buffers (UCP_DATATYPE_IOV) as generic datatypes of ours.
#pragma once

#include <ucp/api/ucp.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "ucs/base/ucx_instance.hpp"

namespace cuda_nc::dt {

// A datatype whose one element, at the address `lowest`, is the bytes of a list in the list's
// order. UCP's datatype is destroyed with it; messages under way keep what they need.
struct iov_type {
    iov_type() = default;
    ~iov_type();
    iov_type(const iov_type &) = delete;
    iov_type &operator=(const iov_type &) = delete;

    ucp_datatype_t datatype = 0;
    char *lowest = nullptr;
    uint64_t span = 0;    // bytes from `lowest` to the end of the buffer that ends last
    uint64_t packed = 0;  // bytes of all buffers together

    // Whether some byte is of two buffers. Thread safe. Throws std::bad_alloc.
    bool overlaps() const;

    const ucx_instance *ucx = nullptr;
    std::vector<ucp_dt_iov_t> list;  // a copy: what the type was made of

    enum class order : uint8_t { unknown, apart, overlapping };
    mutable std::atomic<order> known_order{order::unknown};
};

// The datatype of a list, of the UCX `ucx`. Lists that were used lately are found again by their
// content: at most 256, and about 64 MiB. Null: the list has no bytes, or more than 2^63 - 1, or
// there is no memory. Thread safe.
std::shared_ptr<const iov_type> find_iov_type(const ucx_instance &ucx, const ucp_dt_iov_t *list,
                                              size_t number) noexcept;

// Whether each buffer lies in memory of the same GPU, and of one kind. Asks the platform each time:
// memory may have been freed since.
bool is_on_one_gpu(const iov_type &type) noexcept;

}  // namespace cuda_nc::dt
