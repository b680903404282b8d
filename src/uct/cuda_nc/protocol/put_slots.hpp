// Slots of our GPU memory that a carrier moves to a receiver's on another host, each by one put.
#pragma once

#include <memory>

#include "uct/cuda_nc/carrier/carrier_memory.hpp"
#include "uct/cuda_nc/memory/ring.hpp"
#include "uct/cuda_nc/protocol/wire.hpp"

namespace cuda_nc::uct {

// Used with UCX's worker locked. Ends when nothing is under way any more, or the carrier's
// interface is closed.
class put_slots {
  public:
    // For the slots that a receiver lends, `answer`, which anyone may have made; `most` bytes of
    // one are used, fewer where memory is short. Null: they do not fit, or there is no memory for
    // ours.
    static std::unique_ptr<put_slots> open(carrier_memory &memory, int device,
                                           const wire::control &answer, uint64_t most) noexcept;
    ~put_slots();

    char *address(unsigned index) const noexcept { return ours_.address + index * slot_size_; }
    size_t slot_size() const noexcept { return slot_size_; }

    // Starts to move the first bytes of a slot. UCS_OK: they are there already; UCS_INPROGRESS;
    // UCS_ERR_NO_RESOURCE: later.
    ucs_status_t start(abi::uct_ep *carrier, unsigned index, uint64_t length) noexcept;
    // UCS_OK: they are there.
    ucs_status_t query(unsigned index) const noexcept;

    bool is_idle() const noexcept;
    // A put did not end well: nobody knows whether it still writes.
    bool has_failed() const noexcept { return failed_; }

  private:
    // UCX knows a put by its first member.
    struct put {
        abi::uct_completion completion;
        put_slots *owner;
        bool under_way;
    };

    explicit put_slots(carrier_memory &memory) noexcept : memory_(memory) {}
    bool acquire_memory(int device, unsigned num_slots, uint64_t size) noexcept;
    static void ended(abi::uct_completion *completion) noexcept;

    carrier_memory &memory_;
    region ours_;
    const carrier_memory::registration *known_ = nullptr;
    abi::uct_rkey_bundle key_ = {};
    bool has_key_ = false, failed_ = false;
    size_t slot_size_ = 0;     // of ours
    uint64_t there_ = 0;       // the address of the receiver's
    uint64_t their_size_ = 0;  // of each
    put puts_[ring::most_slots] = {};
};

}  // namespace cuda_nc::uct
