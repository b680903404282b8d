#include "hooks/common/message_ops.hpp"

#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>

#include "hooks/common/gathered_receive.hpp"
#include "hooks/common/gpu_presence.hpp"
#include "hooks/common/policy.hpp"
#include "hooks/common/thread_context.hpp"
#include "hooks/common/type_record.hpp"
#include "ucp/dt/address.hpp"
#include "ucp/dt/cancelled_state.hpp"
#include "ucp/dt/request_state.hpp"
#include "ucp/dt/shape_text.hpp"
#include "ucs/base/compiler.hpp"
#include "ucs/base/log.hpp"
#include "ucs/base/statistics.hpp"

namespace cuda_nc::hooks {
namespace {

// What UCX keeps as a message's state is one of two things. Unmarked: our request_state (by
// to_ucx()), whose `user` is the original operations' state. Marked: that original state alone, or
// the gathered_receive that holds it. The original operations are always started and finished,
// whoever moves the bytes: by that the MPI library keeps the type alive.
constexpr uintptr_t original_mark = 1;  // the original operations move the bytes
constexpr uintptr_t failed_mark = 2;    // nobody can: GPU memory, which the CPU must not touch
constexpr uintptr_t gathered_mark = 3;  // the original operations, when all bytes are gathered
constexpr uintptr_t marks = original_mark | failed_mark;

uintptr_t marks_of(void *state) noexcept {
    return reinterpret_cast<uintptr_t>(state) & marks;
}

void *mark(void *original, uintptr_t how) noexcept {
    return reinterpret_cast<void *>(reinterpret_cast<uintptr_t>(original) | how);
}

void *unmark(void *state) noexcept {
    return reinterpret_cast<void *>(reinterpret_cast<uintptr_t>(state) & ~marks);
}

ucp_generic_dt_ops_t originals;

// ---- start

void count_original(bool packs, void *original, const layout *what, const char *why) noexcept {
    if (CUDA_NC_LIKELY(!statistics_enabled())) {
        return;
    }
    try {
        count_message_slow(packs ? "send" : "recv",
                           what != nullptr ? dt::shape_text(what->view()) : "not read", "original",
                           why, originals.packed_size(original));
    } catch (...) {
        // a lost count harms nobody
    }
}

template <bool packs>
dt::request_state *start_ours(layout_ref what, const void *buffer,
                              const gpu::memory_info &info) noexcept {
    if (packs) {
        return dt::request_state::start_pack(std::move(what), buffer, info);
    }
    return dt::request_state::start_unpack(std::move(what), const_cast<void *>(buffer), info);
}

// Neither we nor the CPU can move the message.
void *fail(const type_record &type, void *original, bool packs, const char *why) noexcept {
    std::string name;
    try {
        name = type.mpi.name(type.datatype);
    } catch (...) {
    }
    NC_LOG(packs ? log_level::fatal : log_level::error,
           "a message of datatype %s in GPU memory cannot be %s: %s", name.c_str(),
           packs ? "sent" : "received", why);
    if (packs) {
        std::abort();  // a sender cannot report an error to UCX, and must not deliver wrong bytes
    }
    return mark(original, failed_mark);
}

template <bool packs>
void *start_original(void *original, const layout *what, const char *why) noexcept {
    count_original(packs, original, what, why);
    return mark(original, original_mark);
}

// A receive that the original operations are to unpack: some of them only as a whole.
void *gathered_if_needed(const mpi_library &mpi, void *state) noexcept {
    if (marks_of(state) != original_mark || !mpi.unpacks_only_whole_messages()) {
        return state;
    }
    void *original = unmark(state);
    gathered_receive *gathered = gathered_receive::start(originals, original);
    return gathered != nullptr ? mark(gathered, gathered_mark) : mark(original, failed_mark);
}

template <bool packs>
void *start_on_host(void *original, layout_ref what, const choice &path, const void *buffer,
                    const gpu::memory_info &info) noexcept {
    const char *why = path.why;
    if (path.serve) {
        dt::request_state *ours = start_ours<packs>(std::move(what), buffer, info);
        if (CUDA_NC_LIKELY(ours != nullptr)) {
            ours->user = original;
            return ours->to_ucx();
        }
        why = "no memory for the engine";
    }
    return start_original<packs>(original, what.get(), why);
}

template <bool packs>
void *start_on_gpu(const type_record &type, void *original, layout_ref what,
                   const gpu::memory_info &info, const choice &path, const void *buffer) noexcept {
    if (!path.serve) {
        return start_original<packs>(original, what.get(), path.why);
    }
    dt::request_state *ours = start_ours<packs>(std::move(what), buffer, info);
    if (CUDA_NC_LIKELY(ours != nullptr)) {
        ours->user = original;
        return ours->to_ucx();
    }
    if (info.kind == gpu::memory_kind::device) {
        return fail(type, original, packs, "no memory, or the GPU is lost");
    }
    return start_original<packs>(original, nullptr, "no memory for the engine");
}

// `kept`: the type keeps `all`, and outlives the message. `sees_gpu`: as of sees_gpu_memory().
template <bool packs>
void *start_counted(const type_record &type, void *original, const counted_layout &all, bool kept,
                    bool sees_gpu, const void *buffer) noexcept {
    gpu::memory_info info;
    choice path = all.on_host;
    if (CUDA_NC_UNLIKELY(sees_gpu)) {
        info = dt::memory_of(*all.what, buffer);
        path = choose_path(info, all.on_host);
        if (!gpu::is_on_host(info.kind)) {
            // a work list may outlive message and type, and shares the layout
            return start_on_gpu<packs>(type, original, all.what, info, path, buffer);
        }
    }
    // a reference that owns nothing saves two atomic operations a message
    layout_ref what = kept ? layout_ref(layout_ref(), all.what.get()) : all.what;
    return start_on_host<packs>(original, std::move(what), path, buffer, info);
}

bool lies_in_gpu_memory(const type_record &type, size_t count, const void *buffer) noexcept {
    int64_t first;
    return sees_gpu_memory() && type.mpi.first_displacement(type.datatype, count, &first) &&
           gpu::platform::instance().query(dt::displaced(buffer, first)).kind ==
               gpu::memory_kind::device;
}

template <bool packs>
void *start_unknown(const type_record &type, void *original, size_t count,
                    const void *buffer) noexcept {
    constexpr const char *why = "layout not understood";
    if (lies_in_gpu_memory(type, count, buffer) && !type.mpi.takes_gpu_memory()) {
        return fail(type, original, packs, why);
    }
    return start_original<packs>(original, nullptr, why);
}

template <bool packs>
__attribute__((noinline)) void *start_new_count(const type_record &type, void *original,
                                                size_t count, bool sees_gpu,
                                                const void *buffer) noexcept {
    counted_layout made;
    if (!type.make(count, originals.packed_size(original), &made)) {
        return start_unknown<packs>(type, original, count, buffer);
    }
    return start_counted<packs>(type, original, made, false, sees_gpu, buffer);
}

template <bool packs>
void *start(void *context, const void *buffer, size_t count) noexcept {
    const auto &type = *static_cast<const type_record *>(context);
    const bool sees_gpu = sees_gpu_memory();
    void *original;
    {
        original_start_scope scope(sees_gpu);
        original = packs ? originals.start_pack(type.context, buffer, count)
                         : originals.start_unpack(type.context, const_cast<void *>(buffer), count);
    }
    const counted_layout *known = type.find(count);
    void *state = CUDA_NC_UNLIKELY(known == nullptr)
                      ? start_new_count<packs>(type, original, count, sees_gpu, buffer)
                      : start_counted<packs>(type, original, *known, true, sees_gpu, buffer);
    return packs ? state : gathered_if_needed(type.mpi, state);
}

void *start_pack(void *context, const void *buffer, size_t count) {
    return start<true>(context, buffer, count);
}

void *start_unpack(void *context, void *buffer, size_t count) {
    return start<false>(context, buffer, count);
}

// ---- the other operations

dt::request_state *our_state(void *state) noexcept {
    return dt::request_state::from_ucx(state);
}

gathered_receive *gathered_state(void *state) noexcept {
    return static_cast<gathered_receive *>(unmark(state));
}

// Of a state that is not ours.
void *original_state(void *state) noexcept {
    return marks_of(state) == gathered_mark ? gathered_state(state)->original() : unmark(state);
}

size_t packed_size(void *state) {
    return CUDA_NC_LIKELY(marks_of(state) == 0) ? our_state(state)->packed_size()
                                                : originals.packed_size(original_state(state));
}

size_t pack(void *state, size_t offset, void *destination, size_t max_length) {
    return CUDA_NC_LIKELY(marks_of(state) == 0)
               ? our_state(state)->pack(offset, destination, max_length)
               : originals.pack(unmark(state), offset, destination, max_length);
}

ucs_status_t unpack(void *state, size_t offset, const void *source, size_t length) {
    if (CUDA_NC_LIKELY(marks_of(state) == 0)) {
        return our_state(state)->unpack(offset, source, length);
    }
    if (marks_of(state) == failed_mark) {
        return UCS_ERR_NO_MEMORY;
    }
    if (marks_of(state) == gathered_mark) {
        return gathered_state(state)->unpack(offset, source, length);
    }
    return originals.unpack(unmark(state), offset, source, length);
}

void finish(void *state) {
    dt::note_finish(state);
    void *original;
    if (CUDA_NC_LIKELY(marks_of(state) == 0)) {
        dt::request_state *ended = dt::request_state::to_finish(state);
        if (CUDA_NC_UNLIKELY(ended == nullptr)) {
            return;
        }
        original = ended->user;
        ended->finish();
    } else {
        original = original_state(state);
        if (marks_of(state) == gathered_mark) {
            gathered_state(state)->finish();
        }
    }
    originals.finish(original);  // may destroy the type and our record of it
}

}  // namespace

const ucp_generic_dt_ops_t message_operations = {start_pack, start_unpack, packed_size,
                                                 pack,       unpack,       finish};

bool adopt_originals(const ucp_generic_dt_ops_t &operations) {
    static std::mutex mutex;
    std::lock_guard<std::mutex> guard(mutex);
    if (originals.finish == nullptr) {
        originals = operations;
    }
    return std::memcmp(&originals, &operations, sizeof(operations)) == 0;
}

}  // namespace cuda_nc::hooks
