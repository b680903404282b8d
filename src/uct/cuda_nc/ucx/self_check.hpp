// Does the UCX of this process lay out its tables as abi.hpp says?
#pragma once

#include "uct/cuda_nc/ucx/ucx.hpp"

namespace cuda_nc::uct {

// Opens UCX's loop-back transport on a worker of its own and looks at what UCX made of it. Null:
// all is as expected; else what is not, for a message.
const char *find_mismatch(const ucx_api &ucx) noexcept;

// Whether find_mismatch() found none; asked once for each UCX, with a warning where it did.
bool is_checked(const ucx_api &ucx) noexcept;

}  // namespace cuda_nc::uct
