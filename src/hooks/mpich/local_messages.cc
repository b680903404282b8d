#include "hooks/mpich/local_messages.hpp"

#include <atomic>

#include "hooks/common/contiguous.hpp"

namespace cuda_nc::hooks::local {
namespace {

// For UCX such a type is one of ours; another may be contiguous bytes.
bool has_gaps(handle type) noexcept {
    count_t size = 0;
    intptr_t lowest = 0, extent = 0;
    return !is_predefined(type) && pmpi().Type_size_c(type, &size) == 0 &&
           pmpi().Type_get_true_extent(type, &lowest, &extent) == 0 && extent != size;
}

// What a pair of messages in one call has in common.
struct pair {
    uniform_side from, to;
    int dest, send_tag, source, receive_tag;
    handle comm;

    staged_call_ptr stage(bool from_gpu, bool to_gpu, void *request) {
        auto call = std::make_unique<staged_call>(comm, request);
        if (from_gpu) {
            call->stage_packed(&from, use::send, !is_self(comm, dest) && sends_by_ucx());
        }
        if (to_gpu) {
            call->stage_packed(&to, use::receive);
            call->receives_message();
        }
        return call;
    }
    int run(bool from_gpu, bool to_gpu, void *status) {
        staged_call_ptr call = stage(from_gpu, to_gpu, nullptr);
        const int error = call->enter(pmpi().Sendrecv_c, from.buffer, from.count, from.type, dest,
                                      send_tag, writable(to.buffer), to.count, to.type, source,
                                      receive_tag, comm, &call->status());
        give(call->status(), status);
        return error != 0 ? error : call->finish();
    }
    int start(bool from_gpu, bool to_gpu, void *request) {
        staged_call_ptr call = stage(from_gpu, to_gpu, request);
        // MPICH's Isendrecv has no status that tells how many bytes came
        int error = pmpi().Irecv_c(writable(to.buffer), to.count, to.type, source, receive_tag,
                                   comm, call->receive_request());
        if (error == 0) {
            error = pmpi().Isend_c(from.buffer, from.count, from.type, dest, send_tag, comm,
                                   call->send_request());
            if (error != 0) {
                call->give_up_receive();
            }
        }
        return error != 0 ? error : staged_call::start(std::move(call));
    }
    void note() const noexcept {
        note_message(from.buffer, from.type, from.count);
        note_message(to.buffer, to.type, to.count);
    }
    static bool sends_by_ucx() noexcept { return pmpi().mpi->sends_by_ucx(); }
    // Whether what comes from there may be received into GPU memory: a message of UCX's (MPICH
    // copies what comes from the rank itself), of a datatype of ours or of memory that UCX knows.
    bool receives_in_place() const noexcept {
        return source == process_null || (source >= 0 && !is_self(comm, source) && sends_by_ucx() &&
                                          (has_gaps(to.type) || ucx_takes_gpu_memory()));
    }
    bool sends_to_self() const noexcept { return is_self(comm, dest) && from.on_gpu(); }
    bool receives_from_self() const noexcept { return is_self(comm, source) && to.on_gpu(); }
};

}  // namespace

bool is_self(handle comm, int rank) noexcept {
    static std::atomic<int> in_world{-1};  // it does not change
    const bool is_world = static_cast<int>(comm) == static_cast<int>(world);
    int mine = is_world ? in_world.load(std::memory_order_relaxed) : -1, is_between = 0;
    if (rank < 0 || (mine < 0 && pmpi().Comm_rank(comm, &mine) != 0) || rank != mine) {
        return false;
    }
    if (is_world) {
        in_world.store(mine, std::memory_order_relaxed);
    }
    return is_world || (pmpi().Comm_test_inter(comm, &is_between) == 0 && is_between == 0);
}

int receive(decltype(pmpi_functions::Recv_c) mpi, void *to, count_t count, handle type, int source,
            int tag, handle comm, void *status) {
    if (!is_self(comm, source)) {
        note_message(to, type, count);
        return pass_on;
    }
    if (!on_gpu(to, type, count)) {
        return pass_on;
    }
    staged_call call(comm, nullptr);
    uniform_side side = {to, count, type};
    call.stage_packed(&side, use::receive);
    call.receives_message();
    const int error = call.enter(mpi, writable(side.buffer), side.count, side.type, source, tag,
                                 comm, &call.status());
    give(call.status(), status);
    return error != 0 ? error : call.finish();
}

int start_receive(decltype(pmpi_functions::Irecv_c) mpi, void *to, count_t count, handle type,
                  int source, int tag, handle comm, void *request) {
    if (!is_self(comm, source)) {
        note_message(to, type, count);
        return pass_on;
    }
    if (!on_gpu(to, type, count)) {
        return pass_on;
    }
    auto call = std::make_unique<staged_call>(comm, request);
    uniform_side side = {to, count, type};
    call->stage_packed(&side, use::receive);
    call->receives_message();
    return staged_call::run(std::move(call), mpi, writable(side.buffer), side.count, side.type,
                            source, tag, comm);
}

int send_receive(not_called, const void *from, count_t sends, handle send_type, int dest,
                 int send_tag, void *to, count_t receives, handle receive_type, int source,
                 int receive_tag, handle comm, void *status) {
    pair both = {{from, sends, send_type},
                 {to, receives, receive_type},
                 dest,
                 send_tag,
                 source,
                 receive_tag,
                 comm};
    const bool from_gpu = both.sends_to_self(), to_gpu = both.receives_from_self();
    if (!from_gpu && !to_gpu) {
        both.note();
        return pass_on;
    }
    return both.run(from_gpu, to_gpu, status);
}

int start_send_receive(not_called, const void *from, count_t sends, handle send_type, int dest,
                       int send_tag, void *to, count_t receives, handle receive_type, int source,
                       int receive_tag, handle comm, void *request) {
    pair both = {{from, sends, send_type},
                 {to, receives, receive_type},
                 dest,
                 send_tag,
                 source,
                 receive_tag,
                 comm};
    const bool from_gpu = both.sends_to_self(), to_gpu = both.receives_from_self();
    if (!from_gpu && !to_gpu) {
        both.note();
        return pass_on;
    }
    return both.start(from_gpu, to_gpu, request);
}

// What is sent is packed first, so that it may be received where it was.
int replace(not_called, void *buffer, count_t count, handle type, int dest, int send_tag,
            int source, int receive_tag, handle comm, void *status) {
    const uniform_side side = {buffer, count, type};
    pair both = {side, side, dest, send_tag, source, receive_tag, comm};
    return side.on_gpu() ? both.run(true, !both.receives_in_place(), status) : pass_on;
}

int start_replace(not_called, void *buffer, count_t count, handle type, int dest, int send_tag,
                  int source, int receive_tag, handle comm, void *request) {
    const uniform_side side = {buffer, count, type};
    pair both = {side, side, dest, send_tag, source, receive_tag, comm};
    return side.on_gpu() ? both.start(true, !both.receives_in_place(), request) : pass_on;
}

}  // namespace cuda_nc::hooks::local
