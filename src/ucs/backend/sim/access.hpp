// How the simulator accesses memory for a device: every access is checked as on a GPU.
#pragma once

#include <cstdint>

#include "ucs/gpu/device.hpp"
#include "ucs/backend/sim/address_space.hpp"

namespace cuda_nc::gpu::sim {

// Translates a device's addresses to the simulator's. Remembers the last allocation, as most
// accesses are to the same one.
class access_checker {
  public:
    // `own`: all accesses are to lie in the device's own memory.
    access_checker(const address_space &space, int ordinal, bool own = false) noexcept
        : space_(space), ordinal_(ordinal), own_(own) {}

    // Null, logged: the device cannot access all of [address, address + length).
    char *reach(uintptr_t address, uint64_t length, const char *what) noexcept;

  private:
    char *fail(uintptr_t address, uint64_t length, const char *what, const char *why) noexcept;

    const address_space &space_;
    int ordinal_;
    bool own_;
    region known_;
};

// Replaces the addresses of a view's tables by the simulator's. False, logged, where the device
// does not reach one.
bool translate_tables(const address_space &space, int ordinal, layout_view *view) noexcept;

// Moves packed bytes [begin, end) of `work`, whose tables are translated; false, logged, at the
// first access that the device could not make.
bool move_piece(const transfer &work, int ordinal, const address_space &space, uint64_t begin,
                uint64_t end) noexcept;

// The same from the laid-out bytes of `source` to those of `target`.
bool pull_piece(const transfer &source, const transfer &target, int ordinal,
                const address_space &space, uint64_t begin, uint64_t end) noexcept;

}  // namespace cuda_nc::gpu::sim
