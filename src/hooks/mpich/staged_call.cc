#include "hooks/mpich/staged_call.hpp"

#include <cxxabi.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <mutex>
#include <new>
#include <thread>
#include <unordered_map>
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
    return commit(made);
}

// For MPICH elements have gaps where an extent differs from the size.
handle staged_call::gapless_for_us(uint64_t size) {
    int bytes = 0, made = 0;
    if (pmpi().Type_contiguous_c(static_cast<count_t>(size), byte_type, &bytes) != 0) {
        throw failure{comm_, error_other};
    }
    types_.push_back(bytes);
    if (pmpi().Type_create_resized(bytes, 0, static_cast<intptr_t>(size + 1), &made) != 0) {
        throw failure{comm_, error_other};
    }
    return commit(made);
}

handle staged_call::commit(int made) {
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

// What is short is as soon there through host memory, where UCX need not ask the receiver first.
const dt::packed_place &staged_call::add(typed_memory memory, use how, bool on_gpu) {
    constexpr uint64_t least_on_gpu = 16 << 10;
    dt::packed_memory bytes = memory.memory_for_packed(on_gpu && memory.size() > least_on_gpu);
    if (how != use::receive) {
        memory.pack(bytes.place());
    }
    stages_.push_back({std::move(memory), std::move(bytes), how != use::send, false});
    return stages_.back().bytes.place();
}

void staged_call::stage(uniform_side *side, int blocks, use how, bool on_gpu) {
    typed_memory memory(comm_);
    memory.add(side->buffer, 0, side->count * blocks, side->type);
    side->buffer = add(std::move(memory), how, on_gpu).start;
    side->type = dense(side->type);
}

void staged_call::stage_packed(uniform_side *side, use how, bool on_gpu) {
    typed_memory memory(comm_);
    memory.add(side->buffer, 0, side->count, side->type);
    const uint64_t size = memory.size();
    const dt::packed_place &bytes = add(std::move(memory), how, on_gpu);
    const bool is_ours = bytes.lies.kind == gpu::memory_kind::device;
    side->buffer = bytes.start;
    side->count = is_ours ? 1 : static_cast<count_t>(size);
    side->type = is_ours ? gapless_for_us(size) : packed_type;
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
            // Where there are no elements MPICH takes MPI_DATATYPE_NULL.
            made.types[block] =
                static_cast<int>(side->counts[i] > 0 ? dense(side->types[i]) : byte_type);
        }
    }
    side->buffer = add(std::move(memory), how).start;
    side->type = side->types != nullptr ? side->type : dense(side->type);
    return made;
}

void staged_call::stage_alike(const void **buffer_p, count_t count, handle type, use how) {
    typed_memory memory(comm_);
    memory.add(*buffer_p, 0, count, type);
    memory.lay_out(count, type);
    dt::packed_memory bytes = host_memory(memory.span(), memory.gpu());
    if (how != use::receive) {
        memory.copy_to(bytes.place());
    }
    *buffer_p = bytes.start() - memory.lowest();
    stages_.push_back({std::move(memory), std::move(bytes), how != use::send, true});
}

int staged_call::finish() try {
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
            one.memory.copy_from(one.bytes.place());
        } else if (one.receives) {
            one.memory.unpack(one.bytes.place(), length);
        }
    }
    return 0;
} catch (const abi::__forced_unwind &) {
    throw;  // the thread ends (pthread_cancel)
} catch (const failure &what) {
    return report(what);
} catch (...) {
    return report({comm_, error_no_memory});
}

// MPI may still use what it was given: then that stays for good.
staged_call::~staged_call() {
    free_types();
    if (is_inside_ || is_lost_ || inner_ != null_request || second_ != null_request) {
        new (std::nothrow) auto(std::make_pair(std::move(stages_), std::move(arrays_)));
    }
}

void staged_call::give_up_receive() {
    pmpi().Cancel(&inner_);
    await(&inner_, status_ignore);
}

// ---- nonblocking calls: the user gets a request of ours, which ends when MPICH's has ended and
// its bytes are unpacked. MPICH asks for that in every call that tests or waits for it.

namespace {

// The calls whose requests users hold.
class held_calls {
  public:
    void add(int request, staged_call *call) noexcept try {
        std::lock_guard<std::mutex> guard(mutex_);
        calls_[request] = call;
        number_.store(calls_.size(), std::memory_order_relaxed);
    } catch (...) {
        // no memory: it is as a request that is not ours
    }
    // Null: the request is not ours.
    staged_call *find(int request) noexcept {
        if (number_.load(std::memory_order_relaxed) == 0) {
            return nullptr;
        }
        std::lock_guard<std::mutex> guard(mutex_);
        auto found = calls_.find(request);
        return found != calls_.end() ? found->second : nullptr;
    }
    void remove(int request) noexcept {
        std::lock_guard<std::mutex> guard(mutex_);
        calls_.erase(request);
        number_.store(calls_.size(), std::memory_order_relaxed);
    }

  private:
    std::mutex mutex_;
    std::unordered_map<int, staged_call *> calls_;
    std::atomic<size_t> number_{0};
};

held_calls &held() {
    static auto *only = new held_calls;
    return *only;
}

std::mutex freed_mutex;
staged_call *first_freed = nullptr;
std::atomic<int> number_freed{0};

}  // namespace

