// Calls of a convertor, as Open MPI makes them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>

#include "hooks/fakes.hpp"
#include "hooks/open_mpi/convertor.hpp"

namespace cuda_nc::hooks::test {

inline fake_convertor_t make_convertor() {
    fake_convertor_t made = {};
    made.remote_arch = 0xffc00203;
    return made;
}

// Moves everything in parts of at most `step` bytes, two parts a call; `packed` is where the packed
// bytes lie. Returns how many were moved.
template <typename function>
size_t move_all(function move, fake_convertor_t *convertor, char *packed, size_t length,
                size_t step) {
    size_t done = 0;
    int32_t status = 0;
    while (status == 0) {
        size_t first = std::min(step, length - done);
        size_t second = std::min(step, length - done - first);
        iovec parts[2] = {{packed + done, first}, {packed + done + first, second}};
        uint32_t num_parts = second != 0 ? 2 : 1;
        size_t moved = SIZE_MAX;
        status = move(convertor, parts, &num_parts, &moved);
        EXPECT_GE(status, 0);
        size_t in_parts = 0;
        for (uint32_t part = 0; part < num_parts; ++part) {
            in_parts += parts[part].iov_len;
        }
        EXPECT_EQ(in_parts, moved);
        done += moved;
        if (moved == 0) {
            break;
        }
    }
    EXPECT_EQ(status, 1);
    return done;
}

inline size_t move_all(bool packs, fake_convertor_t *convertor, char *packed, size_t length,
                       size_t step) {
    return move_all(packs ? convertor_pack : convertor_unpack, convertor, packed, length, step);
}

}  // namespace cuda_nc::hooks::test
