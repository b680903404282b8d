// Convertors of our own, by which we read layouts: Open MPI tells a datatype's blocks only through
// one.
#pragma once

#include <cstdint>

#include "hooks/open_mpi/opal_functions.hpp"

namespace cuda_nc::hooks {

// How to make a convertor, and to prepare it for a datatype that needs no stack.
struct convertor_source {
    void *(*create)(int32_t, int32_t);
    uint32_t arch;
    prepare_f prepare_for_send;
    const void *byte;  // such a datatype, or null
};

class own_convertor;

// A convertor of a pool that the process shares, for one use; prepare it anew. Only the code in
// Open MPI's headers can release a convertor, so the pool's live as long as the process.
class scratch_convertor {
  public:
    // Throws std::bad_alloc. Thread safe.
    explicit scratch_convertor(const convertor_source &from);
    ~scratch_convertor();
    scratch_convertor(const scratch_convertor &) = delete;
    scratch_convertor &operator=(const scratch_convertor &) = delete;

    // Null where Open MPI could not make one.
    void *get() const noexcept;

  private:
    own_convertor *own_;
};

}  // namespace cuda_nc::hooks
