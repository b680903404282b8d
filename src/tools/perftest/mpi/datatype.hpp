// MPI datatypes of layouts and of messages.
#pragma once

#include <mpi.h>

#include "tools/perftest/message/messenger.hpp"
#include "ucs/layout/layout.hpp"

namespace cuda_nc::tools {

// One element of it covers the layout, in its order: the list of blocks as a contiguous or hindexed
// type of the largest numbers (doubles, floats, bytes) that every block is made of, as in a program
// that sends numbers, and an hvector around it for each dimension. The caller commits and frees it.
// Throws run_error.
MPI_Datatype make_datatype(const layout &what);

// A message: `elements` of `type`, which it frees if it owns it. MPI's own types are not owned.
struct mpi_type final : message_type {
    mpi_type(MPI_Datatype type, int elements, bool owns)
        : datatype(type), count(elements), owned(owns) {}
    ~mpi_type() override {
        if (owned) {
            MPI_Type_free(&datatype);
        }
    }
    mpi_type(const mpi_type &) = delete;
    mpi_type &operator=(const mpi_type &) = delete;

    MPI_Datatype datatype;
    const int count;
    const bool owned;
};

inline const mpi_type &mpi(const message_type &type) {
    return static_cast<const mpi_type &>(type);
}

// Throws run_error where `status` is not MPI_SUCCESS.
void check_mpi(int status, const char *what);

// MPI counts by int. Throws run_error.
int to_mpi_count(uint64_t value);

}  // namespace cuda_nc::tools
