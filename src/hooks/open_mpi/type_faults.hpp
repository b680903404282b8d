// Faults of Open MPI's datatypes that would make it, and UCX, move other bytes than the program
// asked for. They are mended where a datatype is made, so that all of Open MPI sees the right one.
//
// - A stride or extent of -1 byte is its sign for "not given": it takes the old type's own extent.
// - A type whose members include one without bytes may count as free of gaps although its extent
//   says otherwise: the elements after the first would move to other places.
// - A type without gaps whose bytes do not begin at its lower bound: its UCX layer sends them from
//   the buffer's address. A resized copy of a committed type counts as committed from its birth, so
//   such a type is mended where it is resized.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cuda_nc::hooks {

// Each has the contract of the function that it replaces (hooks/interposed_symbols.h).
int32_t datatype_add(void *base, const void *added, size_t count, ptrdiff_t displacement,
                     ptrdiff_t extent) noexcept;
int32_t datatype_resize(void *datatype, ptrdiff_t lb, ptrdiff_t extent) noexcept;
int32_t datatype_commit(void *datatype) noexcept;

}  // namespace cuda_nc::hooks