int staged_call::start(staged_call_ptr call) {
    staged_call *state = call.get();
    if (pmpi().Grequest_start(query, release, cancel, poll, wait, state, &state->outer_) != 0) {
        *state->request_ = null_request;
        state->await(&state->inner_, &state->status_);
        state->await(&state->second_, status_ignore);
        return state->error_ != 0 ? state->error_ : state->finish();
    }
    *state->request_ = state->outer_;
    call.release();  // by release()
    held().add(state->outer_, state);
    return 0;
}

void staged_call::await(int *request, void *status) {
    if (*request != null_request) {  // a null one would leave an empty status
        note(pmpi().Wait(request, status));
        *request = null_request;
    }
}

// Also where MPICH cannot tell, which is an error of this call.
bool staged_call::has_ended(int *request, void *status) {
    int flag = 0;
    if (*request == null_request) {
        return true;
    }
    const int error = pmpi().Test(request, &flag, status);
    note(error);
    if (error != 0) {
        is_lost_ = is_lost_ || (flag == 0 && *request != null_request);
        *request = null_request;
    }
    return *request == null_request;
}

void staged_call::complete() {
    if (error_ == 0) {
        error_ = finish();
    }
    done_ = true;
    pmpi().Grequest_complete(outer_);
}

// By any number of threads at once (MPI_Request_get_status, beside one that waits). One looks; the
// others leave with "not yet". Who completes the call keeps it and does not touch it again: its
// user may delete it then.
int staged_call::poll(void *state, void *) {
    auto *call = static_cast<staged_call *>(state);
    if (call->is_polled_.test_and_set(std::memory_order_acquire)) {
        return 0;
    }
    struct turn {
        ~turn() {  // also where the thread ends in MPI (pthread_cancel)
            if (of != nullptr) {
                of->clear(std::memory_order_release);
            }
        }
        std::atomic_flag *of;
    } its{&call->is_polled_};
    if (call->done_) {
        return 0;
    }
    const bool first = call->has_ended(&call->inner_, &call->status_);
    if (call->has_ended(&call->second_, status_ignore) && first) {
        call->complete();
        its.of = nullptr;
    }
    return 0;
}

// Another thread may look meanwhile, so MPICH's requests are this one's only in its turns.
int staged_call::wait(int number, void **states, double, void *) {
    for (int i = 0; i < number; ++i) {
        const auto *call = static_cast<const staged_call *>(states[i]);
        while (!call->done_) {
            poll(states[i], nullptr);
            std::this_thread::yield();
        }
    }
    return 0;
}

int staged_call::query(void *state, void *status) noexcept {
    const auto *call = static_cast<const staged_call *>(state);
    status_words found = call->status_;
    found.words[status_words::error] = call->error_;  // which MPI_Waitsome tells of
    std::memcpy(status, &found, sizeof(found));
    return call->error_;
}

int staged_call::cancel(void *state, int complete) {
    auto *call = static_cast<staged_call *>(state);
    return complete != 0 || call->done_ || call->inner_ == null_request
               ? 0
               : pmpi().Cancel(&call->inner_);
}

int staged_call::release(void *state) noexcept {
    auto *call = static_cast<staged_call *>(state);
    if (call->is_freed_) {
        return 0;  // test_freed() deletes it
    }
    held().remove(call->outer_);
    if (call->done_) {
        delete call;
    } else {
        call->keep_freed();  // MPICH 4.1 releases what users free
    }
    return 0;
}

int staged_call::get_status(handle request, int *, void *) {
    staged_call *call = held().find(static_cast<int>(request));
    if (call != nullptr) {
        poll(call, nullptr);
    }
    return pass_on;
}

int staged_call::free_request(void *request) {
    staged_call *call = held().find(*static_cast<int *>(request));
    if (call == nullptr || call->done_) {
        return pass_on;
    }
    held().remove(call->outer_);
    watch_finalize();
    call->is_freed_ = true;
    const int error = pmpi().Request_free(request);
    call->keep_freed();
    return error;
}

void staged_call::keep_freed() noexcept {
    is_freed_ = true;
    std::lock_guard<std::mutex> guard(freed_mutex);
    next_freed_ = first_freed;
    first_freed = this;
    ++number_freed;
}

void staged_call::test_freed() {
    if (number_freed.load(std::memory_order_relaxed) == 0) {
        return;
    }
    staged_call *taken;
    {
        std::lock_guard<std::mutex> guard(freed_mutex);
        taken = std::exchange(first_freed, nullptr);
    }
    while (taken != nullptr) {
        staged_call *call = std::exchange(taken, taken->next_freed_);
        poll(call, nullptr);
        --number_freed;
        if (call->done_) {
            delete call;
        } else {
            call->keep_freed();
        }
    }
}

// MPI_Finalize deletes the attributes of MPI_COMM_SELF first. What nobody matches is left alone.
void staged_call::watch_finalize() noexcept {
    static std::atomic<bool> done{false};
    int is_ready = 0, key = 0;
    if (done.exchange(true) || pmpi().Initialized(&is_ready) != 0 || is_ready == 0) {
        return;
    }
    auto copy = [](int, int, void *, void *, void *, int *is_copied_p) {
        *is_copied_p = 0;
        return 0;
    };
    auto finalize = [](int, int, void *, void *) {
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
        do {
            test_freed();
        } while (number_freed != 0 && std::chrono::steady_clock::now() < end);
        return 0;
    };
    if (pmpi().Comm_create_keyval(copy, finalize, &key, nullptr) == 0) {
        pmpi().Comm_set_attr(self, key, nullptr);
        pmpi().Comm_free_keyval(&key);
    }
}

int report(const failure &what) noexcept {
    pmpi().Comm_call_errhandler(what.comm, what.error);
    return what.error;
}

}  // namespace cuda_nc::hooks::local
