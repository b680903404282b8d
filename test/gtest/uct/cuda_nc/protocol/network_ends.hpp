// As much of UCP and of a datatype as it takes to send a message from the GPU memory of one host to
// that of another.
#pragma once

#include <cstring>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "uct/cuda_nc/protocol/rndv_sender.hpp"
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
        end();
        known().erase(this);
    }
    // The user's request has ended.
    void end() {
        if (message != nullptr) {
            message->leave();
        }
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
    void move(char *packed, uint64_t offset, uint64_t length) {
        stub::now->copy(packed, memory_->address() + offset, length);
    }
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
        if (call == nullptr) {
            end();
        }
        stub::now->copy(memory_->address() + offset, data, length);
        if (call != nullptr) {
            call->finder = ucx_state();
        }
    }
    uint64_t arrived_ = 0;
};

class fake_network_sender final : public rndv_sender<network_end> {
  public:
    using rndv_sender::rndv_sender;
};

}  // namespace cuda_nc::uct
