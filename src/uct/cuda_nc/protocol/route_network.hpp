// The route "network": slots whose bytes the carrier moves from the sender's GPU memory to lent GPU
// memory of a receiver on another host, each by one put.
#pragma once

#include <memory>

#include "uct/cuda_nc/protocol/put_slots.hpp"
#include "uct/cuda_nc/protocol/route_slots.hpp"

namespace cuda_nc::uct {

class network_sender final : public slot_sender {
  public:
    // The answer accept_network, which anyone may have made. As slot_sender::open().
    static std::unique_ptr<send_route> open(const send_context &context,
                                            const wire::control &answer,
                                            bool *unreachable_p) noexcept;
    ~network_sender() override;

    // What the network still moves goes first.
    void cancel() noexcept override;
    std::atomic<uint64_t> &counter() const noexcept override;

  private:
    network_sender(const send_context &context, std::unique_ptr<put_slots> puts) noexcept
        : slot_sender(context, false), puts_(std::move(puts)) {}

    char *slot_address(unsigned index) const noexcept override { return puts_->address(index); }
    ucs_status_t deliver_slot(unsigned index, uint64_t length) noexcept override;

    std::unique_ptr<put_slots> puts_;
    bool started_[ring::most_slots] = {};  // the carrier moves the slot
};

class network_receiver final : public slot_receiver {
  public:
    // Null: there is no memory to lend, or the network takes none; nothing was said.
    static std::unique_ptr<receive_route> prepare(receive_context &context) noexcept;
    // The base's destructor would quarantine the memory.
    ~network_receiver() override;

    void answer(uint32_t flags) noexcept override;
    void count_received() const noexcept override;

  private:
    using slot_receiver::slot_receiver;
    void keep_from_silent_sender(const region &memory) noexcept override;

    const carrier_memory::registration *registered_ = nullptr;
};

}  // namespace cuda_nc::uct
