// The users' sides of the fuzz test: rows of GPU memory with a margin on both sides, and as much of
// UCP as sends and receives them. Unlike network_ends.hpp they expect nothing of a peer: what it
// says may be nonsense.
#pragma once

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>
#include <vector>

#include "ucs/layout/layout.hpp"
#include "uct/cuda_nc/protocol/rndv_sender.hpp"
#include "uct/cuda_nc/protocol/wire.hpp"
#include "uct/cuda_nc/stub_network.hpp"
#include "uct/cuda_nc/thread_context.hpp"
#include "uct/cuda_nc/user_buffer.hpp"

namespace cuda_nc::uct {

// Of two sides of one message, the same.
struct rows {
    uint64_t number, length, pitch;  // bytes; length <= pitch
    bool told;                       // the transport learns the layout, so that it can pull

    uint64_t bytes() const { return number * length; }
};

class fuzz_buffer : public user_buffer {
  public:
    static constexpr size_t margin = 4096;

    explicit fuzz_buffer(const rows &of) : rows_(of), size_(2 * margin + of.number * of.pitch) {
        gpu::device *gpu = gpu::platform::instance().get_device(0);
        EXPECT_EQ(gpu->allocate(size_, &memory_), UCS_OK);
        EXPECT_EQ(gpu->create_stream(&stream_), UCS_OK);
        layout_builder one;
        one.append(0, of.length);
        what_ = one.finish()->repeat(of.number, static_cast<int64_t>(of.pitch));
        const auto state = ucx_state();
        std::memcpy(request + wire::request_state_offset, &state, sizeof(state));
        known().insert(this);
        content_.assign(size_, '\x5a');
        write();
    }
    ~fuzz_buffer() {
        end();
        known().erase(this);
    }
    fuzz_buffer(const fuzz_buffer &) = delete;
    fuzz_buffer &operator=(const fuzz_buffer &) = delete;

    // The user's request has ended.
    void end() {
        if (message != nullptr) {
            message->leave();
        }
    }
    int device() const noexcept override { return 0; }
    uint64_t packed_bytes() const noexcept override { return rows_.bytes(); }
    uint64_t ucx_state() const noexcept override { return reinterpret_cast<uint64_t>(this); }
    gpu::allocation_info allocation() const noexcept override {
        return gpu::platform::instance().query(memory_->address()).allocation;
    }
    const layout *laid_out(char **base_p) const noexcept override {
        *base_p = memory_->address() + margin;
        return rows_.told ? what_.get() : nullptr;
    }
    ucs_status_t enqueue(uint64_t offset, uint64_t length, char *packed,
                         gpu::event &done) noexcept override {
        EXPECT_LE(length, packed_bytes());
        EXPECT_LE(offset, packed_bytes() - length);
        while (length != 0) {
            const uint64_t in_row = offset % rows_.length;
            const uint64_t part = std::min(length, rows_.length - in_row);
            char *here = memory_->address() + margin + offset / rows_.length * rows_.pitch + in_row;
            ucs_status_t status =
                sends() ? stream_->copy(packed, here, part) : stream_->copy(here, packed, part);
            if (status != UCS_OK) {
                return status;
            }
            offset += part;
            packed += part;
            length -= part;
        }
        return stream_->record(done);
    }
    ucs_status_t prepare(gpu::pipe_work &work, gpu::stream &,
                         bool in_memory_order) noexcept override {
        work.dir = sends() ? gpu::direction::pack : gpu::direction::unpack;
        work.layout = &(in_memory_order ? what_->in_memory_order() : *what_).view();
        work.on_host = work.layout;
        work.base = memory_->address() + margin;
        return UCS_OK;
    }
    // Packed bytes.
    void fill(const std::vector<char> &with) {
        for (uint64_t row = 0; row < rows_.number; ++row) {
            std::memcpy(content_.data() + margin + row * rows_.pitch,
                        with.data() + row * rows_.length, rows_.length);
        }
        write();
    }
    std::vector<char> read() const {
        const std::vector<char> seen = all();
        std::vector<char> packed(packed_bytes());
        for (uint64_t row = 0; row < rows_.number; ++row) {
            std::memcpy(packed.data() + row * rows_.length,
                        seen.data() + margin + row * rows_.pitch, rows_.length);
        }
        return packed;
    }
    // Nobody has written beside the rows; a sender's rows are as they were, too.
    bool is_intact() const {
        std::vector<char> seen = all();
        for (uint64_t row = 0; row < rows_.number && !sends(); ++row) {
            const uint64_t at = margin + row * rows_.pitch;
            std::memcpy(seen.data() + at, content_.data() + at, rows_.length);
        }
        return seen == content_;
    }
    // No other buffer is known by the number.
    static user_buffer *find(uint64_t word) noexcept {
        auto *one = reinterpret_cast<fuzz_buffer *>(word);
        return known().count(one) != 0 ? one : nullptr;
    }
    alignas(8) char request[256] = {};  // UCP's

