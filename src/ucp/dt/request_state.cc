#include "ucp/dt/request_state.hpp"

#include <algorithm>
#include <cstdlib>
#include <type_traits>
#include <utility>

#include "ucp/dt/free_list.hpp"
#include "ucp/dt/receive_pipeline.hpp"
#include "ucp/dt/send_pipeline.hpp"
#include "ucp/dt/shape_text.hpp"
#include "ucs/base/compiler.hpp"
#include "ucs/base/log.hpp"
#include "ucs/base/statistics.hpp"
#include "ucs/base/trace.hpp"
#include "ucs/exec/host/host_executor.hpp"
#include "ucs/model/choices.hpp"
#include "uct/cuda_nc/thread_context.hpp"
#include "uct/cuda_nc/user_buffer.hpp"

namespace cuda_nc::dt {
namespace {

// A pipeline through host memory, and what the transport needs to bring the bytes past it.
template <typename pipeline>
struct gpu_side final : pipeline, uct::user_buffer {
    gpu_side *next_free = nullptr;
    uintptr_t handle = 0;  // what UCX knows it by

    int device() const noexcept override { return const_cast<gpu_side *>(this)->mover().ordinal(); }
    uint64_t packed_bytes() const noexcept override { return pipeline::packed_size(); }
    bool sends() const noexcept override { return std::is_same_v<pipeline, send_pipeline>; }
    uint64_t ucx_state() const noexcept override { return handle; }
    const layout *laid_out(char **base_p) const noexcept override {
        const device_mover &mover = const_cast<gpu_side *>(this)->mover();
        *base_p = mover.base();
        return &mover.what();
    }
    ucs_status_t enqueue(uint64_t offset, uint64_t length, char *packed,
                         gpu::event &done) noexcept override {
        if constexpr (std::is_same_v<pipeline, receive_pipeline>) {
            pipeline::launch_gathered();  // the first bytes, not before the sender has its answer
        }
        return pipeline::mover().enqueue_packed(offset, length, packed, done);
    }
    ucs_status_t prepare(gpu::pipe_work &work, gpu::stream &on,
                         bool in_memory_order) noexcept override {
        return pipeline::mover().prepare_pipe(work, on, in_memory_order);
    }
    void leave_transport() noexcept {
        if (message != nullptr) {
            message->leave();
        }
    }
};

using sender = gpu_side<send_pipeline>;
using receiver = gpu_side<receive_pipeline>;

// Host memory is served by the executor right away; `gpu_sender` or `gpu_receiver` serves a GPU's.
class state final : public request_state {
  public:
    layout_ref what;  // null where a pipeline has it
    char *base = nullptr;
    uint64_t size = 0;      // packed bytes
    uint64_t received = 0;  // bytes; host memory only
    sender *gpu_sender = nullptr;
    receiver *gpu_receiver = nullptr;
    bool packing = false;
    bool error_reported = false;
    gpu::memory_kind kind = gpu::memory_kind::host;
    exec::host_cursor cursor;
    state *next_free = nullptr;
};

bool on_host(gpu::memory_kind kind) noexcept {
    return kind == gpu::memory_kind::host || kind == gpu::memory_kind::pinned;
}

state *take(uint64_t size, char *base, const gpu::memory_info &info, bool packing) noexcept {
    state *made = free_list<state>::take();
    if (made != nullptr) {
        made->user = nullptr;
        made->base = base;
        made->size = size;
        made->received = 0;
        made->packing = packing;
        made->error_reported = false;
        made->kind = info.kind;
        made->cursor.begin();
    }
    return made;
}

// Null: the GPU is not there, or no memory.
template <typename pipeline, typename pointer>
pipeline *begin_pipeline(layout_ref what, pointer base, int ordinal) noexcept {
    pipeline *one = free_list<pipeline>::take();
    if (one != nullptr && one->begin(std::move(what), base, ordinal) != UCS_OK) {
        free_list<pipeline>::give(one);
        one = nullptr;
    }
    return one;
}

// Bytes of a GPU: from the GPU's transport where one offers itself, or through host memory.
ucs_status_t pack_gpu(sender &from, uint64_t offset, char *destination, size_t *length_p) noexcept {
    uct::pack_call *call = uct::pack_call::current();
    if (CUDA_NC_LIKELY(call == nullptr || !from.mover().has_kernels())) {
        from.leave_transport();  // these bytes go another way than those before
        return from.read(offset, destination, *length_p);
    }
    size_t first = *length_p;
    switch (call->ask(from, offset, &first)) {
        case uct::pack_answer::first:
            *length_p = first;
            return from.read(offset, destination, *length_p, 1);
        case uct::pack_answer::wait:
            return UCS_OK;
        case uct::pack_answer::fin:
            from.count_direct();
            *length_p = static_cast<size_t>(from.packed_bytes() - offset);
            return UCS_OK;
        case uct::pack_answer::fragment:
            break;
    }
    return from.read(offset, destination, *length_p);
}

ucs_status_t unpack_gpu(receiver &to, uint64_t offset, const char *source, size_t length) noexcept {
    uct::unpack_call *call = uct::unpack_call::current();
    if (CUDA_NC_LIKELY(call == nullptr)) {
        to.leave_transport();  // no kernel writes there after these bytes
        return to.write(offset, source, length);
    }
    uct::unpack_call::current_ = nullptr;  // for these bytes alone
    if (call->fin) {
        if (call->buffer != &to) {
            return UCS_ERR_IO_ERROR;
        }
        if (call->whole && call->status == UCS_OK) {
            to.drop_gathered();
        }
        return to.arrived(length, call->status);
    }
    ucs_status_t status = to.write(offset, source, length);
    if (status == UCS_OK && to.mover().has_kernels()) {
        call->finder = to.handle;
    }
    return status;
}

template <typename side>
void give_handle(side &of) noexcept {
    if (of.handle != 0) {
        give_message_handle(of.handle);
        of.handle = 0;
    }
}

[[noreturn]] void die(const state &failed, size_t offset, ucs_status_t status) noexcept {
    NC_LOG(log_level::fatal,
           "a message cannot be sent on: byte %zu of %llu could not be read from GPU memory, by "
           "kernels or by copies: %s",
           offset, static_cast<unsigned long long>(failed.size), status_text(status));
    std::abort();
}

// UCP has decided already how the receive ends: wrong bytes would pass for the message's.
[[noreturn]] void die_receiving(const state &failed, ucs_status_t status) noexcept {
    NC_LOG(log_level::fatal,
           "a receive cannot end: of the %llu bytes that came some could not be written to GPU "
           "memory, by kernels or by copies: %s",
           static_cast<unsigned long long>(failed.gpu_receiver->received()), status_text(status));
    std::abort();
}

void count(const state &ended) noexcept {
    const char *operation = ended.packing ? "send" : "recv";
    try {
        if (ended.gpu_sender != nullptr) {
            count_message_slow(operation, shape_text(ended.gpu_sender->what().view()),
                               ended.gpu_sender->path(), ended.gpu_sender->why(), ended.size);
        } else if (ended.gpu_receiver != nullptr) {
            count_message_slow(operation, shape_text(ended.gpu_receiver->what().view()),
                               ended.gpu_receiver->path(), ended.gpu_receiver->why(),
                               ended.gpu_receiver->received());
        } else {
            count_message_slow(operation, shape_text(ended.what->view()), "host engine",
                               ended.kind == gpu::memory_kind::pinned ? "buffer in pinned memory"
                                                                      : "buffer in host memory",
                               ended.packing ? ended.size : ended.received);
        }
    } catch (...) {
        // a lost count harms nobody
    }
}

}  // namespace

request_state *request_state::start_pack(layout_ref what, const void *base,
                                         const gpu::memory_info &info) noexcept {
    if (CUDA_NC_UNLIKELY(info.kind == gpu::memory_kind::unknown)) {
        return nullptr;
    }
    char *start = const_cast<char *>(static_cast<const char *>(base));
    state *made = take(what->packed_size(), start, info, true);
    if (CUDA_NC_UNLIKELY(made == nullptr)) {
        return nullptr;
    }
    if (CUDA_NC_LIKELY(on_host(info.kind)) || made->size == 0) {
        made->what = std::move(what);
        return made;
    }
    trace_mark("send begins", 0, made->size);
    made->gpu_sender = begin_pipeline<sender>(std::move(what), base, info.device);
    if (made->gpu_sender == nullptr) {
        free_list<state>::give(made);
        return nullptr;
    }
    if (made->gpu_sender->mover().has_kernels() && made->size >= model::direct_thresh(false)) {
        made->gpu_sender->handle = take_message_handle(*made, *made->gpu_sender);
    }
    return made;
}

request_state *request_state::start_unpack(layout_ref what, void *base,
                                           const gpu::memory_info &info) noexcept {
    if (CUDA_NC_UNLIKELY(info.kind == gpu::memory_kind::unknown)) {
        return nullptr;
    }
    state *made = take(what->packed_size(), static_cast<char *>(base), info, false);
    if (CUDA_NC_UNLIKELY(made == nullptr)) {
        return nullptr;
    }
    if (CUDA_NC_LIKELY(on_host(info.kind)) || made->size == 0) {
        made->what = std::move(what);
        return made;
    }
    trace_mark("receive begins", 0, made->size);
    made->gpu_receiver = begin_pipeline<receiver>(std::move(what), base, info.device);
    if (made->gpu_receiver == nullptr) {
        free_list<state>::give(made);
        return nullptr;
    }
    made->gpu_receiver->handle = take_message_handle(*made, *made->gpu_receiver);
    return made;
}

void *request_state::to_ucx() noexcept {
    auto &mine = *static_cast<state *>(this);
    uintptr_t handle = mine.gpu_receiver != nullptr ? mine.gpu_receiver->handle
                       : mine.gpu_sender != nullptr ? mine.gpu_sender->handle
                                                    : 0;
    return CUDA_NC_LIKELY(handle == 0) ? this : reinterpret_cast<void *>(handle);
}

size_t request_state::packed_size() const noexcept {
    return static_cast<const state *>(this)->size;
}

size_t request_state::pack(size_t offset, void *destination, size_t max_length) noexcept {
    state &mine = *static_cast<state *>(this);
    if (CUDA_NC_UNLIKELY(offset >= mine.size)) {
        return 0;
    }
    size_t length = std::min<uint64_t>(max_length, mine.size - offset);
    if (CUDA_NC_LIKELY(mine.gpu_sender == nullptr)) {
        mine.cursor.pack(mine.what->view(), mine.base, offset, destination, length);
        return length;
    }
    ucs_status_t status =
        pack_gpu(*mine.gpu_sender, offset, static_cast<char *>(destination), &length);
    if (status != UCS_OK) {
        die(mine, offset, status);
    }
    return length;
}

ucs_status_t request_state::unpack(size_t offset, const void *source, size_t length) noexcept {
    state &mine = *static_cast<state *>(this);
    if (CUDA_NC_UNLIKELY(offset > mine.size || length > mine.size - offset)) {
        return UCS_ERR_MESSAGE_TRUNCATED;
    }
    if (CUDA_NC_LIKELY(mine.gpu_receiver == nullptr)) {
        mine.cursor.unpack(mine.what->view(), mine.base, offset, source, length);
        mine.received += length;
        return UCS_OK;
    }
    ucs_status_t status =
        unpack_gpu(*mine.gpu_receiver, offset, static_cast<const char *>(source), length);
    mine.error_reported |= status != UCS_OK;
    return status;
}

ucs_status_t request_state::flush() noexcept {
    state &mine = *static_cast<state *>(this);
    if (mine.gpu_receiver == nullptr) {
        return UCS_OK;
    }
    ucs_status_t status = mine.gpu_receiver->flush();
    mine.error_reported |= status != UCS_OK;
    return status;
}

void request_state::finish() noexcept {
    state &mine = *static_cast<state *>(this);
    if (CUDA_NC_UNLIKELY(statistics_enabled())) {
        count(mine);
    }
    if (mine.gpu_sender != nullptr) {
        mine.gpu_sender->leave_transport();
        give_handle(*mine.gpu_sender);
        mine.gpu_sender->end();
        free_list<sender>::give(mine.gpu_sender);
        mine.gpu_sender = nullptr;
    } else if (mine.gpu_receiver != nullptr) {
        mine.gpu_receiver->leave_transport();
        give_handle(*mine.gpu_receiver);
        ucs_status_t status = mine.gpu_receiver->end();
        if (status != UCS_OK && !mine.error_reported) {
            die_receiving(mine, status);
        }
        free_list<receiver>::give(mine.gpu_receiver);
        mine.gpu_receiver = nullptr;
    } else {
        mine.what.reset();
    }
    free_list<state>::give(&mine);
}

void release_unused() noexcept {
    device_staging::release_all_unused();
    free_list<sender>::release_unused();
    free_list<receiver>::release_unused();
    free_list<state>::release_unused();
}

}  // namespace cuda_nc::dt
