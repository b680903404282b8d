// One GPU. The object itself makes no context; the first allocation, stream or event does.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>

#include "ucs/base/compiler.hpp"
#include "ucs/exec/kernels/launch.hpp"
#include "ucs/backend/cuda/context.hpp"
#include "ucs/backend/cuda/driver.hpp"
#include "ucs/backend/cuda/memory_pool.hpp"
#include "ucs/backend/cuda/mover.hpp"
#include "ucs/backend/cuda/shared_pieces.hpp"
#include "ucs/gpu/device.hpp"

namespace cuda_nc::gpu::cuda {

class cuda_device final : public device {
  public:
    // Throws std::bad_alloc. The driver is initialised.
    cuda_device(const driver &calls, int ordinal);

    const device_properties &properties() const noexcept override { return properties_; }
    uint64_t requests() const noexcept override {
        return requests_.load(std::memory_order_relaxed);
    }
    uint64_t requests_of_this_thread() const noexcept override;
    bool was_reset() noexcept override { return context_.get() != nullptr && !context_.alive(); }
    void begin_again() noexcept override;
    ucs_status_t allocate(size_t size, std::unique_ptr<memory> *memory_p) noexcept override;
    ucs_status_t allocate_private(size_t size, std::unique_ptr<memory> *memory_p) noexcept override;
    ucs_status_t allocate_pinned(size_t size, std::unique_ptr<memory> *memory_p) noexcept override;
    ucs_status_t pin(void *address, size_t size,
                     std::unique_ptr<memory> *memory_p) noexcept override;
    ucs_status_t create_stream(std::unique_ptr<stream> *stream_p) noexcept override;
    ucs_status_t create_event(std::unique_ptr<event> *event_p) noexcept override;
    ucs_status_t borrow_stream(void *foreign,
                               std::unique_ptr<borrowed_stream> *stream_p) noexcept override;
    bool copies_rows() const noexcept override { return context_.calls().write_value != nullptr; }
    // Made at the first call, where the setting MOVER says so.
    mover *get_mover() noexcept override;
    ucs_status_t ipc_export(const void *address, ipc_handle *handle_p,
                            size_t *offset_p) noexcept override;
    ucs_status_t ipc_share(char *base, size_t size, ipc_handle *handle_p,
                           std::shared_ptr<void> *keeper_p) noexcept override;
    bool ipc_coexists(const ipc_handle &handle) const noexcept override {
        return is_of_pieces(handle);
    }
    ucs_status_t ipc_open(const ipc_handle &handle,
                          std::unique_ptr<memory> *memory_p) noexcept override;
    bool can_access_peer(int ordinal) const noexcept override;

    // False: this process cannot use the GPU, because it is too old for this build or another
    // process has it exclusively. The first call makes the context.
    bool serves() noexcept {
        ucs_status_t status = context_.ready();
        return status == UCS_OK || status == UCS_ERR_NO_MEMORY;
    }

    CUcontext context() const noexcept { return context_.get(); }

    // Whether kernels can reach allocation `id` (0: any) of `context` (null or a primary one): our
    // context still exists and is that one. Asks the driver only for allocations not seen lately,
    // and for those without a context, which a reset may leave alive.
    bool serves_allocation(unsigned long long id, CUcontext context) noexcept {
        std::atomic<unsigned long long> &place = seen_[id % seen_.size()];
        if (CUDA_NC_LIKELY(id != 0 && context != nullptr &&
                           place.load(std::memory_order_relaxed) == id)) {
            return true;
        }
        if (context != nullptr) {
            context_.note_primary(context);
        }
        if (!context_.alive()) {
            return false;
        }
        place.store(id, std::memory_order_relaxed);
        return true;
    }
    bool lost_context() const noexcept { return context_.gone(); }

  private:
    // Runs `call`, which returns a status, with the context made and current.
    template <typename F>
    ucs_status_t run(F &&call) noexcept;
    void count_request() noexcept;

    primary_context context_;
    std::atomic<uint64_t> requests_{0};
    device_properties properties_;
    exec::kernel_limits limits_;
    std::array<std::atomic<unsigned long long>, 64> seen_{};  // ids of allocations
    memory_pool pool_;
    std::once_flag mover_once_;
    std::unique_ptr<cuda_mover> mover_;
};

}  // namespace cuda_nc::gpu::cuda
