// Messages that MPICH copies with the CPU: buffered ones, those that it sends and receives in one
// buffer, and those of a rank to itself. Each function takes MPI's own, which takes the largest
// counts, and what that takes; it returns what that returns, or pass_on.
//
// Which rank a receive from MPI_ANY_SOURCE will match is not known: it is left to MPICH.
#pragma once

#include <climits>
#include <cstring>
#include <utility>

#include "hooks/mpich/bypass.hpp"
#include "hooks/mpich/staged_call.hpp"

namespace cuda_nc::hooks::local {

// Whether `rank` is the caller, and not of another group.
bool is_self(handle comm, int rank) noexcept;

// Of calls that complete one message, which leave MPI_ERROR as it is.
inline void give(const status_words &found, void *status) noexcept {
    if (status != status_ignore && status != nullptr) {
        std::memcpy(status, &found, sizeof(found.words[0]) * status_words::error);
    }
}

// `request` is null for the blocking forms.
template <typename function>
int send_staged(function *mpi, uniform_side from, int dest, int tag, handle comm, void *request) {
    auto call = std::make_unique<staged_call>(comm, request);
    call->stage_packed(&from, use::send);
    return staged_call::run(std::move(call), mpi, from.buffer, from.count, from.type, dest, tag,
                            comm);
}

template <typename function>
int send(function *mpi, const void *from, count_t count, handle type, int dest, int tag,
         handle comm, void *request = nullptr) {
    if (!is_self(comm, dest)) {
        note_message(from, type, count);
        return pass_on;
    }
    if (!on_gpu(from, type, count)) {
        return pass_on;
    }
    return send_staged(mpi, {from, count, type}, dest, tag, comm, request);
}

// MPI copies the bytes before it returns, so that MPICH's request can be the user's.
template <typename... request>
int buffered_send(int (*mpi)(const void *, count_t, handle, int, int, handle, request...),
                  const void *from, count_t count, handle type, int dest, int tag, handle comm,
                  request... its) {
    if (!on_gpu(from, type, count)) {
        return pass_on;
    }
    staged_call call(comm, nullptr);
    uniform_side side = {from, count, type};
    call.stage_packed(&side, use::send);
    // MPICH counts in int there
    return side.count > INT_MAX ? report({comm, error_other})
                                : mpi(side.buffer, side.count, side.type, dest, tag, comm, its...);
}

int receive(decltype(pmpi_functions::Recv_c) mpi, void *to, count_t count, handle type, int source,
            int tag, handle comm, void *status);
int start_receive(decltype(pmpi_functions::Irecv_c) mpi, void *to, count_t count, handle type,
                  int source, int tag, handle comm, void *request);
int send_receive(not_called, const void *from, count_t sends, handle send_type, int dest,
                 int send_tag, void *to, count_t receives, handle receive_type, int source,
                 int receive_tag, handle comm, void *status);
int start_send_receive(not_called, const void *from, count_t sends, handle send_type, int dest,
                       int send_tag, void *to, count_t receives, handle receive_type, int source,
                       int receive_tag, handle comm, void *request);
int replace(not_called, void *buffer, count_t count, handle type, int dest, int send_tag,
            int source, int receive_tag, handle comm, void *status);
int start_replace(not_called, void *buffer, count_t count, handle type, int dest, int send_tag,
                  int source, int receive_tag, handle comm, void *request);

}  // namespace cuda_nc::hooks::local
