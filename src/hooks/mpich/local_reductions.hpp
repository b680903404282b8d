// Reductions of GPU memory: MPICH's operators, and the user's, run on the CPU. The elements get
// host memory in which they lie as on the GPU. Parameters and results as in local_collectives.hpp.
#pragma once

#include <algorithm>
#include <type_traits>
#include <utility>

#include "hooks/mpich/ranks.hpp"
#include "hooks/mpich/staged_call.hpp"

namespace cuda_nc::hooks::local {

// `sends` and `receives`: elements at each side; 0: MPI does not look at it. `rest`: what MPI's
// function takes behind the buffers. `its`: where the request goes, or the call where it is made.
template <typename function, typename owner, typename... rest>
int reduce_staged(function *mpi, const void *from, count_t sends, const void *to, count_t receives,
                  use received, handle type, handle comm, owner its, rest... arguments) {
    const bool replaces = from == in_place;
    receives = replaces ? std::max(sends, receives) : receives;
    const bool from_gpu = on_gpu(from, type, sends), to_gpu = on_gpu(to, type, receives);
    if (!from_gpu && !to_gpu) {
        return pass_on;
    }
    staged_call_ptr call;
    if constexpr (std::is_same_v<owner, staged_call_ptr>) {
        call = std::move(its);
    } else {
        call = std::make_unique<staged_call>(comm, its);
    }
    if (from_gpu) {
        call->stage_alike(&from, sends, type, use::send);
    }
    if (to_gpu) {
        call->stage_alike(&to, receives, type, replaces ? use::update : received);
    }
    return staged_call::run(std::move(call), mpi, from, const_cast<void *>(to), arguments...);
}

template <typename function>
int reduce(function *mpi, const void *from, void *to, count_t count, handle type, handle op,
           int root, handle comm, void *request = nullptr) {
    const ranks all(comm);
    return reduce_staged(mpi, from, all.sends_to(root) ? count : 0, to,
                         all.receives_at(root) ? count : 0, use::receive, type, comm, request,
                         count, type, op, root, comm);
}

template <typename function>
int reduce_each(function *mpi, const void *from, void *to, count_t count, handle type, handle op,
                handle comm, void *request = nullptr) {
    return reduce_staged(mpi, from, count, to, count, use::receive, type, comm, request, count,
                         type, op, comm);
}

// The first rank receives nothing.
template <typename function>
int reduce_before(function *mpi, const void *from, void *to, count_t count, handle type, handle op,
                  handle comm, void *request = nullptr) {
    return reduce_staged(mpi, from, count, to, count, use::update, type, comm, request, count, type,
                         op, comm);
}

template <typename function>
int reduce_block(function *mpi, const void *from, void *to, count_t count, handle type, handle op,
                 handle comm, void *request = nullptr) {
    return reduce_staged(mpi, from, count * ranks(comm).own, to, count, use::receive, type, comm,
                         request, count, type, op, comm);
}

template <typename function>
int reduce_varying(function *mpi, const void *from, void *to, numbers counts, handle type,
                   handle op, handle comm, void *request = nullptr) {
    const ranks all(comm);
    count_t sum = 0;
    for (int i = 0; i < all.own; ++i) {
        sum += counts[i];
    }
    if (!on_gpu(from, type, sum) && !on_gpu(to, type, std::max<count_t>(sum, 1))) {
        return pass_on;
    }
    auto call = std::make_unique<staged_call>(comm, request);
    const count_t *wide =
        call->copy({nullptr, counts, counts, type, nullptr, all.own}).counts.data();
    return reduce_staged(mpi, from, sum, to, counts[all.mine], use::receive, type, comm,
                         std::move(call), wide, type, op, comm);
}

inline int reduce_locally(decltype(pmpi_functions::Reduce_local_c) mpi, const void *from, void *to,
                          count_t count, handle type, handle op) {
    return reduce_staged(mpi, from, count, to, count, use::update, type, self, nullptr, count, type,
                         op);
}

}  // namespace cuda_nc::hooks::local
