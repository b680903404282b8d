#include "ucs/backend/cuda/mover.hpp"

#include <algorithm>
#include <new>

#include "ucs/base/log.hpp"
#include "ucs/base/settings.hpp"
#include "ucs/base/trace.hpp"
#include "ucs/base/watched.hpp"
#include "ucs/gpu/shared_memory.hpp"
#include "ucs/backend/backends.hpp"
#include "ucs/backend/cuda/errors.hpp"
#include "ucs/backend/cuda/memory.hpp"

namespace cuda_nc::gpu::cuda {
namespace {

// A program that posts and waits for messages comes to UCX every microsecond or two; a launch there
// takes some more.
constexpr uint64_t away_ns = 12000;
constexpr uint64_t patience_ns = 2000000000;  // of thread blocks with each other

// A stream whose work runs before that of others, and waits for none of it.
ucs_status_t make_stream(cudaStream_t *stream_p) noexcept {
    int least = 0, greatest = 0;
    ucs_status_t status = to_status(cudaDeviceGetStreamPriorityRange(&least, &greatest),
                                    "cudaDeviceGetStreamPriorityRange");
    if (status == UCS_OK) {
        status = to_status(cudaStreamCreateWithPriority(stream_p, cudaStreamNonBlocking, greatest),
                           "cudaStreamCreateWithPriority");
    }
    return status;
}

void end(cudaStream_t stream) noexcept {
    cudaStreamSynchronize(stream);
    cudaStreamDestroy(stream);
}

// Kernels of several processes run side by side where all of them are clients of one MPS service.
bool is_shared_by_mps(int ordinal) noexcept {
    constexpr auto mps_enabled = static_cast<cudaDeviceAttr>(133);  // CUDA 12.0 has no name for it
    int enabled = 0;
    if (cudaDeviceGetAttribute(&enabled, mps_enabled, ordinal) != cudaSuccess) {
        cudaGetLastError();  // an older driver
        return false;
    }
    return enabled != 0;
}

// Null: there may be one, on a GPU of which `num_sms` multiprocessors may be used.
const char *reason_for_none(unsigned num_sms) noexcept {
    const settings &set = config();
    return set.launches_block ? "CUDA_LAUNCH_BLOCKING is set"
           : set.max_sms != 0 && set.max_sms < exec::mover_thread_blocks
               ? "MAX_SMS allows fewer multiprocessors"
           // On a small part of a GPU, for one: application's kernels shall have half of it.
           : num_sms < 2 * exec::mover_thread_blocks ? "the GPU has few multiprocessors"
           : is_watched()                            ? "a debugger or a tool watches this process"
                                                     : nullptr;
}

}  // namespace

cuda_mover::cuda_mover(primary_context &owner, unsigned most_sms, bool host_caches_memory) noexcept
    : mover_desk(config().mover_idle, config().mover_always, away_ns),
      owner_(owner),
      most_sms_(most_sms),
      host_caches_memory_(host_caches_memory) {}

std::unique_ptr<cuda_mover> cuda_mover::make(device &on, primary_context &owner,
                                             bool host_caches_memory) noexcept {
    const unsigned num_sms = on.properties().num_sms, max_sms = config().max_sms;
    if (const char *why = reason_for_none(num_sms)) {
        nc_debug("no mover: %s", why);
        return nullptr;
    }
    std::unique_ptr<cuda_mover> made(new (std::nothrow) cuda_mover(
        owner, max_sms != 0 ? std::min(max_sms, num_sms) : num_sms, host_caches_memory));
    if (made == nullptr || made->open(on) != UCS_OK) {
        return nullptr;
    }
    return made;
}

ucs_status_t cuda_mover::open(device &on) noexcept {
    const trace_span span("make a mover");
    takes_turns_ = !is_shared_by_mps(on.properties().ordinal);
    if (takes_turns_ && !sole_.enter(on.properties().bus_id)) {
        return UCS_ERR_UNSUPPORTED;
    }
    // The pulse is written whatever has become of the context.
    ucs_status_t status = make_lasting_memory(on, sizeof(mover_memory), &pinned_);
    if (status != UCS_OK) {
        nc_debug("no mover: its orders cannot be pinned: %s", status_text(status));
    }
    if (status == UCS_OK) {
        status = on.allocate(sizeof(exec::mover_state), &state_);
    }
    current_scope scope(owner_.calls(), owner_.get());
    if (status != UCS_OK || !scope) {
        return status != UCS_OK ? status : scope.status();
    }
    status = make_stream(&stream_);
    for (cudaStream_t &one : set_streams_) {
        status = status == UCS_OK ? make_stream(&one) : status;
    }
    if (status == UCS_OK) {
        status =
            to_status(cudaMemsetAsync(state_->address(), 0, sizeof(exec::mover_state), stream_),
                      "cudaMemsetAsync");
    }
    if (status == UCS_OK) {
        status = to_status(exec::load_mover(owner_.kernels()), "loading a mover's kernel");
    }
    if (status != UCS_OK) {
        return status;
    }
    shared_ = reinterpret_cast<mover_memory *>(pinned_->address());  // pages
    shared_->begin();
    use(shared_);
    return UCS_OK;
}

cuda_mover::~cuda_mover() {
    if (forked()) {
        return;
    }
    retire();
    if (stream_ == nullptr || !owner_.alive()) {
        return;
    }
    leave();
    current_scope scope(owner_.calls(), owner_.get());
    if (!scope) {
        return;
    }
    end(stream_);
    for (cudaStream_t one : set_streams_) {
        if (one != nullptr) {
            end(one);
        }
    }
}

bool cuda_mover::is_usable() noexcept {
    return !forked() && !owner_.gone();
}

bool cuda_mover::describe(const move_order &one, ticket,
                          uint32_t (*words_p)[order_words]) noexcept {
    move_order mine = one;
    mine.into_own_memory &= !host_caches_memory_;
    return exec::plan_order(mine, words_p);
}

ucs_status_t cuda_mover::launch(const mover_launch &how) noexcept {
    if (!is_usable()) {
        return UCS_ERR_IO_ERROR;
    }
    if (takes_turns_ && !sole_.is_alone()) {
        return UCS_ERR_NO_RESOURCE;  // the orders are launched, as long as others use the GPU
    }
    current_scope scope(owner_.calls(), owner_.get());
    if (!scope) {
        return scope.status();
    }
    exec::mover_arguments arguments;
    arguments.shared = shared_;
    arguments.state = reinterpret_cast<exec::mover_state *>(state_->address());
    arguments.how = how;
    arguments.stay_ns = longest_stay_us * 1000;
    arguments.patience_ns = patience_ns;
    return to_status(exec::launch_mover(owner_.kernels(), arguments, stream_), "a mover's launch");
}

ucs_status_t cuda_mover::ask_kernels() noexcept {
    if (!owner_.alive()) {
        return UCS_ERR_IO_ERROR;
    }
    current_scope scope(owner_.calls(), owner_.get());
    return scope ? to_status(cudaStreamQuery(stream_), "a mover's work") : scope.status();
}

ucs_status_t cuda_mover::launch_set(const uint32_t (*words)[order_words], size_t number,
                                    ticket first) noexcept {
    current_scope scope(owner_.calls(), owner_.get());
    if (!scope) {
        return scope.status();
    }
    const cudaStream_t on = set_streams_[next_set_stream_++ % set_streams_.size()];
    return to_status(
        exec::launch_set(owner_.kernels(), shared_, words, number, first, most_sms_, on),
        "a launch of orders");
}

ucs_status_t cuda_mover::ask_sets() noexcept {
    if (!owner_.alive()) {
        return UCS_ERR_IO_ERROR;
    }
    current_scope scope(owner_.calls(), owner_.get());
    ucs_status_t status = scope ? UCS_OK : scope.status();
    for (size_t i = 0; i < set_streams_.size() && status == UCS_OK; ++i) {
        status = to_status(cudaStreamQuery(set_streams_[i]), "a launch of orders");
    }
    return status;
}

}  // namespace cuda_nc::gpu::cuda
