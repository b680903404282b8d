#include "uct/cuda_nc/memory/address_process.hpp"

#include <sys/ipc.h>
#include <sys/shm.h>

#include <cstring>

namespace cuda_nc::uct {
namespace {

// UCX's shared-memory transports begin their address with the segment of the receive queue. That of
// posix names a file descriptor of its process where this bit is set, and the process by these.
constexpr uint64_t names_descriptor = uint64_t{1} << 63;
constexpr uint64_t process_bits = (uint64_t{1} << 30) - 1;

}  // namespace

uint32_t process_behind(const std::string &name, const void *address) noexcept {
    uint64_t segment;
    if (name == "posix") {
        std::memcpy(&segment, address, sizeof(segment));
        return (segment & names_descriptor) != 0 ? static_cast<uint32_t>(segment & process_bits)
                                                 : 0;
    }
    if (name == "sysv") {
        std::memcpy(&segment, address, sizeof(segment));
        shmid_ds about = {};
        return shmctl(static_cast<int>(segment), IPC_STAT, &about) == 0
                   ? static_cast<uint32_t>(about.shm_cpid)
                   : 0;
    }
    return 0;
}

}  // namespace cuda_nc::uct
