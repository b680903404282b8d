#include "ucs/backend/sim/arena.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cerrno>

namespace cuda_nc::gpu::sim {
namespace {

constexpr uintptr_t block = uintptr_t(2) << 20;

// Who remembers that a block of 2 MiB is the host's must not meet a GPU's memory in it.
TEST(arena, shares_no_block_of_addresses_with_host_memory) {
    for (size_t limit : {size_t(1) << 20, size_t(5) << 20}) {
        std::unique_ptr<arena> one = arena::make(limit);
        ASSERT_NE(one, nullptr);
        EXPECT_EQ(one->begin() % block, 0u);
        const uintptr_t last = (one->end() - 1) / block * block;
        for (uintptr_t at = last; at < last + block; at += page) {
            void *found = mmap(reinterpret_cast<void *>(at), page, PROT_NONE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
            EXPECT_EQ(found, MAP_FAILED) << "free";
            EXPECT_EQ(errno, EEXIST);
            if (found != MAP_FAILED) {
                munmap(found, page);
            }
        }
    }
}

}  // namespace
}  // namespace cuda_nc::gpu::sim
