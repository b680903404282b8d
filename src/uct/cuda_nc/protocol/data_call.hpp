// One call of UCP to send rendezvous data: what pack() is told to do, and what is sent in place of
// UCP's message.
#pragma once

#include <optional>

#include "uct/cuda_nc/protocol/message_services.hpp"
#include "uct/cuda_nc/protocol/send_message.hpp"
#include "uct/cuda_nc/thread_context.hpp"
#include "uct/cuda_nc/ucx/abi.hpp"

namespace cuda_nc::uct {

class data_call final : public pack_call {
  public:
    // The thread's current call from here on, until compose() has called pack() or this ends.
    data_call(message_services &services, endpoint &ep, abi::uct_pack_callback pack,
              void *arg) noexcept
        : services_(services), ep_(ep), pack_(pack), arg_(arg) {
        current_ = this;
    }
    ~data_call() { current_ = nullptr; }

    pack_answer ask(user_buffer &buffer, uint64_t offset, size_t *length_p) noexcept override;
    pack_answer answer() const noexcept { return answer_; }

    // The carrier's pack callback, `self` its argument: UCP's message, or ours in its place.
    static size_t compose(void *destination, void *self) noexcept;
    // What UCP is told, given what the carrier returned.
    ssize_t conclude(ssize_t sent) noexcept;

  private:
    std::optional<uint64_t> choose_first(uint64_t bytes, uint64_t asked) const noexcept;
    bool has_old_protocols() const noexcept;
    send_message *begin(user_buffer &buffer) noexcept;
    void decide(std::optional<uint64_t> first, size_t *length_p) noexcept;

    message_services &services_;
    endpoint &ep_;
    const abi::uct_pack_callback pack_;
    void *const arg_;
    pack_answer answer_ = pack_answer::fragment;
    send_message *message_ = nullptr;  // until the carrier is called
    uint64_t id_ = 0;
    bool sends_offer_ = false;
    bool sends_fin_ = false;
    uint64_t first_ = 0;  // bytes that go with the offer
    size_t claimed_ = 0;  // bytes that UCP believes to have packed
};

}  // namespace cuda_nc::uct
