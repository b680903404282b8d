// Where Open MPI's convertor keeps what its inline functions change: its layout differs by release.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>

namespace cuda_nc::hooks {

constexpr size_t readable_convertor_bytes = 192;  // every release's convertor is larger

// Offsets, in bytes, of words within a convertor; 0: unknown.
struct convertor_map {
    size_t position = 0;  // packed bytes passed
    size_t datatype = 0;
    size_t buffer = 0;
    size_t count = 0;  // elements
    size_t total = 0;  // packed bytes in all
};

// Contiguous datatypes to prepare convertors with.
struct known_types {
    const void *of_1_byte, *of_8_bytes;
};

// Prepares `scratch` for both types, packs some odd lengths, and looks where these, and what was
// given, are to be found. Throws std::bad_alloc.
convertor_map explore_convertor(void *scratch, const known_types &types,
                                int32_t (*prepare_for_send)(void *, const void *, size_t,
                                                            const void *),
                                int32_t (*pack)(void *, iovec *, uint32_t *, size_t *));

}  // namespace cuda_nc::hooks
