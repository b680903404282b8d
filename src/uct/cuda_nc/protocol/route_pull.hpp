// The route "pull": one kernel of the receiver's GPU takes the bytes from the sender's layout to
// its own. The sender launches nothing, and no memory is lent.
//
// As a rule the sender hears of the end alone, by UCP's ATS (receive_message.hpp). Where UCP's RTR
// has gone already, to a loopback, sender and receiver tell each other by control messages.
#pragma once

#include <memory>

#include "uct/cuda_nc/protocol/driven_receiver.hpp"
#include "uct/cuda_nc/protocol/source.hpp"

namespace cuda_nc::uct {

// The same for the route "copy".
class pull_sender final : public send_route {
  public:
    using send_route::send_route;

    state progress(unsigned *) noexcept override { return state_; }
    bool handle(const wire::control &message) noexcept override;
    void stop() noexcept override {}
    bool sends_fin_ahead() const noexcept override { return true; }
    std::atomic<uint64_t> &counter() const noexcept override;

  private:
    state state_ = state::moving;
};

class pull_receiver : public driven_receiver {
  public:
    // What the message would go by otherwise.
    enum class instead_of : uint8_t { straight, pipe, slots };

    // A pull, or a copy where that is quicker. Null: it cannot be, or does not pay; nothing was
    // said.
    static std::unique_ptr<receive_route> prepare(receive_context &context,
                                                  const wire::early_offer &offer,
                                                  instead_of other) noexcept;
    ~pull_receiver() override;

    bool reads_alone() const noexcept final { return true; }
    void answer(uint32_t flags) noexcept final;
    unsigned progress() noexcept final;
    void handle_fin() noexcept final { has_fin_ = true; }
    bool is_through() const noexcept final;
    bool has_failed() const noexcept final;
    rest_of without_sender() noexcept final;
    bool must_stop_on_close() const noexcept final { return is_answered_ && !is_told_; }
    void stop() noexcept final;
    void release(bool sender_is_through) noexcept override;
    void count_received() const noexcept override;

  protected:
    pull_receiver(receive_context &context, source &&from) noexcept
        : driven_receiver(context), source_(std::move(from)) {}

  private:
    source source_;
    gpu::pipe_work work_;
    bool lone_list_ = false;
    bool is_answered_ = false;  // the sender knows that it is pulled from
    bool has_fin_ = false;
    bool is_told_ = false;  // the sender knows that all bytes have been read
};

}  // namespace cuda_nc::uct
