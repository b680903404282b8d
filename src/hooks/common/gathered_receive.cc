#include "hooks/common/gathered_receive.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "ucs/base/log.hpp"
#include "ucs/base/status.hpp"

namespace cuda_nc::hooks {

gathered_receive *gathered_receive::start(const ucp_generic_dt_ops_t &originals,
                                          void *original) noexcept {
    return new (std::nothrow) gathered_receive(originals, original);
}

gathered_receive::~gathered_receive() {
    std::free(bytes_);
}

ucs_status_t gathered_receive::unpack(size_t offset, const void *source, size_t length) noexcept {
    if (length == size_) {
        return originals_.unpack(original_, 0, source, length);
    }
    if (bytes_ == nullptr) {
        bytes_ = static_cast<char *>(std::malloc(size_));
        if (bytes_ == nullptr) {
            return UCS_ERR_NO_MEMORY;
        }
    }
    if (offset > size_ || length > size_ - offset) {
        return UCS_ERR_MESSAGE_TRUNCATED;
    }
    std::memcpy(bytes_ + offset, source, length);
    arrived_ += length;
    end_ = std::max(end_, offset + length);
    if (arrived_ != size_) {
        return UCS_OK;
    }
    arrived_ = end_ = 0;
    return originals_.unpack(original_, 0, bytes_, size_);
}

void gathered_receive::finish() noexcept {
    // Where some are missing in between the message has failed.
    if (arrived_ != 0 && arrived_ == end_) {
        const ucs_status_t status = originals_.unpack(original_, 0, bytes_, arrived_);
        if (status != UCS_OK) {
            nc_error(
                "a message of %zu bytes is shorter than its receive, of %zu, and the MPI library "
                "did not unpack all of it: %s",
                arrived_, size_, status_text(status));
        }
    }
    delete this;
}

}  // namespace cuda_nc::hooks
