// Which numbers of a message may be the address of one of UCP's requests.
#include "uct/cuda_nc/protocol/request_finder.hpp"

#include <gtest/gtest.h>

#include <memory>

namespace cuda_nc::uct {
namespace {

uint64_t number_of(const void *memory) {
    return reinterpret_cast<uintptr_t>(memory);
}

TEST(request_finder, addresses_of_this_machine_are_such) {
    static const uint64_t in_program = 0;
    const uint64_t on_stack = 0;
    const auto on_heap = std::make_unique<uint64_t>(0);
    const auto mapped = std::make_unique<uint64_t[]>(1 << 20);
    EXPECT_TRUE(request_finder::is_address(number_of(&in_program)));
    EXPECT_TRUE(request_finder::is_address(number_of(&on_stack)));
    EXPECT_TRUE(request_finder::is_address(number_of(on_heap.get())));
    EXPECT_TRUE(request_finder::is_address(number_of(mapped.get())));
}

// 64-bit Arm gives programs 48 bits, and lays libraries and large blocks at their upper end. (An
// emulator on x86 gives 47.)
TEST(request_finder, addresses_have_as_many_bits_as_the_machine_gives_programs) {
#ifdef __x86_64__
    constexpr unsigned bits = 47;
#else
    constexpr unsigned bits = 48;
#endif
    EXPECT_TRUE(request_finder::is_address((uint64_t{1} << bits) - 4096));
    EXPECT_FALSE(request_finder::is_address(uint64_t{1} << bits));
    EXPECT_FALSE(request_finder::is_address(uint64_t{1} << 63));
}

TEST(request_finder, numbers_of_indirect_requests_are_none) {
    for (const uint64_t number : {0, 8, 4096, 65528}) {
        EXPECT_FALSE(request_finder::is_address(number)) << number;
        EXPECT_EQ(request_finder::read(number), 0u);
    }
    const uint64_t word = 0;
    EXPECT_FALSE(request_finder::is_address(number_of(&word) + 1));
}

}  // namespace
}  // namespace cuda_nc::uct
