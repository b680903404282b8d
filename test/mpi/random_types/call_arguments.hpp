// What an MPI call is given for a side of a message.
#pragma once

#include "random_types/arena.hpp"
#include "random_types/message.hpp"

namespace mpi_test {

struct call_arguments {
    void *address;
    int count;
    MPI_Datatype type;
    bool made = false;  // the type is this call's own

    call_arguments(arena &memory, const side &s)
        : address(memory.address(s)), count(s.count), type(s.type.handle()) {
        if (s.bottom) {
            MPI_Aint absolute;
            MPI_Get_address(address, &absolute);
            MPI_Type_create_hindexed(1, &count, &absolute, type, &type);
            MPI_Type_commit(&type);
            address = MPI_BOTTOM;
            count = 1;
            made = true;
        }
    }
    // the message in flight keeps the type
    ~call_arguments() {
        if (made) {
            MPI_Type_free(&type);
        }
    }
    call_arguments(const call_arguments &) = delete;
    call_arguments &operator=(const call_arguments &) = delete;
};

}  // namespace mpi_test
