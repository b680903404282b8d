// The mover of a GPU: see gpu/mover.hpp for what it promises, exec/kernels/instances/mover.cu for
// its kernel.
//
// There is none where it would be no good guest: where launches block (CUDA_LAUNCH_BLOCKING), under
// a debugger or a tool that watches kernels, and while another process of the same user has this
// GPU through this library (sole_user.hpp), as processes take turns of a GPU while kernels stay.
// Clients of MPS, the service by which processes share a GPU, take no turns, and have movers.
// Of programs that do not use this library, of other users and of other containers it knows
// nothing.
#pragma once

#include <array>
#include <memory>

#include "ucs/gpu/device.hpp"
#include "ucs/gpu/mover_desk.hpp"
#include "ucs/backend/cuda/context.hpp"
#include "ucs/backend/cuda/sole_user.hpp"
#include "ucs/exec/kernels/launch_mover.hpp"

namespace cuda_nc::gpu::cuda {

class cuda_mover final : public mover_desk {
  public:
    // The context of `owner` is made. Null: it must not be, or there is no memory. Allocates, and
    // loads the kernel: may synchronise the device.
    // `host_caches_memory`: as in exec::kernel_limits.
    static std::unique_ptr<cuda_mover> make(device &on, primary_context &owner,
                                            bool host_caches_memory) noexcept;
    ~cuda_mover() override;

  protected:
    bool is_usable() noexcept override;
    bool describe(const move_order &one, ticket which,
                  uint32_t (*words_p)[order_words]) noexcept override;
    ucs_status_t launch(const mover_launch &how) noexcept override;
    ucs_status_t ask_kernels() noexcept override;
    ucs_status_t launch_set(const uint32_t (*words)[order_words], size_t number,
                            ticket first) noexcept override;
    ucs_status_t ask_sets() noexcept override;

  private:
    cuda_mover(primary_context &owner, unsigned most_sms, bool host_caches_memory) noexcept;
    ucs_status_t open(device &on) noexcept;

    primary_context &owner_;
    const unsigned most_sms_;  // of a set's thread blocks
    const bool host_caches_memory_;
    bool takes_turns_ = true;  // with other processes
    sole_user sole_;
    std::unique_ptr<memory> pinned_, state_;
    cudaStream_t stream_ = nullptr;
    // Sets run side by side.
    std::array<cudaStream_t, 4> set_streams_{};
    size_t next_set_stream_ = 0;
    mover_memory *shared_ = nullptr;
};

}  // namespace cuda_nc::gpu::cuda
