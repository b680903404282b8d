#include "ucp/dt/request_state.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "ucp/dt/free_list.hpp"
#include "ucp/dt/gpu_side.hpp"
#include "ucp/dt/packed_memory.hpp"
#include "ucp/dt/shape_text.hpp"
#include "ucs/base/compiler.hpp"
#include "ucs/base/log.hpp"
#include "ucs/base/statistics.hpp"
#include "ucs/base/trace.hpp"
#include "ucs/exec/host/host_executor.hpp"
#include "ucs/gpu/mover_pulse.hpp"
#include "ucs/model/choices.hpp"

namespace cuda_nc::dt {
namespace {

// Bytes in host memory are moved at once by the host executor, those in GPU memory by `sender` or
// `receiver`.
class alignas(16) state : public request_state {
  public:
    using request_state::address_word;
    using request_state::note_use;
    layout_ref what;  // null where `sender` or `receiver` has it
    char *base = nullptr;
    uint64_t size = 0;      // packed bytes
    uint64_t received = 0;  // bytes; host memory only
    gpu_sender *sender = nullptr;
    gpu_receiver *receiver = nullptr;
    bool packing = false;
    bool error_reported = false;
    gpu::memory_kind kind = gpu::memory_kind::host;
    exec::host_cursor cursor;
    state *next_free = nullptr;
};

// Of a message in GPU memory: one object, so that one free list serves it.
template <typename side>
class gpu_state final : public state {
  public:
    side end;
    gpu_state *next_free = nullptr;
};

bool needs_gpu(const layout &what, const gpu::memory_info &info) noexcept {
    return !CUDA_NC_LIKELY(gpu::is_on_host(info.kind)) && what.packed_size() != 0;
}

__attribute__((always_inline)) inline void begin(state &made, const layout &what,
                                                 gpu::memory_kind kind, bool packing) noexcept {
    made.note_use();
    made.user = nullptr;
    made.size = what.packed_size();
    made.packing = packing;
    made.error_reported = false;
    made.kind = kind;
}

// Null: no memory, or memory of an unknown kind. No GPU is needed.
__attribute__((always_inline)) inline state *start_on_host(layout_ref &what, void *base,
                                                           gpu::memory_kind kind,
                                                           bool packing) noexcept {
    if (CUDA_NC_UNLIKELY(kind == gpu::memory_kind::unknown)) {
        return nullptr;
    }
    state *made = free_list<state>::acquire();
    if (CUDA_NC_UNLIKELY(made == nullptr)) {
        return nullptr;
    }
    begin(*made, *what, kind, packing);
    made->base = static_cast<char *>(base);
    made->received = 0;
    made->cursor.begin();
    made->what = std::move(what);
    return made;
}

// Null: the GPU is not there, no memory, or memory of an unknown kind.
template <typename side, typename pointer>
gpu_state<side> *start_on_gpu(layout_ref &what, pointer base, const gpu::memory_info &info,
                              bool packing) noexcept {
    if (CUDA_NC_UNLIKELY(info.kind == gpu::memory_kind::unknown)) {
        return nullptr;
    }
    auto *made = free_list<gpu_state<side>>::acquire();
    if (CUDA_NC_UNLIKELY(made == nullptr)) {
        return nullptr;
    }
    begin(*made, *what, info.kind, packing);
    trace_mark(packing ? "send begins" : "receive begins", 0, made->size);
    gpu::beat_pulses(gpu::beat::post);
    if (CUDA_NC_UNLIKELY(made->end.begin(std::move(what), base, info) != UCS_OK)) {
        made->note_use();
        free_list<gpu_state<side>>::release(made);
        return nullptr;
    }
    return made;
}

[[noreturn]] void die(const state &failed, size_t offset, ucs_status_t status) noexcept {
    NC_LOG(log_level::fatal,
           "send failed: byte %zu of %llu could not be read from GPU memory, by kernel or by copy: "
           "%s",
           offset, static_cast<unsigned long long>(failed.size), status_text(status));
    std::abort();
}

// UCP reports success whatever we do now: the user would take wrong bytes for the message's.
[[noreturn]] void die_receiving(const state &failed, ucs_status_t status) noexcept {
    NC_LOG(log_level::fatal,
           "receive failed: some of %llu received bytes could not be written to GPU memory, by "
           "kernel or by copy: %s",
           static_cast<unsigned long long>(failed.receiver->received()), status_text(status));
    std::abort();
}

void count(const state &ended) noexcept {
    const char *operation = ended.packing ? "send" : "recv";
    try {
        if (ended.sender != nullptr) {
            count_message_slow(operation, shape_text(ended.sender->what().view()),
                               ended.sender->path(), ended.sender->why(), ended.size);
        } else if (ended.receiver != nullptr) {
            count_message_slow(operation, shape_text(ended.receiver->what().view()),
                               ended.receiver->path(), ended.receiver->why(),
                               ended.receiver->received());
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
    if (!needs_gpu(*what, info)) {
        return start_on_host(what, const_cast<void *>(base), info.kind, true);
    }
    gpu_state<gpu_sender> *made = start_on_gpu<gpu_sender>(what, base, info, true);
    if (made == nullptr) {
        return nullptr;
    }
    gpu_sender &end = made->end;
    made->sender = &end;
    if (end.packer().has_kernels() && made->size >= model::direct_thresh(false)) {
        end.handle.acquire(*made, end);
    }
    return made;
}

request_state *request_state::start_unpack(layout_ref what, void *base,
                                           const gpu::memory_info &info) noexcept {
    if (!needs_gpu(*what, info)) {
        return start_on_host(what, base, info.kind, false);
    }
    gpu_state<gpu_receiver> *made = start_on_gpu<gpu_receiver>(what, base, info, false);
    if (made == nullptr) {
        return nullptr;
    }
    made->receiver = &made->end;
    made->end.handle.acquire(*made, made->end);
    return made;
}

void *request_state::to_ucx() noexcept {
    auto &mine = *static_cast<state *>(this);
    uintptr_t handle = mine.receiver != nullptr ? mine.receiver->handle.value()
                       : mine.sender != nullptr ? mine.sender->handle.value()
                                                : 0;
    return reinterpret_cast<void *>(CUDA_NC_LIKELY(handle == 0) ? mine.address_word() : handle);
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
    if (CUDA_NC_LIKELY(mine.sender == nullptr)) {
        mine.cursor.pack(mine.what->view(), mine.base, offset, destination, length);
        return length;
    }
    ucs_status_t status = pack_gpu(*mine.sender, offset, static_cast<char *>(destination), &length);
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
    if (CUDA_NC_LIKELY(mine.receiver == nullptr)) {
        mine.cursor.unpack(mine.what->view(), mine.base, offset, source, length);
        mine.received += length;
        return UCS_OK;
    }
    ucs_status_t status =
        unpack_gpu(*mine.receiver, offset, static_cast<const char *>(source), length);
    mine.error_reported |= status != UCS_OK;
    return status;
}

ucs_status_t request_state::flush() noexcept {
    state &mine = *static_cast<state *>(this);
    if (mine.receiver == nullptr) {
        return UCS_OK;
    }
    ucs_status_t status = mine.receiver->flush();
    mine.error_reported |= status != UCS_OK;
    return status;
}

void request_state::finish() noexcept {
    state &mine = *static_cast<state *>(this);
    if (CUDA_NC_UNLIKELY(statistics_enabled())) {
        count(mine);
    }
    mine.note_use();
    if (mine.sender != nullptr) {
        mine.sender->leave_transport();
        mine.sender->handle.release();
        mine.sender->end();
        free_list<gpu_state<gpu_sender>>::release(static_cast<gpu_state<gpu_sender> *>(&mine));
    } else if (mine.receiver != nullptr) {
        mine.receiver->leave_transport();
        mine.receiver->fragments.end();
        mine.receiver->handle.release();
        ucs_status_t status = mine.receiver->end();
        if (status != UCS_OK && !mine.error_reported) {
            die_receiving(mine, status);
        }
        free_list<gpu_state<gpu_receiver>>::release(static_cast<gpu_state<gpu_receiver> *>(&mine));
    } else {
        mine.what.reset();
        free_list<state>::release(&mine);
    }
}

void release_unused() noexcept {
    device_staging::release_all_unused();
    packed_memory::release_unused();
    free_list<gpu_state<gpu_sender>>::release_unused();
    free_list<gpu_state<gpu_receiver>>::release_unused();
    free_list<state>::release_unused();
}

}  // namespace cuda_nc::dt
