// Which process of this machine, for as long as the machine runs.
#pragma once

#include <cstdint>

namespace cuda_nc::uct {

// As it travels between processes. All zero: not known.
struct process_id {
    uint32_t pid;
    uint32_t pid_space;  // numbers and starts of processes mean the same only within it
    uint64_t started;    // clock ticks since the machine's start
};

inline bool operator==(const process_id &one, const process_id &other) noexcept {
    return one.pid == other.pid && one.pid_space == other.pid_space && one.started == other.started;
}
inline bool operator!=(const process_id &one, const process_id &other) noexcept {
    return !(one == other);
}

process_id own_process_id() noexcept;
process_id process_id_of(uint32_t pid) noexcept;  // one of our own numbering

// False where that cannot be told, and in a forked child, which has no GPU.
bool is_own(const process_id &process) noexcept;

// True when the process has ended, and with it all that its GPUs were doing, though its parent may
// not have heard of it (a zombie). False too where that cannot be told: it counts its processes
// otherwise than we do.
bool is_gone(const process_id &process) noexcept;
// Whether is_gone() will tell.
bool can_be_seen(const process_id &process) noexcept;

}  // namespace cuda_nc::uct
