// The first message of a GPU needs a kernel that is loaded, a stream and ports, which take
// milliseconds to make. They are made when the program allocates GPU memory, of which UCX's memory
// hooks tell, so that the message finds them there.
#pragma once

#include "uct/cuda_nc/ucx/ucx.hpp"

namespace cuda_nc::uct {

// From now on the first allocation on each GPU prepares it. Asked once of each UCX, which installs
// its memory hooks if it has not. Where the environment turns them off
// (UCX_MEM_EVENTS=n, UCX_MEMTYPE_CACHE=n), nothing is prepared. Thread safe.
void prepare_gpus_at_allocations(const ucx_api &ucx) noexcept;

}  // namespace cuda_nc::uct
