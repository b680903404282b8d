// A buffer that knows which bytes it must hold.
#pragma once

#include <cstdint>
#include <vector>

#include "support/made_type.hpp"
#include "support/memory.hpp"

namespace mpi_test {

// Room for `count` elements of a type, with bytes around it that nothing may touch, filled with
// bytes that depend on the type map's span and on `key` alone.
class typed_buffer {
  public:
    typed_buffer(memory &where, const made_type &type, int count, uint64_t key);
    // A type map with a handle for it, e.g. of absolute addresses; MPI's count is then one.
    typed_buffer(memory &where, type_map all, uint64_t key);
    ~typed_buffer() { where_.release(start_); }
    typed_buffer(const typed_buffer &) = delete;
    typed_buffer &operator=(const typed_buffer &) = delete;

    // What MPI is given: where displacement 0 is.
    void *address() const { return start_ + origin_; }
    const type_map &map() const { return map_; }
    int64_t size() const { return map_.size(); }  // packed bytes
    bool is_on_device() const { return where_.is_device(); }

    // New bytes everywhere.
    void refill(uint64_t key);
    // Writes these packed bytes.
    void store(const std::vector<char> &packed);
    // Packed bytes, as they must be by now.
    std::vector<char> packed() const;
    // These packed bytes must have arrived, and nothing else changed.
    void expect(const std::vector<char> &packed);
    // Bytes of the type map may hold anything from now on, those around them may not.
    void expect_anything();
    // Whether every byte, also around the type map, is what it must be.
    bool right() const;

  private:
    memory &where_;
    type_map map_;
    char *start_ = nullptr;
    int64_t origin_ = 0, length_ = 0;
    std::vector<char> expected_;
    bool anything_ = false;
};

// What another rank's buffer of the same type map and of this key holds, packed.
std::vector<char> packed_content(const type_map &map, uint64_t key);

}  // namespace mpi_test
