// The route "copy": a pull of rows to rows by a copy engine of the receiver's GPU. It begins sooner
// than a kernel and takes no multiprocessor. For the sender it is a pull.
#pragma once

#include "uct/cuda_nc/protocol/route_pull.hpp"

namespace cuda_nc::uct {

class copy_receiver final : public pull_receiver {
  public:
    // Whether the pull `work` to `target` at `base` is quicker by a copy engine, and one has room:
    // then a copy is acquired, which the copy_receiver made next releases.
    static bool is_quicker(const receive_context &context, const gpu::device &gpu,
                           const gpu::pipe_work &work, const layout &target,
                           const char *base) noexcept;

    copy_receiver(receive_context &context, source &&from) noexcept
        : pull_receiver(context, std::move(from)) {}
    ~copy_receiver() override;

    void release(bool sender_is_through) noexcept override;
    void count_received() const noexcept override;

  private:
    bool holds_copy_ = true;
};

}  // namespace cuda_nc::uct
