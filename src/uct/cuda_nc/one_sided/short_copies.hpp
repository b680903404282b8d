// Short copies between host memory and GPU memory that UCX makes itself: of the bytes of eager
// messages from and to contiguous GPU memory. Its transport cuda_copy enqueues a copy and waits for
// the stream; an order to the mover takes about half as long. So the two operations of that
// transport that UCX uses for this are led here: a copy that the mover takes is made by it, every
// other one by cuda_copy as before.
#pragma once

#include <cstddef>

#include "ucs/gpu/device.hpp"
#include "uct/cuda_nc/ucx/ucx.hpp"

namespace cuda_nc::uct {

// Bytes: of the longest fragment of an eager message in shared memory, too.
constexpr size_t longest_short_copy = 9 << 10;

// From now on interfaces of cuda_copy that this UCX opens lead their short puts and gets here. To
// be called before it opens any; without a cuda_copy nothing happens. Thread safe.
void lead_short_copies(const ucx_api &ucx) noexcept;

// The same for one interface, of the UCX with this index.
void lead_short_copies(unsigned instance, abi::uct_iface &of) noexcept;

// One copy of `length` bytes between `on_gpu` and `on_host`, to the host (pack) or to the GPU
// (unpack). Thread safe.
class short_copy {
  public:
    short_copy(gpu::direction dir, char *on_gpu, char *on_host, size_t length) noexcept;

    // True: the bytes are there. False: they are other kinds of memory, or too many, the mover's
    // kernel is not on the GPU, or it failed; then copy them otherwise, and call
    // made_otherwise().
    bool make() noexcept;
    // The mover hears of the copy. A GPU's first one makes the mover and what else is wanted: after
    // it, because that may wait for kernels, which may wait for the bytes.
    void made_otherwise() noexcept;

  private:
    const gpu::direction dir_;
    char *const on_gpu_, *const on_host_;
    const size_t length_;
    gpu::device *device_ = nullptr;  // null: the mover may not touch these bytes
};

}  // namespace cuda_nc::uct
