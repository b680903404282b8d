// One call of UCP to send rendezvous data: what pack() is told, and what is sent in its place.
#pragma once

#include <optional>

#include "uct/cuda_nc/protocol/sending.hpp"
#include "uct/cuda_nc/engine/traffic.hpp"

namespace cuda_nc::uct {

class offering final : public pack_call {
  public:
    // Current until it ends.
    offering(traffic &owner, endpoint &ep, abi::uct_pack_callback pack, void *arg) noexcept
        : owner_(owner), ep_(ep), pack_(pack), arg_(arg) {
        current_ = this;
    }
    ~offering() { current_ = nullptr; }

    pack_answer ask(direct_end &end, uint64_t offset, size_t *length_p) noexcept override;
    pack_answer answer() const noexcept { return answer_; }

    // For the carrier: UCP's message, or ours in its place.
    static size_t compose(void *destination, void *self) noexcept;
    // What UCP is told, given what the carrier said.
    ssize_t conclude(ssize_t sent) noexcept;

  private:
    std::optional<uint64_t> choose_first(uint64_t bytes, uint64_t asked) const noexcept;
    sending *begin(direct_end &end) noexcept;

    traffic &owner_;
    endpoint &ep_;
    const abi::uct_pack_callback pack_;
    void *const arg_;
    pack_answer answer_ = pack_answer::host;
    sending *message_ = nullptr;  // until the carrier is called
    uint64_t id_ = 0;
    bool offers_ = false;
    bool ends_ = false;   // sends the end
    uint64_t first_ = 0;  // bytes that go with the offer
    size_t claimed_ = 0;  // what UCP believes to have packed
};

}  // namespace cuda_nc::uct
