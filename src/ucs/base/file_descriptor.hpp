// A descriptor that is closed with its owner.
#pragma once

#include <unistd.h>

#include <utility>

namespace cuda_nc {

class file_descriptor {
  public:
    explicit file_descriptor(int number = -1) noexcept : number_(number) {}
    file_descriptor(file_descriptor &&other) noexcept : number_(std::exchange(other.number_, -1)) {}
    file_descriptor &operator=(file_descriptor &&other) noexcept {
        std::swap(number_, other.number_);
        return *this;
    }
    ~file_descriptor() {
        if (number_ >= 0) {
            close(number_);
        }
    }
    int number() const noexcept { return number_; }
    explicit operator bool() const noexcept { return number_ >= 0; }

  private:
    int number_;
};

}  // namespace cuda_nc
