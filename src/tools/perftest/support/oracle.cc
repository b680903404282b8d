#include "tools/perftest/support/oracle.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/core.h>

namespace cuda_nc::tools {

std::vector<char> noise(size_t size, uint64_t seed) {
    std::vector<char> bytes(size);
    uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
    for (size_t i = 0; i < size; i += sizeof(state)) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        std::memcpy(&bytes[i], &state, std::min(sizeof(state), size - i));
    }
    return bytes;
}

std::vector<char> expected_target(const layout &what, gpu::direction dir,
                                  const std::vector<char> &source,
                                  const std::vector<char> &target) {
    std::vector<char> result = target;
    layout_cursor blocks(what, 0);
    size_t packed = 0;
    for (block one = blocks.next(UINT64_MAX); one.length != 0; one = blocks.next(UINT64_MAX)) {
        auto at = static_cast<size_t>(one.displacement - what.lower_bound());
        size_t from = dir == gpu::direction::unpack ? packed : at;
        size_t to = dir == gpu::direction::pack ? packed : at;
        std::memcpy(&result[to], &source[from], one.length);
        packed += one.length;
    }
    return result;
}

std::string compare(const std::vector<char> &expected, const std::vector<char> &found) {
    if (expected == found) {
        return "";
    }
    auto first = std::mismatch(expected.begin(), expected.end(), found.begin());
    return fmt::format("byte {} of {} is {:#04x}, expected {:#04x}", first.first - expected.begin(),
                       expected.size(), static_cast<unsigned char>(*first.second),
                       static_cast<unsigned char>(*first.first));
}

}  // namespace cuda_nc::tools
