// Where the words of Open MPI's convertor lie that its inline functions change: that differs by
// release.
#pragma once

#include <cstddef>
#include <cstdint>

#include "hooks/open_mpi/opal_functions.hpp"

namespace cuda_nc::hooks {

constexpr size_t readable_convertor_bytes = 192;  // every release's convertor is larger

// What a convertor was prepared with.
struct convertor_content {
    const void *datatype;
    char *buffer;
    size_t count;        // elements
    size_t total;        // packed bytes
    size_t *position_p;  // packed bytes passed, as the convertor keeps them
};

// Offsets, in bytes, of words within a convertor; 0: unknown.
struct convertor_map {
    size_t position = 0;  // packed bytes passed
    size_t datatype = 0;
    size_t buffer = 0;
    size_t count = 0;  // elements
    size_t total = 0;  // packed bytes in all

    // Where `convertor` keeps how many packed bytes it has passed; null where unknown.
    size_t *position_in(void *convertor) const noexcept;

    // False where the convertor has since been given another datatype or buffer: it was copied
    // onto, by an inline function that nobody can replace.
    bool is_prepared_for(const void *convertor, const void *expected_datatype,
                         const void *expected_buffer) const noexcept;

    // False where some offset is unknown.
    bool read(void *convertor, convertor_content *content_p) const noexcept;
};

// Contiguous datatypes to prepare convertors with.
struct known_types {
    const void *of_1_byte, *of_8_bytes;
};

// Prepares `scratch` for both types, packs a few odd lengths, and finds the words that hold what
// was given and how much was packed. Throws std::bad_alloc.
convertor_map explore_convertor(void *scratch, const known_types &types, prepare_f prepare_for_send,
                                move_f pack);

}  // namespace cuda_nc::hooks
