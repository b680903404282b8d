// The route "straight": one side of the message is contiguous memory, and one kernel of the other
// side moves between there and its own layout. Nothing is lent, and nothing waits in between.
//
//   datatype to contiguous memory   a kernel of the sender's packs into the receiver's memory
//   contiguous memory to datatype   a kernel of the receiver's unpacks from the sender's memory,
//                                   where a pull does not serve its layout
//
// The mover's kernel, where it takes the order.
#pragma once

#include <memory>

#include "ucs/gpu/device.hpp"
#include "ucs/gpu/given_orders.hpp"
#include "uct/cuda_nc/memory/peer_memory.hpp"
#include "uct/cuda_nc/protocol/plain_memory.hpp"
#include "uct/cuda_nc/protocol/route.hpp"

namespace cuda_nc::uct {

// One order, or one launch, for the user's part between its memory and `there`.
class straight_move {
  public:
    straight_move(message_services &services, int device, uint64_t id) noexcept
        : services_(services), device_(device), id_(id) {}
    ~straight_move();
    straight_move(const straight_move &) = delete;
    straight_move &operator=(const straight_move &) = delete;

    // All `total` packed bytes of `buffer`. False: nothing runs.
    bool begin(user_buffer &buffer, peer_memory there, uint64_t total) noexcept;
    // UCS_INPROGRESS while it runs; then what became of it.
    ucs_status_t progress() noexcept;
    bool runs() const noexcept { return runs_; }
    void stop() noexcept;  // waits for the GPU

  private:
    bool give_order() noexcept;
    bool launch() noexcept;

    message_services &services_;
    const int device_;
    const uint64_t id_;
    bool runs_ = false;
    ucs_status_t status_ = UCS_OK;
    user_buffer *buffer_ = nullptr;
    uint64_t total_ = 0;
    peer_memory there_;
    gpu::given_orders order_;
    std::unique_ptr<gpu::event> done_;  // of a launch
};

class straight_sender final : public send_route {
  public:
    // Null: the answer makes no sense, or the route cannot be used; *unreachable_p: the receiver's
    // memory cannot be reached.
    static std::unique_ptr<send_route> open(const send_context &context,
                                            const wire::control &answer,
                                            bool *unreachable_p) noexcept;
    explicit straight_sender(const send_context &context) noexcept
        : send_route(context), move_(context.services, context.device, context.id) {}

    state progress(unsigned *happened_p) noexcept override;
    void stop() noexcept override { move_.stop(); }
    bool is_polled() const noexcept override { return move_.runs(); }
    std::atomic<uint64_t> &counter() const noexcept override;

  private:
    straight_move move_;
};

// The receiver's contiguous memory: the sender does it all, and the bytes are there with its FIN.
class straight_target final : public receive_route {
  public:
    // Null: that memory is not shared between processes, or the sender does not reach it.
    static std::unique_ptr<receive_route> prepare(receive_context &context,
                                                  const plain_memory &memory,
                                                  const wire::sender_offer &offer) noexcept;
    straight_target(receive_context &context, const wire::source_descriptor &place) noexcept
        : receive_route(context), place_(place) {}

    void answer(uint32_t flags) noexcept override;
    unsigned progress() noexcept override { return 0; }
    bool is_through() const noexcept override { return true; }
    // Nothing but the FIN tells whether its kernel wrote all.
    rest_of without_sender() noexcept override { return rest_of::lost; }
    void stop() noexcept override {}
    void release(bool) noexcept override {}
    void count_received() const noexcept override;

  private:
    const wire::source_descriptor place_;
};

// The receiver's datatype, from the sender's contiguous memory.
class straight_receiver final : public receive_route {
  public:
    // Null: the memory cannot be reached, or no kernel can be launched.
    static std::unique_ptr<receive_route> prepare(receive_context &context,
                                                  const wire::early_offer &offer) noexcept;
    explicit straight_receiver(receive_context &context) noexcept
        : receive_route(context), move_(context.services, context.device, context.id) {}

    bool reads_alone() const noexcept override { return true; }
    void answer(uint32_t) noexcept override {}  // nobody waits for one
    unsigned progress() noexcept override;
    bool is_through() const noexcept override { return is_through_; }
    bool has_failed() const noexcept override { return has_failed_; }
    bool must_stop_on_close() const noexcept override { return true; }
    void stop() noexcept override { move_.stop(); }
    void release(bool) noexcept override {}
    bool is_polled() const noexcept override { return move_.runs(); }
    void count_received() const noexcept override;

  private:
    bool is_through_ = false, has_failed_ = false;
    straight_move move_;
};

}  // namespace cuda_nc::uct
