// What the matrix sends: messages, and the users' buffers with every byte of them.
#pragma once

#include <cuda_nc/cuda_nc.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "bench/test_memory.hpp"
#include "test/uct/options.hpp"

namespace matrix {

struct message {
    int id, from, to;
    size_t bytes;  // packed
    size_t room;   // of the receiver, in bytes; at least as many
    struct side {
        char kind;
        size_t block, stride;  // bytes
        size_t columns;  // more than 1: a matrix of so many columns of blocks, column by column
        size_t growth;   // bytes by which each block is longer than the one before: a triangle
        bool ragged;     // blocks of all lengths up to twice `block`

        bool is_contiguous() const { return kind == 'c' || kind == 'p'; }
        bool is_on_gpu() const { return kind == 'g' || kind == 'p' || kind == 'v'; }
        bool is_list() const { return kind == 'i' || kind == 'v'; }
    } send, receive;
    char call;
    bool unexpected;
};

inline unsigned char pattern(int id, size_t i) {
    return static_cast<unsigned char>(id * 37 + i * 11 + i / 253 + i / 65521);
}

constexpr unsigned char untouched = 0xa5;

// A user's buffer of one side, and how UCP is told of it.
class buffer {
  public:
    buffer(const message &what, const message::side &side, bool sender)
        : what_(what), side_(side), size_(sender ? what.bytes : what.room) {
        if (side.is_contiguous()) {
            blocks_ = {{0, size_}};
        } else {
            place_blocks();
        }
        size_t end = 0;
        for (const place &one : blocks_) {
            end = std::max(end, one.at + one.length);
        }
        host_.assign(end + 1, untouched);
        if (sender) {
            each_byte([&](size_t packed, size_t at) { host_[at] = pattern(what.id, packed); });
        }
        if (side.is_on_gpu()) {
            gpu_ = test_memory::make(chosen.memory, host_.size(), rank_);
            if (gpu_ == nullptr) {
                fail("no GPU memory");
            }
            gpu_->write(host_);
        }
        describe();
    }
    ~buffer() {
        if (made_) {
            cuda_nc_dt_destroy(datatype_);
        }
    }
    buffer(const buffer &) = delete;
    buffer &operator=(const buffer &) = delete;

    bool is_list_on_gpu() const { return side_.kind == 'v'; }
    void *address() { return iov_.empty() ? raw() : iov_.data(); }
    size_t count() const { return count_; }
    ucp_datatype_t datatype() const { return datatype_; }

    void verify() {
        if (gpu_ != nullptr) {
            host_ = gpu_->read();
        }
        std::vector<unsigned char> expected(host_.size(), untouched);
        each_byte([&](size_t packed, size_t at) { expected[at] = pattern(what_.id, packed); });
        for (size_t i = 0; i < host_.size(); ++i) {
            if (host_[i] != expected[i]) {
                char text[200];
                std::snprintf(text, sizeof(text),
                              "message %d (call %c, %c to %c, %zu bytes, blocks of %zu%s each %zu, "
                              "growing by %zu, "
                              "%zu columns): byte %zu is %02x, not %02x",
                              what_.id, what_.call, what_.send.kind, what_.receive.kind,
                              what_.bytes, side_.block, side_.ragged ? " or so" : "", side_.stride,
                              side_.growth, side_.columns, i, host_[i], expected[i]);
                fail(text);
            }
        }
    }

    // Of a message that did not come whole: no byte is another's.
    void verify_gaps() {
        if (gpu_ != nullptr) {
            host_ = gpu_->read();
        }
        each_byte([&](size_t, size_t at) { host_[at] = untouched; });
        if (std::count(host_.begin(), host_.end(), untouched) !=
            static_cast<ptrdiff_t>(host_.size())) {
            fail("a byte between the blocks was touched");
        }
    }

  private:
    struct place {
        size_t at, length;
    };

    void place_blocks() {
        std::vector<size_t> lengths;
        for (size_t left = size_, i = 0; left != 0; left -= lengths.back(), ++i) {
            const size_t some = side_.block / 4 * 2 + 1;  // in words, where a block has some
            const size_t length = side_.ragged
                                      ? (1 + i * 40503 / 7 % some) * (side_.block < 4 ? 1 : 4)
                                      : side_.block + i * side_.growth;
            lengths.push_back(std::min(left, length));
        }
        const size_t gap = side_.stride - side_.block, rows = lengths.size() / side_.columns;
        const size_t pitch =
            side_.growth == 0 ? side_.stride : lengths.size() * side_.growth + side_.stride;
        size_t end = 0;
        for (size_t i = 0; i < lengths.size(); ++i) {
            const size_t number = side_.columns == 1 ? i : i % rows * side_.columns + i / rows;
            blocks_.push_back({side_.ragged ? end : number * pitch, lengths[i]});
            end += lengths[i] + gap;
        }
    }

    void *raw() { return gpu_ != nullptr ? gpu_->address() : host_.data(); }

    template <typename visitor>
    void each_byte(visitor visit) const {
        size_t packed = 0;
        for (const place &one : blocks_) {
            for (size_t i = 0; i < one.length && packed < what_.bytes; ++i) {
                visit(packed++, one.at + i);
            }
        }
    }

    void describe() {
        if (side_.is_contiguous()) {
            datatype_ = ucp_dt_make_contig(1);
            count_ = size_;
        } else if (side_.is_list()) {
            for (const place &one : blocks_) {
                if (one.at % 7 == 0) {
                    iov_.push_back({nullptr, 0});  // is no byte
                }
                iov_.push_back({static_cast<unsigned char *>(raw()) + one.at, one.length});
            }
            datatype_ = UCP_DATATYPE_IOV;
            count_ = iov_.size();
        } else {
            std::vector<cuda_nc_block_t> blocks;
            for (const place &one : blocks_) {
                blocks.push_back({static_cast<ptrdiff_t>(one.at), one.length});
            }
            check(cuda_nc_dt_create(blocks.data(), blocks.size(),
                                    static_cast<ptrdiff_t>(host_.size()), &datatype_),
                  "cuda_nc_dt_create");
            made_ = true;
            count_ = 1;
        }
    }

    const message what_;
    const message::side side_;
    const size_t size_;  // packed bytes
    std::vector<place> blocks_;
    std::vector<unsigned char> host_;
    std::unique_ptr<test_memory> gpu_;
    std::vector<ucp_dt_iov_t> iov_;
    ucp_datatype_t datatype_ = 0;
    size_t count_ = 0;
    bool made_ = false;
};

}  // namespace matrix
