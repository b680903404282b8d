#include "ucs/base/status.hpp"

namespace cuda_nc {

const char *status_text(ucs_status_t status) noexcept {
    switch (status) {
        case UCS_OK:
            return "success";
        case UCS_INPROGRESS:
            return "in progress";
        case UCS_ERR_NO_RESOURCE:
            return "no resource at present";
        case UCS_ERR_NO_MEMORY:
            return "out of memory";
        case UCS_ERR_INVALID_PARAM:
            return "invalid argument";
        case UCS_ERR_IO_ERROR:
            return "device or input/output error";
        case UCS_ERR_UNSUPPORTED:
            return "not supported";
        case UCS_ERR_NO_DEVICE:
            return "no such device";
        case UCS_ERR_MESSAGE_TRUNCATED:
            return "message truncated";
        case UCS_ERR_CANCELED:
            return "cancelled";
        case UCS_ERR_TIMED_OUT:
            return "timed out";
        case UCS_ERR_OUT_OF_RANGE:
            return "out of range";
        default:
            return "error";
    }
}

}  // namespace cuda_nc
