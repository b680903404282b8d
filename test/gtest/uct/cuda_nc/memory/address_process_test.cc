// What addresses of UCX's transports tell of a process.
#include "uct/cuda_nc/memory/address_process.hpp"

#include <gtest/gtest.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <unistd.h>

namespace cuda_nc::uct {
namespace {

TEST(address_process, of_posix_is_the_one_whose_descriptor_is_named) {
    const uint64_t pid = 4711, descriptor = 12, named = uint64_t{1} << 63;
    const uint64_t address = named | descriptor << 30 | pid;
    EXPECT_EQ(process_behind("posix", &address), pid);
    const uint64_t of_file = address & ~named;
    EXPECT_EQ(process_behind("posix", &of_file), 0u);
}

TEST(address_process, of_sysv_is_the_one_that_made_the_segment) {
    const int id = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600);
    ASSERT_GE(id, 0);
    const auto address = static_cast<uint64_t>(id);
    EXPECT_EQ(process_behind("sysv", &address), static_cast<uint32_t>(getpid()));
    EXPECT_EQ(shmctl(id, IPC_RMID, nullptr), 0);
    EXPECT_EQ(process_behind("sysv", &address), 0u);
}

TEST(address_process, of_a_network_is_not_known) {
    const uint64_t address = ~uint64_t{0};
    EXPECT_EQ(process_behind("tcp", &address), 0u);
}

}  // namespace
}  // namespace cuda_nc::uct
