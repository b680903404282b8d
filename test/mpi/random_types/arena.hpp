// The bytes of one rank: an arena in host memory and one in the memory under test, and what both
// must hold in the end.
#pragma once

#include <string>
#include <vector>

#include "random_types/message.hpp"
#include "support/memory.hpp"

namespace mpi_test {

class arena {
  public:
    arena(memory &device, size_t length) : device_(device), length_(length) {
        host_.resize(length);
        on_device_ = static_cast<char *>(device.allocate(length));
    }
    ~arena() { device_.release(on_device_); }
    arena(const arena &) = delete;
    arena &operator=(const arena &) = delete;

    void fill(const std::vector<char> &content) {
        host_ = content;
        expected_host_ = content;
        expected_device_ = content;
        device_.copy(on_device_, content.data(), length_);
    }
    char *address(const side &s) { return (s.in_host ? host_.data() : on_device_) + s.base; }

    void expect(const side &s, const std::vector<char> &packed) {
        std::vector<char> &expected = s.in_host ? expected_host_ : expected_device_;
        s.bytes().unpack(expected.data() + s.base, packed.data(),
                         static_cast<int64_t>(packed.size()));
    }
    void fetch() {
        found_device_.resize(length_);
        device_.copy(found_device_.data(), on_device_, length_);
    }
    void forgive_padding(const side &s) {
        std::vector<char> &expected = s.in_host ? expected_host_ : expected_device_;
        s.bytes().forgive_padding(expected.data() + s.base,
                                  (s.in_host ? host_ : found_device_).data() + s.base);
    }
    // Offset of the first wrong byte in [start, end), or npos.
    size_t first_wrong(size_t start, size_t end) const {
        for (size_t i = start; i < end; ++i) {
            if (host_[i] != expected_host_[i] || found_device_[i] != expected_device_[i]) {
                return i;
            }
        }
        return std::string::npos;
    }
    bool right() const { return host_ == expected_host_ && found_device_ == expected_device_; }

  private:
    memory &device_;
    size_t length_;
    char *on_device_;
    std::vector<char> host_;
    std::vector<char> expected_host_, expected_device_, found_device_;
};

}  // namespace mpi_test
