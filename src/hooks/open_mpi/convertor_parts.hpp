// The parts (iovecs) of a convertor call: packed bytes in host memory or on a GPU.
#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "hooks/common/gpu_presence.hpp"
#include "ucp/dt/request_state.hpp"

namespace cuda_nc::hooks {

constexpr size_t bounce_bytes = 1 << 20;  // most, of a bounce buffer

gpu::memory_kind kind_at(const void *address) noexcept;
inline bool is_device_memory(const void *address) noexcept {
    return kind_at(address) == gpu::memory_kind::device;
}
inline bool cpu_may_touch(gpu::memory_kind kind) noexcept {
    return kind != gpu::memory_kind::device && kind != gpu::memory_kind::unknown;
}

// Moves one part by move_bytes(offset, packed, length), which moves packed bytes of host memory and
// returns a status. Packed bytes on a GPU pass through a bounce buffer; on a GPU that we do not
// serve they fail. Throws std::bad_alloc.
template <typename function>
ucs_status_t move_part(bool packs, size_t offset, const iovec &part, function move_bytes) {
    if (CUDA_NC_LIKELY(!sees_gpu_memory()) || cpu_may_touch(kind_at(part.iov_base))) {
        return move_bytes(offset, part.iov_base, size_t(part.iov_len));
    }
    std::vector<char> bounce(std::min<size_t>(part.iov_len, bounce_bytes));
    for (size_t done = 0; done < part.iov_len;) {
        size_t length = std::min(part.iov_len - done, bounce.size());
        char *packed = static_cast<char *>(part.iov_base) + done;
        ucs_status_t status = UCS_OK;
        if (packs) {
            status = move_bytes(offset + done, bounce.data(), length);
            status = status == UCS_OK ? dt::copy(one_block(length), bounce.data(), packed) : status;
        } else {
            status = dt::copy(one_block(length), packed, bounce.data());
            status = status == UCS_OK ? move_bytes(offset + done, bounce.data(), length) : status;
        }
        if (status != UCS_OK) {
            return status;
        }
        done += length;
    }
    return UCS_OK;
}

// Moves what opal_convertor_pack (unpack) would: as much as the parts hold of a message of `size`
// packed bytes, of which *position_p have passed. Sets the parts' lengths, *num_parts_p, *length_p
// and *position_p to what was moved. Returns UCS_OK, or the first error. Throws std::bad_alloc.
template <typename function>
ucs_status_t move_parts(bool packs, size_t size, size_t *position_p, iovec *parts,
                        uint32_t *num_parts_p, size_t *length_p, function move_bytes) {
    size_t position = *position_p, total = 0;
    uint32_t part = 0;
    for (; part < *num_parts_p && position < size; ++part) {
        parts[part].iov_len = std::min<size_t>(parts[part].iov_len, size - position);
        ucs_status_t status = move_part(packs, position, parts[part], move_bytes);
        if (status != UCS_OK) {
            return status;
        }
        position += parts[part].iov_len;
        total += parts[part].iov_len;
    }
    if (total == 0) {
        parts[0].iov_len = 0;
    }
    *num_parts_p = part;
    *length_p = total;
    *position_p = position;
    return UCS_OK;
}

}  // namespace cuda_nc::hooks
