// As much of UCP as sends a buffer by rendezvous.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "uct/cuda_nc/protocol/wire.hpp"
#include "uct/cuda_nc/thread_context.hpp"
#include "uct/cuda_nc/ucx/abi.hpp"
#include "uct/cuda_nc/user_buffer.hpp"

namespace cuda_nc::uct {

// `buffer`: a user_buffer with `request`, end(), and move(), which here brings packed bytes to UCP.
template <typename buffer>
class rndv_sender : public buffer {
  public:
    using buffer::buffer;
    bool sends() const noexcept override { return true; }
    // As UCP does after the receiver, which has a `request` too, has asked for the bytes.
    template <typename receiver>
    void send(abi::uct_ep *ep, const receiver &to) {
        ep_ = ep;
        to_ = reinterpret_cast<uint64_t>(to.request);
        carried_.function = [](void *pending) {
            return static_cast<carried *>(pending)->self->go_on();
        };
        carried_.self = this;
        if (go_on() == UCS_ERR_NO_RESOURCE) {
            while (ep_->iface->ops.ep_pending_add(ep_, &carried_, 0) != UCS_OK) {
            }
        }
    }
    bool is_complete() const { return sent_ == this->packed_bytes(); }

  private:
    struct carried {
        ucs_status_t (*function)(void *);
        char reserved[40];
        rndv_sender *self;
    };
    __attribute__((no_sanitize("address"))) ucs_status_t go_on() {
        while (sent_ < this->packed_bytes()) {
            rndv_sender *record = this;  // on the stack, as UCP's
            ssize_t sent =
                ep_->iface->ops.ep_am_bcopy(ep_, wire::rndv_data_id, pack_record, &record, 0);
            if (sent < 0) {
                EXPECT_EQ(sent, UCS_ERR_NO_RESOURCE);
                return static_cast<ucs_status_t>(sent);
            }
            sent_ += static_cast<uint64_t>(sent) - sizeof(wire::rndv_header);
        }
        return UCS_OK;
    }
    static size_t pack_record(void *destination, void *record) {
        auto &one = **static_cast<rndv_sender **>(record);
        const wire::rndv_header header = {one.to_, one.sent_};
        std::memcpy(destination, &header, sizeof(header));
        return sizeof(header) + one.pack_next(static_cast<char *>(destination) + sizeof(header));
    }
    size_t pack_next(char *destination) {
        pack_call *call = pack_call::current();
        size_t length = std::min<uint64_t>(this->packed_bytes() - sent_, 4096);
        size_t first = length;
        if (call == nullptr) {
            this->end();
        }
        switch (call != nullptr ? call->ask(*this, sent_, &first) : pack_answer::fragment) {
            case pack_answer::first:
                length = first;
                break;
            case pack_answer::wait:
                return length;
            case pack_answer::fin:
                return this->packed_bytes() - sent_;
            case pack_answer::fragment:
                break;
        }
        this->move(destination, sent_, length);
        return length;
    }
    abi::uct_ep *ep_ = nullptr;
    uint64_t to_ = 0, sent_ = 0;
    carried carried_ = {};
};

}  // namespace cuda_nc::uct
