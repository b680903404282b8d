// A message that leaves one of our GPUs: by a pipe, packed slot by slot into the receiver's ring,
// or into slots of ours that the carrier moves to those of another host, or pulled by the
// receiver's GPU.
#pragma once

#include <chrono>
#include <memory>

#include "uct/cuda_nc/protocol/direct.hpp"
#include "uct/cuda_nc/memory/peer_memory.hpp"
#include "uct/cuda_nc/pipe/drive.hpp"
#include "uct/cuda_nc/carrier/put_slots.hpp"
#include "uct/cuda_nc/memory/ring.hpp"
#include "uct/cuda_nc/protocol/wire.hpp"

namespace cuda_nc::uct {

struct endpoint;
class traffic;

class sending final : public direct_message {
  public:
    // Packed bytes that go with an offer to a receiver that cannot tell otherwise which of its
    // messages it is for; a multiple of every word that kernels use.
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

    const wire::pipe_offer &offer() const noexcept { return offer_; }
    // Of the user's memory, for a receiver that may pull.
    wire::source_terms source() const noexcept;
    // `first`: the bytes that went with the offer.
    void offered(uint64_t first) noexcept;
    // The offer goes before UCP's RTS, in which UCP calls the send `request`. False: the carrier
    // has no room, and nothing has happened.
    bool offer_early(uint64_t request) noexcept;
    // True once: UCP wants the bytes, and the early offer has not been answered.
    bool take_unanswered() noexcept;
    // False: the answer is too late.
    bool accepted(const wire::control &answer) noexcept;  // accept or lend
    bool accepted_pipe(const wire::control &answer) noexcept;
    bool accepted_pull(const wire::control &answer) noexcept;
    void pulled() noexcept;
    void credited(unsigned index) noexcept;
    void called(uint64_t segment) noexcept;
    void declined(const wire::control &answer) noexcept;
    // Ends the GPUs' work and lets the rest go by host memory.
    void give_up() noexcept;
    // Ends the message too: the datatype's part need not end by itself, because UCX forgets it
    // where it aborts a send before the receiver's answer.
    void endpoint_lost() noexcept;
    // The receiver has UCP's header of the end. It may have it while it still pulls.
    void end_sent() noexcept { end_is_sent_ = true; }
    bool end_is_sent() const noexcept { return end_is_sent_; }
    bool wants_end() const noexcept { return by_pull_ && !end_is_sent_; }
    void rest_sent() noexcept;
    unsigned progress() noexcept;  // how much has happened

    state now() const noexcept { return state_; }
    uint64_t id() const noexcept { return id_; }
    uint64_t receiver() const noexcept { return receiver_; }
    uint64_t peer() const noexcept { return peer_; }
    uint64_t total() const noexcept { return total_; }
    uint64_t first() const noexcept { return first_; }
    const endpoint *ep() const noexcept { return ep_; }
    bool is_busy() const noexcept {
        return under_way_ != 0 || (state_ == state::moving && by_pipe_) || has_deadline();
    }
    // Nobody but progress() will see what its GPU or the network does next.
    bool is_polled() const noexcept { return under_way_ != 0; }
    bool is_settled() const noexcept {
        return state_ == state::complete || state_ == state::declined;
    }

  private:
    using clock = std::chrono::steady_clock;

    enum class slot_state : uint8_t {
        empty,
        packing,
        packed,   // waits for the carrier
        leaving,  // the carrier moves it
        full      // the receiver has it
    };
    struct slot {
        slot_state state = slot_state::empty;
        uint64_t offset = 0, length = 0;
        std::unique_ptr<gpu::event> done;
    };

    // Of an answer that the peer owes; nobody tells when the time is over.
    bool has_deadline() const noexcept {
        return state_ == state::offered && deadline_ != clock::time_point::max();
    }
    // To another host, where the two GPUs have nothing in common but the network.
    bool by_carrier() const noexcept;
    void make_offer() noexcept;
    bool open_slots(const wire::control &answer) noexcept;
    char *slot_address(unsigned index) const noexcept;
    bool fill_slots() noexcept;
    ucs_status_t progress_slot(unsigned index) noexcept;
    unsigned progress_slots() noexcept;
    unsigned progress_pipe() noexcept;
    void tell_data(unsigned index) noexcept;
    void end_work() noexcept;
    void say_cancel() noexcept;
    void learn_receivers(uint32_t flags) noexcept;
    void take_answer(const wire::control &answer) noexcept;
    void settle() noexcept;
    void become_complete() noexcept;
    void cannot_reach() noexcept;

    traffic &owner_;
    endpoint *ep_;
    direct_end *end_;
    const uint64_t id_;
    const uint64_t peer_;  // identity of the receiver's interface
    const uint64_t total_;
    const int device_;
    state state_ = state::made;
    bool rest_sent_ = false;
    bool by_pipe_ = false;
    bool by_pull_ = false;
    bool end_is_sent_ = false;
    bool on_host_ = false;        // the slots
    uint64_t early_request_ = 0;  // not 0: offered early, not answered
    uint64_t receiver_ = 0;       // its message
    clock::time_point deadline_;

    wire::pipe_offer offer_ = {};
    pipe_side *side_ = nullptr;
    process_id receiving_process_ = {};
    pipe_drive drive_;

    peer_memory ring_, flags_;
    std::unique_ptr<put_slots> puts_;  // null: the slots are reached by the GPU
    uint64_t slot_size_ = 0;
    unsigned num_slots_ = 0;
    unsigned under_way_ = 0;         // slots, packing to leaving
    uint64_t first_ = 0, next_ = 0;  // packed bytes
    slot slots_[ring::most_slots];
};

}  // namespace cuda_nc::uct
