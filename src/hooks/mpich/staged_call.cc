#include "hooks/mpich/staged_call.hpp"

#include <cstring>
#include <new>
#include <utility>

#include "ucs/base/log.hpp"

namespace cuda_nc::hooks::local {

bool varying_side::on_gpu() const noexcept {
    for (int i = 0; i < blocks; ++i) {
        if (counts[i] > 0) {
            return local::on_gpu(buffer, type_of(i), counts[i], place_of(i));
        }
    }
    return false;
}

varying_side::arrays &staged_call::copy(const varying_side &side) {
    arrays_.push_back(std::make_unique<varying_side::arrays>());
    varying_side::arrays &made = *arrays_.back();
    for (int i = 0; i < side.blocks; ++i) {
        made.counts.push_back(side.counts[i]);
        made.places.push_back(static_cast<intptr_t>(side.places[i]));
        made.types.push_back(static_cast<int>(side.type_of(i)));
    }
    return made;
}

handle staged_call::dense(handle type) {
    count_t size = 0;
    int made = 0;
    if (is_predefined(type)) {
        return type;
    }
    if (pmpi().Type_size_c(type, &size) != 0 ||
        pmpi().Type_contiguous_c(size, byte_type, &made) != 0) {
        throw failure{comm_, error_other};
    }
    types_.push_back(made);
    if (pmpi().Type_commit(&types_.back()) != 0) {
        throw failure{comm_, error_other};
    }
    return made;
}

void staged_call::free_types() noexcept {
    for (int &type : types_) {
        pmpi().Type_free(&type);  // MPI keeps it as long as it needs it
    }
    types_.clear();
}

char *staged_call::add(typed_memory memory, use how) {
    host_bytes bytes(memory.size());
    if (how != use::receive) {
        memory.pack(bytes.start());
    }
    stages_.push_back({std::move(memory), std::move(bytes), how != use::send, false});
    return stages_.back().bytes.start();
}

void staged_call::stage(uniform_side *side, int blocks, use how) {
    typed_memory memory(comm_);
    memory.add(side->buffer, 0, side->count * blocks, side->type);
    side->buffer = add(std::move(memory), how);
    side->type = dense(side->type);
}

void staged_call::stage_packed(uniform_side *side, use how) {
    typed_memory memory(comm_);
    memory.add(side->buffer, 0, side->count, side->type);
    side->count = static_cast<count_t>(memory.size());
    side->buffer = add(std::move(memory), how);
    side->type = packed_type;
}

varying_side::arrays &staged_call::stage(varying_side *side, use how) {
    typed_memory memory(comm_);
    varying_side::arrays &made = copy(*side);
    count_t elements = 0;
    for (int i = 0; i < side->blocks; ++i) {
        const auto block = static_cast<size_t>(i);
        made.places[block] = static_cast<intptr_t>(
            side->types != nullptr ? static_cast<count_t>(memory.size()) : elements);
        memory.add(side->buffer, side->place_of(i), side->counts[i], side->type_of(i));
        elements += side->counts[i];
        if (side->types != nullptr) {
            made.types[block] = static_cast<int>(dense(side->types[i]));
        }
    }
    side->buffer = add(std::move(memory), how);
    side->type = side->types != nullptr ? side->type : dense(side->type);
    return made;
}

void staged_call::stage_alike(const void **buffer_p, count_t count, handle type, use how) {
    typed_memory memory(comm_);
    memory.add(*buffer_p, 0, count, type);
    host_bytes bytes(memory.span());
    if (how != use::receive) {
        memory.copy_to(bytes.start());
    }
    *buffer_p = bytes.start() - memory.lowest();
    stages_.push_back({std::move(memory), std::move(bytes), how != use::send, true});
}

int staged_call::finish() noexcept try {
    for (const staged &one : stages_) {
        uint64_t length = one.memory.size();
        if (one.by_status) {
            count_t came = 0;
            int cancelled = 0;
            pmpi().Test_cancelled(&status_, &cancelled);
            length =
                cancelled == 0 && pmpi().Get_count_c(&status_, byte_type, &came) == 0 && came > 0
                    ? static_cast<uint64_t>(came)
                    : 0;
        }
        if (one.receives && one.alike) {
            one.memory.copy_from(one.bytes.start());
        } else if (one.receives) {
            one.memory.unpack(one.bytes.start(), length);
        }
    }
    return 0;
} catch (const failure &what) {
    return report(what);
} catch (...) {
    return report({comm_, error_no_memory});
}

// ---- nonblocking calls: the user gets a request of ours, which ends when MPICH's has ended and
// its bytes are unpacked. MPICH asks for that in every call that tests or waits for it.

int staged_call::start(staged_call_ptr call) noexcept {
    staged_call *state = call.get();
    if (pmpi().Grequest_start(query, release, cancel, poll, wait, state, &state->outer_) != 0) {
        *state->request_ = null_request;
        const int error = state->await();
        return error != 0 ? error : state->finish();
    }
    *state->request_ = state->outer_;
    call.release();  // by release()
    return 0;
}

int staged_call::await() noexcept {
    // a request that has ended is null, and would leave an empty status
    int error = inner_ != null_request ? pmpi().Wait(&inner_, &status_) : 0;
    if (error == 0 && second_ != null_request) {
        error = pmpi().Wait(&second_, status_ignore);
    }
    return error;
}

void staged_call::complete(int error) noexcept {
    error_ = error != 0 ? error : finish();
    done_ = true;
    pmpi().Grequest_complete(outer_);
}

int staged_call::poll(void *state, void *) noexcept {
    auto *call = static_cast<staged_call *>(state);
    int flag = 1, error = 0;
    if (call->done_) {
        return 0;
    }
    if (call->inner_ != null_request) {
        error = pmpi().Test(&call->inner_, &flag, &call->status_);
    }
    if (error == 0 && flag != 0 && call->second_ != null_request) {
        error = pmpi().Test(&call->second_, &flag, status_ignore);
    }
    if (error != 0 || flag != 0) {
        call->complete(error);
    }
    return 0;
}

int staged_call::wait(int number, void **states, double, void *) noexcept {
    for (int i = 0; i < number; ++i) {
        auto *call = static_cast<staged_call *>(states[i]);
        if (!call->done_) {
            call->complete(call->await());
        }
    }
    return 0;
}

int staged_call::query(void *state, void *status) noexcept {
    const auto *call = static_cast<const staged_call *>(state);
    std::memcpy(status, &call->status_, sizeof(call->status_));
    return call->error_;
}

int staged_call::cancel(void *state, int complete) noexcept {
    auto *call = static_cast<staged_call *>(state);
    return complete != 0 || call->done_ ? 0 : pmpi().Cancel(&call->inner_);
}

int staged_call::release(void *state) noexcept {
    delete static_cast<staged_call *>(state);
    return 0;
}

int report(const failure &what) noexcept {
    pmpi().Comm_call_errhandler(what.comm, what.error);
    return what.error;
}

}  // namespace cuda_nc::hooks::local
