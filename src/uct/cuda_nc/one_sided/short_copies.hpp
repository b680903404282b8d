// Short copies between host memory and GPU memory that UCX makes itself: of the bytes of eager
// messages from and to contiguous GPU memory. Its transport cuda_copy enqueues a copy and waits for
// the stream, 7 to 9 us on an H100; an order to the mover takes 5. So the two operations of that
// transport that UCX uses for this are led here: a copy that the mover takes is made by it, every
// other one by cuda_copy as before.
#pragma once

#include <cstddef>

#include "ucs/gpu/direction.hpp"
#include "uct/cuda_nc/ucx/ucx.hpp"

namespace cuda_nc::uct {

constexpr size_t longest_short_copy = 8 << 10;  // bytes

// From now on interfaces of cuda_copy that this UCX opens lead their short puts and gets here. To
// be called before it opens any; without a cuda_copy nothing happens. Thread safe.
void lead_short_copies(const ucx_api &ucx) noexcept;

// The same for one interface, of the UCX with this index.
void lead_short_copies(unsigned instance, abi::uct_iface &of) noexcept;

// Copies `length` bytes between `on_gpu` and `on_host`, to the host (pack) or to the GPU (unpack),
// and returns when they are there. False: they are other kinds of memory, or too many, the mover
// did not take them, or it failed; then copy them otherwise. Thread safe.
bool copy_by_mover(gpu::direction dir, char *on_gpu, char *on_host, size_t length) noexcept;

}  // namespace cuda_nc::uct
