// A sender or receiver of a message whose buffer lies in GPU memory: its pipeline through host
// memory, and what the transport cuda_nc needs to move the bytes past that pipeline.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "ucp/dt/message_handles.hpp"
#include "ucp/dt/receive_pipeline.hpp"
#include "ucp/dt/send_pipeline.hpp"
#include "uct/cuda_nc/user_buffer.hpp"

namespace cuda_nc::dt {

template <typename pipeline>
struct gpu_side final : pipeline, uct::user_buffer {
    message_handle handle;  // what UCX knows the message by; 0: by its request_state

    int device() const noexcept override { return pipeline::packer().ordinal(); }
    uint64_t packed_bytes() const noexcept override { return pipeline::packed_size(); }
    gpu::allocation_info allocation() const noexcept override {
        return pipeline::packer().allocation();
    }
    bool sends() const noexcept override { return std::is_same_v<pipeline, send_pipeline>; }
    uint64_t ucx_state() const noexcept override { return handle.value(); }
    const layout *laid_out(char **base_p) const noexcept override {
        *base_p = pipeline::packer().base();
        return &pipeline::packer().what();
    }
    ucs_status_t enqueue(uint64_t offset, uint64_t length, char *packed,
                         gpu::event &done) noexcept override {
        if constexpr (std::is_same_v<pipeline, receive_pipeline>) {
            // The first bytes came through UCP. They are unpacked only now, so that our answer to
            // the sender did not wait for that.
            pipeline::launch_gathered();
        }
        return pipeline::packer().enqueue_packed(offset, length, packed, done);
    }
    ucs_status_t enqueue_copies(uint64_t offset, uint64_t length, char *packed,
                                bool in_memory_order, gpu::event &done) noexcept override {
        return pipeline::packer().enqueue_copies(offset, length, packed, in_memory_order, done);
    }
    ucs_status_t prepare(gpu::pipe_work &work, gpu::stream &on,
                         bool in_memory_order) noexcept override {
        return pipeline::packer().prepare_pipe(work, on, in_memory_order);
    }
    ucs_status_t describe(gpu::pipe_work &work, bool in_memory_order) noexcept override {
        return pipeline::packer().describe_pipe(work, in_memory_order);
    }
    void all_read() noexcept override { pipeline::count_direct(); }
    uint64_t received_bytes() const noexcept override {
        if constexpr (std::is_same_v<pipeline, receive_pipeline>) {
            return pipeline::received();
        }
        return 0;
    }

    // On return no work of the transport touches the user's memory.
    void leave_transport() noexcept {
        if (message != nullptr) {
            message->leave();
        }
    }
};

using gpu_sender = gpu_side<send_pipeline>;
using gpu_receiver = gpu_side<receive_pipeline>;

// Packs up to *length_p bytes from packed offset `offset` on to host memory, or lets the transport
// move them where it offers to; sets *length_p to the bytes that UCP is to count as packed.
ucs_status_t pack_gpu(gpu_sender &from, uint64_t offset, char *destination,
                      size_t *length_p) noexcept;

// Unpacks bytes in host memory, or counts those that the transport brought.
ucs_status_t unpack_gpu(gpu_receiver &to, uint64_t offset, const char *source,
                        size_t length) noexcept;

}  // namespace cuda_nc::dt
