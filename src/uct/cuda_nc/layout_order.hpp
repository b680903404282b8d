// A put or get with a layout on each side. UCP has no call for it: the C API asks UCP to move one
// block that both layouts have in common, and the transport, if it is the one that UCP then calls,
// takes the whole order in the place of that block. If it is another one, the block has been moved
// as it should be, and the C API goes on with the next.
#pragma once

#include <cstdint>
#include <memory>

#include "ucs/gpu/device.hpp"

namespace cuda_nc {
class layout;
}

namespace cuda_nc::uct {

class layout_order : public std::enable_shared_from_this<layout_order> {
  public:
    // The block that UCP is asked to move.
    struct sample {
        const void *local;
        uint64_t remote;
        size_t length;  // bytes
    };

    layout_order(bool is_put, char *local, uint64_t remote) noexcept
        : puts(is_put), local_base(local), remote_base(remote) {}
    virtual ~layout_order() = default;

    virtual const layout &local() const noexcept = 0;
    virtual const layout &remote() const noexcept = 0;
    // The same with tables that kernels on `where` can read, as launches on `on` from now on may.
    virtual ucs_status_t prepare(gpu::device &where, gpu::stream &on, const layout_view **local_p,
                                 const layout_view **remote_p) noexcept = 0;
    // The same for a kernel that no stream orders. UCS_INPROGRESS: the GPU has not got all tables.
    virtual ucs_status_t describe(gpu::device &where, const layout_view **local_p,
                                  const layout_view **remote_p) noexcept = 0;

    const bool puts;             // else it gets
    char *const local_base;      // displacement 0
    const uint64_t remote_base;  // displacement 0, the owner's address

    // Whoever moves it keeps it until UCP's completion has been called.
    void take(const void *completion) noexcept { completion_ = completion; }
    bool is_taken() const noexcept { return completion_ != nullptr; }
    // Whether it ends with this request of UCP, in which the completion lies. False: within the
    // call UCP has sent another one's block, which was the same (it may progress there, for a
    // fence).
    bool ends_with(const void *request) const noexcept {
        constexpr uintptr_t most = 4096;  // bytes of a request, which are before its address
        return is_taken() &&
               reinterpret_cast<uintptr_t>(request) - reinterpret_cast<uintptr_t>(completion_) <
                   most;
    }

    // There while UCP is called for its block.
    class call {
      public:
        call(layout_order &order, const sample &block) noexcept {
            current_ = &order;
            block_ = block;
        }
        ~call() { current_ = nullptr; }
        call(const call &) = delete;
        call &operator=(const call &) = delete;

      private:
        friend class layout_order;
        static inline thread_local layout_order *current_ = nullptr;
        static inline thread_local sample block_;
    };
    // The order whose block this is; null: it is no order's, or that was taken already.
    static layout_order *of(bool puts, const void *local, uint64_t remote, size_t length) noexcept {
        layout_order *order = call::current_;
        const sample &block = call::block_;
        return order != nullptr && !order->is_taken() && order->puts == puts &&
                       block.local == local && block.remote == remote && block.length == length
                   ? order
                   : nullptr;
    }

  private:
    const void *completion_ = nullptr;
};

}  // namespace cuda_nc::uct
