// The oracle of the MPI tests: which bytes, in which order, a datatype covers, by the definitions
// in the MPI standard (chapter "Datatypes"), one byte run at a time. Knows no MPI library.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace mpi_test {

struct byte_run {
    int64_t displacement;
    int64_t length;
    bool padding;  // of a long double: an MPI library may copy it or not
};

class type_map {
  public:
    type_map() = default;
    type_map(std::vector<byte_run> runs, int64_t extent) : type_map(std::move(runs), 0, extent) {}
    type_map(std::vector<byte_run> runs, int64_t lb, int64_t ub)
        : runs_(std::move(runs)), lb_(lb), ub_(ub) {
        bounded_ = true;
        for (const byte_run &run : runs_) {
            size_ += run.length;
        }
    }

    // Places one copy of `element` behind all that is there.
    void add(const type_map &element, int64_t displacement) {
        for (const byte_run &run : element.runs_) {
            add_run({run.displacement + displacement, run.length, run.padding});
        }
        size_ += element.size_;
        if (!element.bounded_) {
            return;  // nothing at all, not even bounds
        }
        lb_ = bounded_ ? std::min(lb_, element.lb_ + displacement) : element.lb_ + displacement;
        ub_ = bounded_ ? std::max(ub_, element.ub_ + displacement) : element.ub_ + displacement;
        bounded_ = true;
    }

    // `count` copies, one extent apart.
    void add_many(const type_map &element, int64_t count, int64_t displacement) {
        if (count > 1 && element.is_solid()) {  // bytes by the million
            const byte_run &run = element.runs_[0];
            add({{{run.displacement, run.length * count, false}},
                 element.lb_,
                 element.lb_ + element.extent() * count},
                displacement);
            return;
        }
        if (runs_.empty() && count > 0) {
            runs_.reserve(element.runs_.size() * static_cast<size_t>(count));
        }
        for (int64_t i = 0; i < count; ++i) {
            add(element, displacement + i * element.extent());
        }
    }

    void resize(int64_t lb, int64_t extent) {
        lb_ = lb;
        ub_ = lb + extent;
        bounded_ = true;
    }

    const std::vector<byte_run> &runs() const { return runs_; }
    int64_t size() const { return size_; }
    int64_t lb() const { return lb_; }
    int64_t extent() const { return ub_ - lb_; }

    // First byte and one past the last; both 0 where there are none.
    int64_t true_lb() const {
        int64_t result = runs_.empty() ? 0 : runs_[0].displacement;
        for (const byte_run &run : runs_) {
            result = std::min(result, run.displacement);
        }
        return result;
    }
    int64_t true_ub() const {
        int64_t result = runs_.empty() ? 0 : runs_[0].displacement + runs_[0].length;
        for (const byte_run &run : runs_) {
            result = std::max(result, run.displacement + run.length);
        }
        return result;
    }

    bool is_contiguous() const {
        int64_t at = runs_.empty() ? 0 : runs_[0].displacement;
        for (const byte_run &run : runs_) {
            if (run.displacement != at) {
                return false;
            }
            at += run.length;
        }
        return true;
    }

    bool overlaps() const {
        std::vector<byte_run> sorted = runs_;
        std::sort(sorted.begin(), sorted.end(), [](const byte_run &a, const byte_run &b) {
            return a.displacement < b.displacement;
        });
        for (size_t i = 1; i < sorted.size(); ++i) {
            if (sorted[i - 1].displacement + sorted[i - 1].length > sorted[i].displacement) {
                return true;
            }
        }
        return false;
    }

    // Packed bytes of a buffer whose address 0 is `base`.
    std::vector<char> pack(const char *base) const {
        std::vector<char> packed;
        packed.reserve(static_cast<size_t>(size_));
        for (const byte_run &run : runs_) {
            packed.insert(packed.end(), base + run.displacement,
                          base + run.displacement + run.length);
        }
        return packed;
    }

    // The first `length` packed bytes go to the buffer.
    void unpack(char *base, const char *packed, int64_t length) const {
        for (const byte_run &run : runs_) {
            int64_t part = std::min(length, run.length);
            std::memcpy(base + run.displacement, packed, static_cast<size_t>(part));
            packed += part;
            length -= part;
        }
    }

    // Makes the padding of `expected` equal to that of `actual`.
    void forgive_padding(char *expected, const char *actual) const {
        for (const byte_run &run : runs_) {
            if (run.padding) {
                std::memcpy(expected + run.displacement, actual + run.displacement,
                            static_cast<size_t>(run.length));
            }
        }
    }

    bool has_padding() const {
        return std::any_of(runs_.begin(), runs_.end(), [](const byte_run &r) { return r.padding; });
    }

  private:
    // Copies of it, one extent apart, are one run.
    bool is_solid() const {
        return runs_.size() == 1 && !runs_[0].padding && runs_[0].length == extent();
    }

    void add_run(const byte_run &run) {
        if (run.length == 0) {
            return;
        }
        if (!runs_.empty()) {
            byte_run &last = runs_.back();
            if (last.displacement + last.length == run.displacement &&
                last.padding == run.padding) {
                last.length += run.length;
                return;
            }
        }
        runs_.push_back(run);
    }

    std::vector<byte_run> runs_;
    int64_t size_ = 0;
    int64_t lb_ = 0;
    int64_t ub_ = 0;
    bool bounded_ = false;
};

// Bytes of `count` elements.
inline type_map repeated(const type_map &element, int64_t count) {
    if (count == 1) {
        return element;
    }
    type_map result;
    result.add_many(element, count, 0);
    return result;
}

}  // namespace mpi_test
