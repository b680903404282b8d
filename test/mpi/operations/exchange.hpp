// Both directions of a message between two ranks, for any call that sends and any that receives.
#pragma once

#include <cstdint>
#include <functional>

#include "operations/harness.hpp"
#include "operations/samples.hpp"
#include "operations/typed_buffer.hpp"

namespace mpi_test {

using send_call = std::function<void(const void *, int count, MPI_Datatype, int peer, int tag)>;
using receive_call = std::function<void(void *, int count, MPI_Datatype, int peer, int tag)>;

// Sends every sample from rank 0 to 1 and back, one message at a time.
void exchange_samples(harness &t, const send_call &send, const receive_call &receive);

// MPI_Recv.
void plain_receive(void *buffer, int count, MPI_Datatype type, int peer, int tag);
void plain_send(const void *buffer, int count, MPI_Datatype type, int peer, int tag);

// Bytes of the message that `rank` sends as the number-th.
inline uint64_t key_of(int rank, uint64_t number) {
    return number * 100 + static_cast<uint64_t>(rank) + 1;
}

}  // namespace mpi_test
