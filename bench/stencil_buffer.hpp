// Doubles in host, GPU or simulated GPU memory.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "bench/test_memory.hpp"

class stencil_buffer {
  public:
    // `lead` doubles lie before the first one: a field's element (0, 0, 1) is aligned to 16 bytes
    // with one.
    stencil_buffer(const std::string &kind, int rank, size_t count, size_t lead)
        : count_(count), lead_(lead), memory_(test_memory::make(kind, bytes(), rank)) {
        if (!memory_) {
            std::fprintf(stderr, "rank %d: no %s memory of %zu bytes\n", rank, kind.c_str(),
                         bytes());
            std::exit(2);
        }
    }

    double *data() const { return static_cast<double *>(memory_->address()) + lead_; }
    void write(const std::vector<double> &values) {
        std::vector<unsigned char> image(bytes());
        std::memcpy(image.data() + lead_ * sizeof(double), values.data(), count_ * sizeof(double));
        memory_->write(image);
    }
    std::vector<double> read() {
        const std::vector<unsigned char> image = memory_->read();
        std::vector<double> values(count_);
        std::memcpy(values.data(), image.data() + lead_ * sizeof(double), count_ * sizeof(double));
        return values;
    }

  private:
    size_t bytes() const { return (count_ + lead_) * sizeof(double); }

    size_t count_, lead_;
    std::unique_ptr<test_memory> memory_;
};