  protected:
    static std::set<fuzz_buffer *> &known() {
        static std::set<fuzz_buffer *> all;
        return all;
    }
    char *address_of(uint64_t offset) const {
        return memory_->address() + margin + offset / rows_.length * rows_.pitch +
               offset % rows_.length;
    }
    // Between packed bytes of the user's memory and those of UCP.
    void move(char *packed, uint64_t offset, uint64_t length) {
        while (length != 0) {
            const uint64_t part = std::min(length, rows_.length - offset % rows_.length);
            char *here = address_of(offset);
            stub::now->copy(sends() ? packed : here, sends() ? here : packed, part);
            offset += part;
            packed += part;
            length -= part;
        }
    }

  private:
    void write() { stub::now->copy(memory_->address(), content_.data(), size_); }
    std::vector<char> all() const {
        std::vector<char> seen(size_);
        stub::now->copy(seen.data(), memory_->address(), size_);
        return seen;
    }
    const rows rows_;
    const size_t size_;
    layout_ref what_;
    std::vector<char> content_;
    std::unique_ptr<gpu::memory> memory_;
    std::unique_ptr<gpu::stream> stream_;
};

class fuzz_receiver final : public fuzz_buffer {
  public:
    using fuzz_buffer::fuzz_buffer;
    // UCP's handler of rendezvous data.
    static ucs_status_t handle(void *, void *data, size_t length, unsigned) {
        wire::rndv_header header;
        EXPECT_GE(length, sizeof(header));
        std::memcpy(&header, data, sizeof(header));
        uint64_t word;
        std::memcpy(&word, reinterpret_cast<char *>(header.request) + wire::request_state_offset,
                    sizeof(word));
        auto *to = dynamic_cast<fuzz_receiver *>(static_cast<fuzz_buffer *>(find(word)));
        unpack_call *call = std::exchange(unpack_call::current_, nullptr);
        if (to != nullptr) {
            to->accept(call, static_cast<char *>(data) + sizeof(header), length - sizeof(header),
                       header.offset);
        }
        return UCS_OK;
    }
    bool is_complete() const { return arrived_ >= packed_bytes(); }
    bool by_gpu = false;

  private:
    void accept(unpack_call *call, char *data, size_t length, uint64_t offset) {
        if (call != nullptr && call->fin) {
            EXPECT_EQ(call->buffer, this);
            by_gpu = call->status == UCS_OK;
            arrived_ += length;
            return;
        }
        // As UCP, which counts bytes, does with what is beyond the end.
        if (is_complete() || offset > packed_bytes() || length > packed_bytes() - offset) {
            return;
        }
        if (call == nullptr) {
            end();
        }
        move(data, offset, length);
        arrived_ += length;
        if (call != nullptr && !is_complete()) {
            call->finder = ucx_state();
        }
    }
    uint64_t arrived_ = 0;
};

class fuzz_sender final : public rndv_sender<fuzz_buffer> {
  public:
    using rndv_sender::rndv_sender;
};

}  // namespace cuda_nc::uct
