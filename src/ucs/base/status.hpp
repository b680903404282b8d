// Functions return UCX's own status codes; their header needs no UCX library.
#pragma once

#include <ucs/type/status.h>

namespace cuda_nc {

// A short English text, never NULL. Unlike ucs_status_string() it works where no UCX is loaded.
const char *status_text(ucs_status_t status) noexcept;

}  // namespace cuda_nc
