// Collectives that move bytes of GPU memory. Each function takes MPI's own, in its blocking or
// nonblocking form that takes the largest counts, and what that takes, with a null request for the
// blocking form; it returns what that returns, or pass_on.
//
// MPICH copies with the CPU in those whose blocks have one size, so they get host memory in place
// of GPU memory; but it broadcasts bytes without gaps from where they are, by messages alone, and
// may be given GPU memory for that. Where each block has its own size MPICH sends each from its
// place, and copies only the rank's own: we move that one, and MPICH hears that it is empty.
#pragma once

#include <new>
#include <utility>

#include "hooks/common/contiguous.hpp"
#include "hooks/mpich/ranks.hpp"
#include "hooks/mpich/staged_call.hpp"

namespace cuda_nc::hooks::local {

// The caller's own block of a collective, in memory of any kind. Where that fails, or has no room,
// the call ends with the error, but takes part: the others must not wait for this rank.
inline void move(handle comm, const uniform_side &from, int64_t from_place, const uniform_side &to,
                 int64_t to_place, staged_call *call) try {
    typed_memory source(comm), target(comm);
    source.add(from.buffer, from_place, from.count, from.type);
    target.add(to.buffer, to_place, to.count, to.type);
    if (source.size() > target.size()) {
        call->note(error_truncate);
        return;
    }
    const dt::packed_memory bytes = source.memory_for_packed(source.gpu() == target.gpu());
    source.pack(bytes.place());
    target.unpack(bytes.place(), source.size());
} catch (const failure &what) {
    call->note(what.error);
} catch (const std::bad_alloc &) {
    call->note(error_no_memory);
}

// ---- blocks of one size

template <typename function>
int broadcast(function *mpi, void *buffer, count_t count, handle type, int root, handle comm,
              void *request = nullptr) {
    uniform_side side = {buffer, count, type};
    // MPICH sends contiguous bytes from where they are
    if (is_predefined(type) || !side.on_gpu()) {
        return pass_on;
    }
    const ranks all(comm);
    if (!all.receives_at(root) && !all.sends_to(root)) {
        return pass_on;  // another rank of this group sends
    }
    auto call = std::make_unique<staged_call>(comm, request);
    call->stage(&side, 1, all.receives_at(root) ? use::send : use::receive,
                pmpi().mpi->sends_by_ucx() && ucx_takes_gpu_memory());
    return staged_call::run(std::move(call), mpi, writable(side.buffer), side.count, side.type,
                            root, comm);
}

// `from_blocks` and `to_blocks`: how many blocks each side has; 0: MPI does not look at it.
template <typename function, typename... rest>
int exchange(function *mpi, uniform_side from, int from_blocks, uniform_side to, int to_blocks,
             use received, handle comm, void *request, rest... arguments) {
    const bool from_gpu = from_blocks > 0 && from.on_gpu(), to_gpu = to_blocks > 0 && to.on_gpu();
    if (!from_gpu && !to_gpu) {
        return pass_on;
    }
    auto call = std::make_unique<staged_call>(comm, request);
    if (from_gpu) {
        call->stage(&from, from_blocks, use::send);
    }
    if (to_gpu) {
        call->stage(&to, to_blocks, from.buffer == in_place ? use::update : received);
    }
    return staged_call::run(std::move(call), mpi, from.buffer, from.count, from.type,
                            writable(to.buffer), to.count, to.type, arguments..., comm);
}

template <typename function>
int gather(function *mpi, const void *from, count_t sends, handle send_type, void *to,
           count_t receives, handle receive_type, int root, handle comm, void *request = nullptr) {
    const ranks all(comm);
    return exchange(mpi, {from, sends, send_type}, all.sends_to(root) ? 1 : 0,
                    {to, receives, receive_type}, all.receives_at(root) ? all.others : 0,
                    use::receive, comm, request, root);
}

template <typename function>
int scatter(function *mpi, const void *from, count_t sends, handle send_type, void *to,
            count_t receives, handle receive_type, int root, handle comm, void *request = nullptr) {
    const ranks all(comm);
    return exchange(mpi, {from, sends, send_type}, all.receives_at(root) ? all.others : 0,
                    {to, receives, receive_type}, all.sends_to(root) ? 1 : 0, use::receive, comm,
                    request, root);
}

template <typename function>
int allgather(function *mpi, const void *from, count_t sends, handle send_type, void *to,
              count_t receives, handle receive_type, handle comm, void *request = nullptr) {
    return exchange(mpi, {from, sends, send_type}, 1, {to, receives, receive_type},
                    ranks(comm).others, use::receive, comm, request);
}

template <typename function>
int alltoall(function *mpi, const void *from, count_t sends, handle send_type, void *to,
             count_t receives, handle receive_type, handle comm, void *request = nullptr) {
    const int others = ranks(comm).others;
    return exchange(mpi, {from, sends, send_type}, others, {to, receives, receive_type}, others,
                    use::receive, comm, request);
}

// ---- blocks of different sizes

// One side with blocks of one size, one with blocks of different sizes, which come from `root` or
// go there. `mine`: the caller's own block, both sides of which are known here alone.
template <typename function>
int gather_varying(function *mpi, const void *from, count_t sends, handle send_type, void *to,
                   numbers receives, numbers places, handle receive_type, int root, handle comm,
                   void *request = nullptr) {
    const ranks all(comm);
    const uniform_side side = {from, sends, send_type};
    const varying_side target = {to, receives, places, receive_type, nullptr, all.own};
    if (all.between || !all.receives_at(root) || from == in_place ||
        !(side.on_gpu() || target.on_gpu())) {
        return pass_on;
    }
    auto call = std::make_unique<staged_call>(comm, request);
    move(comm, side, 0, target.at(all.mine), target.place_of(all.mine), call.get());
    varying_side::arrays &wide = call->copy(target);
    wide.counts[static_cast<size_t>(all.mine)] = 0;
    return staged_call::run(std::move(call), mpi, from, count_t(0), send_type, to,
                            wide.counts.data(), wide.places.data(), receive_type, root, comm);
}

template <typename function>
int scatter_varying(function *mpi, const void *from, numbers sends, numbers places,
                    handle send_type, void *to, count_t receives, handle receive_type, int root,
                    handle comm, void *request = nullptr) {
    const ranks all(comm);
    const varying_side side = {from, sends, places, send_type, nullptr, all.own};
    const uniform_side target = {to, receives, receive_type};
    if (all.between || !all.receives_at(root) || to == in_place ||
        !(side.on_gpu() || target.on_gpu())) {
        return pass_on;
    }
    auto call = std::make_unique<staged_call>(comm, request);
    move(comm, side.at(all.mine), side.place_of(all.mine), target, 0, call.get());
    varying_side::arrays &wide = call->copy(side);
    wide.counts[static_cast<size_t>(all.mine)] = 0;
    return staged_call::run(std::move(call), mpi, from, wide.counts.data(), wide.places.data(),
                            send_type, to, count_t(0), receive_type, root, comm);
}

// All blocks through host memory: MPICH passes them on from rank to rank.
template <typename function>
int gather_staged(function *mpi, uniform_side from, varying_side to, use received, handle comm,
                  void *request) {
    const bool from_gpu = from.on_gpu(), to_gpu = to.on_gpu();
    if (!from_gpu && !to_gpu) {
        return pass_on;
    }
    auto call = std::make_unique<staged_call>(comm, request);
    const use how = from.buffer == in_place ? use::update : received;
    if (from_gpu) {
        call->stage(&from, 1, use::send);
    }
    const varying_side::arrays &wide = to_gpu ? call->stage(&to, how) : call->copy(to);
    return staged_call::run(std::move(call), mpi, from.buffer, from.count, from.type,
                            writable(to.buffer), wide.counts.data(), wide.places.data(), to.type,
                            comm);
}

template <typename function>
int allgather_varying(function *mpi, const void *from, count_t sends, handle send_type, void *to,
                      numbers receives, numbers places, handle receive_type, handle comm,
                      void *request = nullptr) {
    return gather_staged(mpi, {from, sends, send_type},
                         {to, receives, places, receive_type, nullptr, ranks(comm).others},
                         use::receive, comm, request);
}

// The type of all blocks, or the array of their types.
template <bool typed>
auto types_of(const varying_side &side, const varying_side::arrays &wide) noexcept {
    if constexpr (typed) {
        return static_cast<const void *>(wide.types.data());
    } else {
        return side.type;
    }
}

// `mine`: the caller's own block, or -1: all blocks pass through host memory.
template <bool typed, typename function>
int exchange_varying(function *mpi, varying_side from, varying_side to, int mine, use received,
                     handle comm, void *request) {
    const bool replaces = from.buffer == in_place;
    const bool from_gpu = !replaces && from.on_gpu(), to_gpu = to.on_gpu();
    if (!from_gpu && !to_gpu) {
        return pass_on;
    }
    const bool moves = mine >= 0 && !replaces;
    auto call = std::make_unique<staged_call>(comm, request);
    varying_side::arrays &receives =
        to_gpu && !moves ? call->stage(&to, replaces ? use::update : received) : call->copy(to);
    varying_side::arrays &sends = replaces             ? receives  // MPI does not look at it
                                  : from_gpu && !moves ? call->stage(&from, use::send)
                                                       : call->copy(from);
    if (moves) {
        move(comm, from.at(mine), from.place_of(mine), to.at(mine), to.place_of(mine), call.get());
        sends.counts[static_cast<size_t>(mine)] = receives.counts[static_cast<size_t>(mine)] = 0;
    }
    return staged_call::run(std::move(call), mpi, from.buffer, sends.counts.data(),
                            sends.places.data(), types_of<typed>(from, sends), writable(to.buffer),
                            receives.counts.data(), receives.places.data(),
                            types_of<typed>(to, receives), comm);
}

template <typename function>
int alltoall_varying(function *mpi, const void *from, numbers sends, numbers from_places,
                     handle send_type, void *to, numbers receives, numbers to_places,
                     handle receive_type, handle comm, void *request = nullptr) {
    const ranks all(comm);
    return all.between ? pass_on
                       : exchange_varying<false>(
                             mpi, {from, sends, from_places, send_type, nullptr, all.own},
                             {to, receives, to_places, receive_type, nullptr, all.own}, all.mine,
                             use::receive, comm, request);
}

template <typename function>
int alltoall_typed(function *mpi, const void *from, numbers sends, numbers from_places,
                   const void *send_types, void *to, numbers receives, numbers to_places,
                   const void *receive_types, handle comm, void *request = nullptr) {
    const ranks all(comm);
    return all.between
               ? pass_on
               : exchange_varying<true>(
                     mpi,
                     {from, sends, from_places, 0, static_cast<const int *>(send_types), all.own},
                     {to, receives, to_places, 0, static_cast<const int *>(receive_types), all.own},
                     all.mine, use::receive, comm, request);
}

// ---- between neighbours: MPICH copies only what a rank sends itself. A neighbour may be missing,
// and its block then stays as it is. Who the neighbours are is asked last: in host memory nobody
// needs it.

template <typename function>
int neighbor_allgather(function *mpi, const void *from, count_t sends, handle send_type, void *to,
                       count_t receives, handle receive_type, handle comm,
                       void *request = nullptr) {
    const uniform_side side = {from, sends, send_type}, target = {to, receives, receive_type};
    neighbours around;
    return (side.on_gpu() || target.on_gpu()) && around.count(comm) && around.has_self(comm)
               ? exchange(mpi, side, around.destinations > 0 ? 1 : 0, target, around.sources,
                          use::update, comm, request)
               : pass_on;
}

template <typename function>
int neighbor_allgather_varying(function *mpi, const void *from, count_t sends, handle send_type,
                               void *to, numbers receives, numbers places, handle receive_type,
                               handle comm, void *request = nullptr) {
    neighbours around;
    if (!around.count(comm)) {
        return pass_on;
    }
    const uniform_side side = {from, sends, send_type};
    const varying_side target = {to, receives, places, receive_type, nullptr, around.sources};
    return (side.on_gpu() || target.on_gpu()) && around.has_self(comm)
               ? gather_staged(mpi, side, target, use::update, comm, request)
               : pass_on;
}

template <typename function>
int neighbor_alltoall(function *mpi, const void *from, count_t sends, handle send_type, void *to,
                      count_t receives, handle receive_type, handle comm, void *request = nullptr) {
    const uniform_side side = {from, sends, send_type}, target = {to, receives, receive_type};
    neighbours around;
    return (side.on_gpu() || target.on_gpu()) && around.count(comm) && around.has_self(comm)
               ? exchange(mpi, side, around.destinations, target, around.sources, use::update, comm,
                          request)
               : pass_on;
}

template <typename function>
int neighbor_alltoall_varying(function *mpi, const void *from, numbers sends, numbers from_places,
                              handle send_type, void *to, numbers receives, numbers to_places,
                              handle receive_type, handle comm, void *request = nullptr) {
    neighbours around;
    if (!around.count(comm)) {
        return pass_on;
    }
    const varying_side side = {from, sends, from_places, send_type, nullptr, around.destinations};
    const varying_side target = {to, receives, to_places, receive_type, nullptr, around.sources};
    return (side.on_gpu() || target.on_gpu()) && around.has_self(comm)
               ? exchange_varying<false>(mpi, side, target, -1, use::update, comm, request)
               : pass_on;
}

template <typename function>
int neighbor_alltoall_typed(function *mpi, const void *from, numbers sends, numbers from_places,
                            const void *send_types, void *to, numbers receives, numbers to_places,
                            const void *receive_types, handle comm, void *request = nullptr) {
    neighbours around;
    if (!around.count(comm)) {
        return pass_on;
    }
    const varying_side side = {
        from, sends, from_places, 0, static_cast<const int *>(send_types), around.destinations};
    const varying_side target = {
        to, receives, to_places, 0, static_cast<const int *>(receive_types), around.sources};
    return (side.on_gpu() || target.on_gpu()) && around.has_self(comm)
               ? exchange_varying<true>(mpi, side, target, -1, use::update, comm, request)
               : pass_on;
}

}  // namespace cuda_nc::hooks::local
