// Buffers of MPI calls, moved between their datatypes' places, in memory of any kind, and host
// memory.
#pragma once

#include <cstdint>
#include <vector>

#include "hooks/mpich/pmpi.hpp"
#include "ucp/dt/packed_memory.hpp"
#include "ucs/base/status.hpp"
#include "ucs/layout/layout.hpp"

namespace cuda_nc::hooks::local {

// Why a call ends with an error; the communicator's error handler hears of it.
struct failure {
    handle comm;
    int error;
};

// Whether the CPU must not touch `count` elements at `buffer`, of which the first is `place` bytes
// behind it, and we can serve them. Asks for the kind of memory at one address, for a derived type
// at up to three.
bool on_gpu(const void *buffer, handle type, count_t count, int64_t place = 0) noexcept;

// Whether an element `place` bytes behind `buffer` has GPU memory, served or not.
bool has_gpu_memory(const void *buffer, handle type, int64_t place) noexcept;

int64_t extent_of(handle type) noexcept;
bool is_predefined(handle type) noexcept;

// Memory that MPI is given in place of a buffer, or that bytes pass through. Throws std::bad_alloc.
// `gpu`: the one that is to use it; -1: none.
dt::packed_memory host_memory(uint64_t size, int gpu = -1);

// Elements of datatypes, one after the other in packed order. Keeps their layouts, not their types.
class typed_memory {
  public:
    // Errors are thrown: failure, with this communicator.
    explicit typed_memory(handle comm) noexcept : comm_(comm) {}

    // `count` elements of `type`, `place` bytes behind `buffer`.
    void add(const void *buffer, int64_t place, count_t count, handle type);

    uint64_t size() const noexcept { return size_; }
    // The one that holds the first byte; -1: none.
    int gpu() const noexcept;
    // Memory for the packed bytes: of that GPU if `on_gpu`, where it has some left; else the
    // host's. Throws std::bad_alloc.
    dt::packed_memory memory_for_packed(bool on_gpu) const;

    void pack(const dt::packed_place &to) const;
    // The first `length` packed bytes, at most.
    void unpack(const dt::packed_place &from, uint64_t length) const;

    // To and from host memory that is laid out alike: its byte d is at to[d - lowest()]. With one
    // part alone, of so many elements, whose extents it holds as a whole: an operator of the
    // program may touch all of them, as it would in the program's array. To be said first.
    void lay_out(count_t count, handle type) noexcept;
    int64_t lowest() const noexcept { return lowest_; }
    uint64_t span() const noexcept { return static_cast<uint64_t>(highest_ - lowest_); }
    void copy_to(const dt::packed_place &to) const;
    void copy_from(const dt::packed_place &from) const;

  private:
    struct part {
        layout_ref what;
        char *base;
    };
    void must(ucs_status_t status) const;
    // Of bytes without gaps, in memory that is laid out alike.
    dt::packed_place alike(const part &one, const dt::packed_place &all) const noexcept;

    handle comm_;
    uint64_t size_ = 0;
    int64_t lowest_ = 0, highest_ = 0;
    std::vector<part> parts_;
};

}  // namespace cuda_nc::hooks::local
