// As much of UCP and of a datatype as it takes to send a message from the GPU memory of one host to
// that of another.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "uct/cuda_nc/thread_context.hpp"
#include "uct/cuda_nc/protocol/wire.hpp"
#include "uct/cuda_nc/user_buffer.hpp"
#include "uct/cuda_nc/stub_network.hpp"

namespace cuda_nc::uct {

using namespace wire;

// A user's contiguous memory on a GPU, and what UCP has of the request for it.
class network_end : public user_buffer {
  public:
    explicit network_end(uint64_t bytes) : bytes_(bytes) {
        gpu::device *gpu = gpu::platform::instance().get_device(0);
        EXPECT_EQ(gpu->allocate(bytes, &memory_), UCS_OK);
        EXPECT_EQ(gpu->create_stream(&stream_), UCS_OK);
        const auto state = this;
        std::memcpy(request + 136, &state, sizeof(state));
        known().insert(this);
    }
    ~network_end() {
        if (message != nullptr) {
            message->leave();
        }
        known().erase(this);
    }
    int device() const noexcept override { return 0; }
    uint64_t packed_bytes() const noexcept override { return bytes_; }
    uint64_t ucx_state() const noexcept override { return reinterpret_cast<uint64_t>(this); }
    ucs_status_t enqueue(uint64_t offset, uint64_t length, char *packed,
                         gpu::event &done) noexcept override {
        char *here = memory_->address() + offset;
        ucs_status_t status =
            sends() ? stream_->copy(packed, here, length) : stream_->copy(here, packed, length);
        return status == UCS_OK ? stream_->record(done) : status;
    }
    void fill(const std::vector<char> &with) {
        stub::now->copy(memory_->address(), with.data(), bytes_);
    }
    std::vector<char> read() const {
        std::vector<char> bytes(bytes_);
        stub::now->copy(bytes.data(), memory_->address(), bytes_);
        return bytes;
    }
    static user_buffer *find(uint64_t word) noexcept {
        auto *one = reinterpret_cast<network_end *>(word);
        return known().count(one) != 0 ? one : nullptr;
    }
    alignas(8) char request[256] = {};

  protected:
    static std::set<network_end *> &known() {
        static std::set<network_end *> all;
        return all;
    }
    const uint64_t bytes_;
    std::unique_ptr<gpu::memory> memory_;
    std::unique_ptr<gpu::stream> stream_;
};

class fake_network_receiver final : public network_end {
  public:
    using network_end::network_end;
    // UCP's handler of rendezvous data.
    static ucs_status_t take(void *, void *data, size_t length, unsigned) {
        rndv_header header;
        std::memcpy(&header, data, sizeof(header));
        uint64_t word;
        std::memcpy(&word, reinterpret_cast<char *>(header.request) + 136, sizeof(word));
        auto *to = static_cast<fake_network_receiver *>(find(word));
        if (to != nullptr) {
            to->take(static_cast<char *>(data) + sizeof(header), length - sizeof(header),
                     header.offset);
        }
        return UCS_OK;
    }
    bool is_complete() const { return arrived_ == bytes_; }
    bool by_gpu = false;

  private:
    void take(const char *data, size_t length, uint64_t offset) {
        unpack_call *call = std::exchange(unpack_call::current_, nullptr);
        arrived_ += length;
        ASSERT_LE(arrived_, bytes_);
        if (call != nullptr && call->fin) {
            EXPECT_EQ(call->buffer, this);
            EXPECT_EQ(call->status, UCS_OK);
            by_gpu = true;
            return;
        }
        if (call == nullptr && message != nullptr) {
            message->leave();
        }
        stub::now->copy(memory_->address() + offset, data, length);
        if (call != nullptr) {
            call->finder = ucx_state();
        }
    }
    uint64_t arrived_ = 0;
};

class fake_network_sender final : public network_end {
  public:
    using network_end::network_end;
    bool sends() const noexcept override { return true; }
    // As UCP does after the receiver has asked for the bytes.
    void send(abi::uct_ep *ep, const fake_network_receiver &to) {
        ep_ = ep;
        to_ = reinterpret_cast<uint64_t>(to.request);
        carried_.function = [](void *pending) {
            return static_cast<carried *>(pending)->self->go_on();
        };
        carried_.self = this;
        if (go_on() == UCS_ERR_NO_RESOURCE) {
            wait();
        }
    }
    bool is_complete() const { return sent_ == bytes_; }

  private:
    struct carried {
        ucs_status_t (*function)(void *);
        char reserved[40];
        fake_network_sender *self;
    };
    void wait() {
        while (ep_->iface->ops.ep_pending_add(ep_, &carried_, 0) != UCS_OK) {
        }
    }
    __attribute__((no_sanitize("address"))) ucs_status_t go_on() {
        while (sent_ < bytes_) {
            fake_network_sender *record = this;  // on the stack, as UCP's
            ssize_t sent = ep_->iface->ops.ep_am_bcopy(ep_, rndv_data_id, pack, &record, 0);
            if (sent < 0) {
                EXPECT_EQ(sent, UCS_ERR_NO_RESOURCE);
                return static_cast<ucs_status_t>(sent);
            }
            sent_ += static_cast<uint64_t>(sent) - sizeof(rndv_header);
        }
        return UCS_OK;
    }
    static size_t pack(void *destination, void *record) {
        auto &one = **static_cast<fake_network_sender **>(record);
        const rndv_header header = {one.to_, one.sent_};
        std::memcpy(destination, &header, sizeof(header));
        return sizeof(header) + one.pack(static_cast<char *>(destination) + sizeof(header));
    }
    size_t pack(char *destination) {
        pack_call *call = pack_call::current();
        size_t length = std::min<uint64_t>(bytes_ - sent_, 4096);
        size_t first_length = length;
        if (call == nullptr && message != nullptr) {
            message->leave();
        }
        switch (call != nullptr ? call->ask(*this, sent_, &first_length) : pack_answer::fragment) {
            case pack_answer::first:
                length = first_length;
                break;
            case pack_answer::wait:
                return length;
            case pack_answer::fin:
                return bytes_ - sent_;
            case pack_answer::fragment:
                break;
        }
        stub::now->copy(destination, memory_->address() + sent_, length);
        return length;
    }
    abi::uct_ep *ep_ = nullptr;
    uint64_t to_ = 0, sent_ = 0;
    carried carried_ = {};
};

}  // namespace cuda_nc::uct
