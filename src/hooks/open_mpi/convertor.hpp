// The replacements of Open MPI's convertor calls, for the operations that do not go through UCX's
// datatypes: MPI_Pack, MPI_Bsend, the local part of collectives.
//
// A convertor whose buffer lies in GPU memory is tracked from the call that prepares it on, and we
// pack and unpack it. In host memory the original runs, except under an Open MPI that packs
// wrongly.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>

namespace cuda_nc::hooks {

// Each has the contract of the function that it replaces (hooks/interposed_symbols.h).
int32_t prepare_for_send(void *convertor, const void *datatype, size_t count,
                         const void *buffer) noexcept;
int32_t prepare_for_recv(void *convertor, const void *datatype, size_t count,
                         const void *buffer) noexcept;
int32_t convertor_pack(void *convertor, iovec *parts, uint32_t *num_parts_p,
                       size_t *length_p) noexcept;
int32_t convertor_unpack(void *convertor, iovec *parts, uint32_t *num_parts_p,
                         size_t *length_p) noexcept;
int32_t copy_same(const void *datatype, int32_t count, char *destination, char *source) noexcept;
// What a rank of a collective sends to itself; its two types may differ. The counts have 32 bits in
// Open MPI 4 and 5, where the upper half of such an argument may be anything, and 64 in later ones.
int32_t move_between(const void *source, size_t source_count, const void *source_type, void *target,
                     size_t target_count, const void *target_type) noexcept;

}  // namespace cuda_nc::hooks
