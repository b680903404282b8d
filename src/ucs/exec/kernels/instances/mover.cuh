// The kernel of a mover.
#pragma once

namespace cuda_nc::exec {

// Its argument is a mover_arguments; mover_thread_blocks thread blocks of mover_threads threads and
// one warp more.
const void *mover_kernel() noexcept;

}  // namespace cuda_nc::exec
