// The route "slots": the sender's kernels pack into a few slots that the receiver lends, and the
// CPUs tell each other of each slot that is full or empty again. The slots lie in the receiver's
// GPU memory, or in pinned host memory that both processes share ("host slots").
#pragma once

#include <memory>

#include "uct/cuda_nc/memory/peer_memory.hpp"
#include "uct/cuda_nc/memory/ring.hpp"
#include "uct/cuda_nc/protocol/route.hpp"

namespace cuda_nc::uct {

class slot_sender : public send_route {
  public:
    // The answer accept_slots, which anyone may have made. Null: the slots cannot be used; then
    // *unreachable_p says whether their memory is to blame.
    static std::unique_ptr<send_route> open(const send_context &context,
                                            const wire::control &answer,
                                            bool *unreachable_p) noexcept;
    ~slot_sender() override;

    state progress(unsigned *happened_p) noexcept final;
    bool handle(const wire::control &message) noexcept final;
    void stop() noexcept final;
    bool is_polled() const noexcept final { return under_way_ != 0; }
    std::atomic<uint64_t> &counter() const noexcept override;

  protected:
    slot_sender(const send_context &context, bool on_host) noexcept
        : send_route(context), on_host_(on_host), next_(context.first) {}

    // Whether an answer describes slots at all.
    static bool has_slots(const wire::control &answer) noexcept;
    // `number` slots of `size` bytes each. False: out of resources.
    bool begin(unsigned number, uint64_t size) noexcept;

    // Where our kernels pack slot `index`.
    virtual char *slot_address(unsigned index) const noexcept {
        return memory_.address + index * slot_size_;
    }
    // Brings a packed slot to the receiver; called until it does not return UCS_INPROGRESS.
    virtual ucs_status_t deliver_slot(unsigned /*index*/, uint64_t /*length*/) noexcept {
        return UCS_OK;  // it was packed there
    }

  private:
    enum class slot_state : uint8_t {
        empty,
        packing,
        packed,  // is on its way to the receiver
        full     // the receiver has it
    };
    struct slot {
        slot_state state = slot_state::empty;
        uint64_t offset = 0, length = 0;  // packed bytes
        std::unique_ptr<gpu::event> done;
    };

    bool fill_slots() noexcept;
    ucs_status_t progress_slot(slot &one, unsigned index) noexcept;
    void tell_full(const slot &one, unsigned index) noexcept;

    const bool on_host_;
    peer_memory memory_;
    uint64_t slot_size_ = 0;
    unsigned num_slots_ = 0;
    unsigned under_way_ = 0;  // slots that are packing or packed
    uint64_t next_;           // packed bytes before it are in slots, or beyond
    slot slots_[ring::most_slots];
};

class slot_receiver : public receive_route {
  public:
    // Null: there is no memory to lend; nothing was said.
    static std::unique_ptr<receive_route> prepare(receive_context &context,
                                                  const wire::sender_offer &offer) noexcept;
    ~slot_receiver() override;

    void answer(uint32_t flags) noexcept override;
    unsigned progress() noexcept final;
    bool handle(const wire::control &message) noexcept final;
    void handle_fin() noexcept final;
    bool is_through() const noexcept final;
    rest_of without_sender() noexcept final;
    ucs_status_t status() const noexcept final { return status_; }
    void stop() noexcept final;
    void release(bool sender_is_through) noexcept final;
    bool is_polled() const noexcept final { return unpacking_ != 0; }
    void count_received() const noexcept override;

  protected:
    explicit slot_receiver(receive_context &context) noexcept : receive_route(context) {}

    // Takes the memory of `slots` over. False: there was none, or out of resources.
    bool begin(const ring &slots) noexcept;
    const region &memory() const noexcept { return slots_memory_.memory; }
    // What an answer says of the slots.
    void describe(wire::control *answer_p) const noexcept;
    // A silent sender may still write to `memory`.
    virtual void keep_from_silent_sender(const region &memory) noexcept;

  private:
    struct slot {
        bool unpacking = false;
        uint64_t length = 0;
        std::unique_ptr<gpu::event> done;
    };

    void finish_slot(unsigned index, ucs_status_t status) noexcept;

    ring slots_memory_;
    bool has_fin_ = false;
    ucs_status_t status_ = UCS_OK;
    uint64_t announced_ = 0, unpacked_ = 0;  // bytes
    unsigned unpacking_ = 0;                 // slots
    slot slots_[ring::most_slots];
};

}  // namespace cuda_nc::uct
