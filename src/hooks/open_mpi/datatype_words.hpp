// What Open MPI's datatype object says of its bytes, beside their list.
#pragma once

#include <cstddef>
#include <cstdint>

#include "hooks/open_mpi/convertor_map.hpp"

namespace cuda_nc::hooks {

// The members of an opal_datatype_t from its flags on: the same in Open MPI 4 and 5. The object's
// header in front of them is longer in debug builds.
struct datatype_words {
    static constexpr uint16_t committed = 0x4;
    static constexpr uint16_t contiguous = 0x10;  // the bytes of one element
    static constexpr uint16_t no_gaps = 0x20;     // and those of any number of elements
    static constexpr uint16_t user_ub = 0x80;     // the program set the upper bound

    uint16_t flags;
    uint16_t id;
    uint32_t used_types;
    size_t size;  // packed bytes of one element
    ptrdiff_t true_lb, true_ub, lb, ub;
    size_t num_members;
    uint32_t alignment;  // bytes; the extent is rounded up to it
};

// The list of members of an opal_datatype_t.
struct member_list {
    static constexpr size_t offset = 128;       // bytes behind the words
    static constexpr size_t bytes_of_one = 32;  // of a member

    size_t room;  // members; by malloc()
    size_t used;  // Open MPI writes one more at the commit
    void *members;
};

// Offset in bytes of the words within every datatype, told by the two that are known; 0: unknown.
size_t find_datatype_words(const known_types &types) noexcept;

}  // namespace cuda_nc::hooks
