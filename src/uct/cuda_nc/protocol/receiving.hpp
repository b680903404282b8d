// A message that comes to one of our GPUs: by a pipe, unpacked slot by slot from a ring of ours, or
// pulled from the sender's memory.
#pragma once

#include <memory>

#include "uct/cuda_nc/protocol/direct.hpp"
#include "uct/cuda_nc/memory/peer_memory.hpp"
#include "uct/cuda_nc/pipe/drive.hpp"
#include "uct/cuda_nc/memory/ring.hpp"
#include "uct/cuda_nc/memory/source.hpp"
#include "uct/cuda_nc/protocol/wire.hpp"

namespace cuda_nc::uct {

struct endpoint;
class traffic;

class receiving final : public direct_message {
  public:
    // The message has `total` bytes, of which `first` have arrived with the offer. UCP calls the
    // receive `request`.
    receiving(traffic &owner, endpoint &ep, direct_end &end, uint64_t id, uint64_t sender,
              uint64_t request, uint64_t total, uint64_t first) noexcept;
    ~receiving();

    // Also where the user's side ends before the message does: then the ring is kept until the
    // sender has said that it writes no more.
    void leave() noexcept override;

    // The answer to the sender's offer: `flags` as in the message. False: not this way, and nothing
    // was said.
    bool accept_pull(const wire::early_terms &terms, uint32_t flags) noexcept;
    bool accept_pipe(const wire::pipe_offer &offer, uint32_t flags) noexcept;
    bool accept_slots(const wire::pipe_offer &offer, uint32_t flags) noexcept;
    // For a sender on another host.
    bool accept_puts(uint32_t flags) noexcept;
    void take_data(const wire::control &message) noexcept;
    void called(uint64_t segment) noexcept;
    // All bytes have been announced. UCP's header is kept for delivery.
    void take_rest(const wire::rndv_header &header, uint64_t length) noexcept;
    void cancelled() noexcept;
    void endpoint_lost() noexcept;
    unsigned progress() noexcept;  // how much has happened; may erase this message

    uint64_t id() const noexcept { return id_; }
    uint64_t sender() const noexcept { return sender_; }
    uint64_t peer() const noexcept { return peer_; }
    const endpoint *ep() const noexcept { return ep_; }
    // Nobody but progress() will see what its GPU does next.
    bool is_polled() const noexcept { return unpacking_ != 0; }
    bool is_busy() const noexcept {
        return unpacking_ != 0 || (by_pipe_ && end_ != nullptr && !stopped_);
    }

  private:
    struct slot {
        bool unpacking = false;
        uint64_t length = 0;
        std::unique_ptr<gpu::event> done;
    };

    uint64_t rest() const noexcept { return total_ - first_; }
    unsigned share_of_channels(uint64_t bytes, unsigned most) const noexcept;
    bool take_pipe_side() noexcept;
    bool take_slots(const ring &slots) noexcept;
    bool moves_tables(const layout *target) noexcept;
    bool goes_by_copy(const gpu::device &gpu, const gpu::pipe_work &pull, const layout &target,
                      const char *base) const noexcept;
    void begin_drive(const gpu::pipe_work &work, uint64_t segment, bool in_memory_order) noexcept;
    void end_work() noexcept;
    void finish_slot(unsigned index, ucs_status_t status) noexcept;
    void deliver() noexcept;
    void say(wire::control_kind kind, uint64_t number) noexcept;
    unsigned progress_slots() noexcept;
    unsigned progress_pipe() noexcept;
    void release(bool sender_is_through) noexcept;

    traffic &owner_;
    endpoint *ep_;
    direct_end *end_;  // null: the user's side has left
    const uint64_t id_;
    const uint64_t sender_;  // its message
    const uint64_t peer_;    // identity of the sender's interface
    const uint64_t request_;
    const uint64_t total_, first_;
    const int device_;
    bool by_pipe_ = false;
    bool pulls_ = false;                          // the pipe has no other side
    bool by_copy_ = false;                        // it is pulled by a copy engine
    bool is_answered_ = false, is_told_ = false;  // a sender: that it is pulled from; that all is
    bool stopped_ = false;                        // the sender has been told to stop
    ucs_status_t failed_ = UCS_OK;
    bool has_rest_ = false;
    wire::rndv_header header_ = {};
    process_id sending_process_ = {};

    region memory_;
    peer_memory credits_;
    source source_;
    unsigned promised_ = 0;  // channels
    pipe_side *side_ = nullptr;
    pipe_drive drive_;

    uint64_t slot_size_ = 0;
    unsigned num_slots_ = 0;
    bool on_host_ = false;                   // the slots
    bool by_carrier_ = false;                // a network writes there
    uint64_t announced_ = 0, unpacked_ = 0;  // bytes
    unsigned unpacking_ = 0;
    slot slots_[ring::most_slots];
};

}  // namespace cuda_nc::uct
