// A message that leaves one of our GPUs: packed slot by slot into the receiver's ring.
#pragma once

#include <chrono>
#include <memory>

#include "uct/cuda_nc/direct.hpp"
#include "uct/cuda_nc/ring.hpp"
#include "uct/cuda_nc/wire.hpp"

namespace cuda_nc::uct {

struct endpoint;
class traffic;

class sending final : public direct_message {
  public:
    // Packed bytes that go with an offer to a receiver that does not know its messages otherwise; a
    // multiple of every word that kernels use.
    static constexpr uint64_t first_bytes = 1024;

    enum class state : uint8_t {
        made,
        offered,   // waits for the receiver's answer
        moving,    // packs
        complete,  // all bytes are in the ring or beyond, and the receiver has been told of each
        declined   // goes by host memory
    };

    sending(traffic &owner, endpoint &ep, direct_end &end, uint64_t id) noexcept;
    ~sending();

    void leave() noexcept override;

    // `first`: the bytes that went with the offer.
    void offered(uint64_t first) noexcept;
    void accepted(const wire::control &answer) noexcept;
    void credited(unsigned index) noexcept;
    // Ends the GPUs' work and lets the rest go by host memory.
    void give_up() noexcept;
    void endpoint_lost() noexcept { ep_ = nullptr; }
    void rest_sent() noexcept { rest_sent_ = true; }
    unsigned progress() noexcept;  // how much has happened

    state now() const noexcept { return state_; }
    uint64_t id() const noexcept { return id_; }
    uint64_t receiver() const noexcept { return receiver_; }
    uint64_t total() const noexcept { return total_; }
    uint64_t first() const noexcept { return first_; }
    const endpoint *ep() const noexcept { return ep_; }
    bool is_packing() const noexcept { return packing_ != 0; }
    bool is_settled() const noexcept {
        return state_ == state::complete || state_ == state::declined;
    }

  private:
    enum class slot_state : uint8_t { empty, packing, full };
    struct slot {
        slot_state state = slot_state::empty;
        uint64_t offset = 0, length = 0;
        std::unique_ptr<gpu::event> done;
    };

    bool fill_slots() noexcept;
    void tell_data(unsigned index) noexcept;
    void end_work() noexcept;
    void say_cancel() noexcept;

    traffic &owner_;
    endpoint *ep_;
    direct_end *end_;
    const uint64_t id_;
    const uint64_t total_;
    const int device_;
    state state_ = state::made;
    bool rest_sent_ = false;
    uint64_t receiver_ = 0;  // its message
    char *ring_ = nullptr;
    uint64_t slot_size_ = 0;
    unsigned num_slots_ = 0;
    unsigned packing_ = 0;
    uint64_t first_ = 0, next_ = 0;  // packed bytes
    slot slots_[ring::num_slots];
    std::chrono::steady_clock::time_point deadline_;
};

}  // namespace cuda_nc::uct
