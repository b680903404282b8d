// The route "pipe": one kernel on the sender's GPU gathers the message into a ring in the
// receiver's GPU memory, chunk by chunk, and one kernel there scatters it. Flags and credits
// between the GPUs clock them; the CPUs launch the kernels, and launch them again where one left
// because the other was late.
#pragma once

#include <memory>
#include <optional>

#include "uct/cuda_nc/memory/lent_memory.hpp"
#include "uct/cuda_nc/memory/peer_memory.hpp"
#include "uct/cuda_nc/pipe/drive.hpp"
#include "uct/cuda_nc/protocol/driven_receiver.hpp"

namespace cuda_nc::uct {

class pipe_sender final : public send_route {
  public:
    // The answer accept_pipe, which anyone may have made, to an offer of `port` with at most
    // `channels`. Takes the port over. Null: the pipe cannot be used, and the port stays the
    // caller's; then *unreachable_p says whether its memory is to blame.
    static std::unique_ptr<send_route> open(const send_context &context,
                                            const wire::control &answer, pipe_port *port,
                                            uint32_t channels, bool *unreachable_p) noexcept;
    ~pipe_sender() override;

    state progress(unsigned *happened_p) noexcept override;
    bool handle(const wire::control &message) noexcept override;
    void stop() noexcept override;
    std::atomic<uint64_t> &counter() const noexcept override;

  private:
    pipe_sender(const send_context &context, pipe_port *port,
                const process_id &receiving_process) noexcept
        : send_route(context),
          port_(port),
          receiving_process_(receiving_process),
          drive_(context.services.schedule, context.services.events, context.services.looks,
                 context.id, context.id) {}
    void return_port() noexcept;

    pipe_port *port_;
    const process_id receiving_process_;
    peer_memory ring_, flags_;
    pipe_drive drive_;
};

class pipe_receiver final : public driven_receiver {
  public:
    // Null: it cannot be; nothing was said.
    static std::unique_ptr<receive_route> prepare(receive_context &context,
                                                  const wire::sender_offer &offer) noexcept;
    ~pipe_receiver() override;

    void answer(uint32_t flags) noexcept override;
    unsigned progress() noexcept override;
    bool handle(const wire::control &message) noexcept override;
    void handle_fin() noexcept override;
    bool is_through() const noexcept override;
    ucs_status_t status() const noexcept override;
    bool has_failed() const noexcept override;
    rest_of without_sender() noexcept override;
    void stop() noexcept override { drive_.stop(); }
    void release(bool sender_is_through) noexcept override;
    bool owes_ended() const noexcept override { return true; }
    void count_received() const noexcept override;

  private:
    using driven_receiver::driven_receiver;
    // The tables of a list move to the GPU now: after the answer it is too late to find that there
    // is no memory for them. False: there is none.
    bool moves_tables(const layout *target) noexcept;
    bool acquire_ring(uint64_t segment, unsigned channels) noexcept;

    gpu::pipe_work work_;
    uint64_t segment_ = 0;  // bytes
    bool alike_ = false;    // the sender's layout is ours
    bool has_fin_ = false;
    bool is_copied_ = false;  // what kernels could not take from the ring
    // Kernels of ours that had left in vain when the sender's process was seen to be gone.
    std::optional<uint64_t> in_vain_before_;
    peer_memory credits_;
    region ring_;
};

}  // namespace cuda_nc::uct
