#include "hooks/open_mpi/datatype_words.hpp"

#include <cstring>

namespace cuda_nc::hooks {
namespace {

constexpr size_t longest_header = 64;  // bytes; 16, or 40 in debug builds

bool describes(const void *datatype, size_t offset, size_t bytes) noexcept {
    constexpr uint16_t plain =
        datatype_words::committed | datatype_words::contiguous | datatype_words::no_gaps;
    datatype_words words;
    std::memcpy(&words, static_cast<const char *>(datatype) + offset, sizeof(words));
    const auto extent = static_cast<ptrdiff_t>(bytes);
    return (words.flags & plain) == plain && words.size == bytes && words.true_lb == 0 &&
           words.true_ub == extent && words.lb == 0 && words.ub == extent;
}

}  // namespace

size_t find_datatype_words(const known_types &types) noexcept {
    if (types.of_1_byte == nullptr || types.of_8_bytes == nullptr) {
        return 0;
    }
    for (size_t offset = sizeof(void *); offset <= longest_header; offset += sizeof(void *)) {
        if (describes(types.of_1_byte, offset, 1) && describes(types.of_8_bytes, offset, 8)) {
            return offset;
        }
    }
    return 0;
}

}  // namespace cuda_nc::hooks
