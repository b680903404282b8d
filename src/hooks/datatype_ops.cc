#include "hooks/datatype_ops.hpp"

#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "hooks/convertor.hpp"
#include "hooks/gpu_presence.hpp"
#include "hooks/owner.hpp"
#include "hooks/policy.hpp"
#include "hooks/type_record.hpp"
#include "hooks/ucp_api.hpp"
#include "ucp/dt/address.hpp"
#include "ucp/dt/request_state.hpp"
#include "ucp/dt/shape_text.hpp"
#include "ucs/base/compiler.hpp"
#include "ucs/base/log.hpp"
#include "ucs/base/statistics.hpp"

namespace cuda_nc::hooks {
namespace {

// A message's state, as UCX keeps it: our engine's state, whose `user` is the original operations'
// state; or, marked, that original state alone. The original operations are always started and
// finished too: that is how Open MPI keeps the type alive.
constexpr uintptr_t original_mark = 1;  // the original operations serve
constexpr uintptr_t failed_mark = 2;    // nobody can: GPU memory, which the CPU must not touch
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

// Open MPI has one table for all its types; set before the first of them is registered.
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
dt::request_state *start_engine(layout_ref what, const void *buffer,
                                const gpu::memory_info &info) noexcept {
    if (packs) {
        return dt::request_state::start_pack(std::move(what), buffer, info);
    }
    return dt::request_state::start_unpack(std::move(what), const_cast<void *>(buffer), info);
}

// Neither our engine nor the CPU can move the message.
void *fail(const type_record &type, void *original, bool packs) noexcept {
    std::string name;
    try {
        name = type.api.name(type.context);
    } catch (...) {
    }
    NC_LOG(packs ? log_level::fatal : log_level::error,
           "a message of %s in GPU memory cannot be %s: no memory, or the GPU is lost",
           name.c_str(), packs ? "sent" : "received");
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

// The message of `what` at `buffer`; `kept` as type_record::layout() has it.
template <bool packs>
void *start_in_gpu_process(const type_record &type, void *original, layout_ref what, bool kept,
                           const void *buffer, size_t count) noexcept {
    gpu::memory_info info = dt::memory_of(*what, buffer);
    choice path = choose_path(*what, info, type.api);
    if (!path.engine) {
        return start_original<packs>(original, what.get(), path.why);
    }
    bool on_host = info.kind == gpu::memory_kind::host || info.kind == gpu::memory_kind::pinned;
    if (!on_host && kept) {
        what = type.owned(count);  // work lists outlive the message
    }
    dt::request_state *engine = start_engine<packs>(std::move(what), buffer, info);
    if (CUDA_NC_LIKELY(engine != nullptr)) {
        engine->user = original;
        return engine;
    }
    if (info.kind == gpu::memory_kind::device) {
        return fail(type, original, packs);
    }
    return start_original<packs>(original, nullptr, "no memory for the engine");
}

template <bool packs>
void *start(void *context, const void *buffer, size_t count) noexcept {
    const auto &type = *static_cast<const type_record *>(context);
    void *original;
    {
        untracked_scope quiet;  // Open MPI prepares a convertor here
        original = packs ? originals.start_pack(type.context, buffer, count)
                         : originals.start_unpack(type.context, const_cast<void *>(buffer), count);
    }
    bool kept;
    layout_ref what = type.layout(count, original, &kept);
    if (CUDA_NC_UNLIKELY(what == nullptr)) {
        return start_original<packs>(original, nullptr, "layout not understood");
    }
    if (CUDA_NC_UNLIKELY(what->packed_size() == 0)) {
        return mark(original, original_mark);
    }
    if (has_gpu()) {
        return start_in_gpu_process<packs>(type, original, std::move(what), kept, buffer, count);
    }
    choice path = choose_for_host(*what, type.api);
    dt::request_state *engine = nullptr;
    if (path.engine) {
        engine = start_engine<packs>(std::move(what), buffer, gpu::memory_info());
        path.why = "no memory for the engine";
    }
    if (CUDA_NC_UNLIKELY(engine == nullptr)) {
        return start_original<packs>(original, what.get(), path.why);
    }
    engine->user = original;
    return engine;
}

void *start_pack(void *context, const void *buffer, size_t count) {
    return start<true>(context, buffer, count);
}

void *start_unpack(void *context, void *buffer, size_t count) {
    return start<false>(context, buffer, count);
}

// ---- the other operations

dt::request_state *engine_of(void *state) noexcept {
    return static_cast<dt::request_state *>(state);
}

size_t packed_size(void *state) {
    return CUDA_NC_LIKELY(marks_of(state) == 0) ? engine_of(state)->packed_size()
                                                : originals.packed_size(unmark(state));
}

size_t pack(void *state, size_t offset, void *destination, size_t max_length) {
    return CUDA_NC_LIKELY(marks_of(state) == 0)
               ? engine_of(state)->pack(offset, destination, max_length)
               : originals.pack(unmark(state), offset, destination, max_length);
}

ucs_status_t unpack(void *state, size_t offset, const void *source, size_t length) {
    if (CUDA_NC_LIKELY(marks_of(state) == 0)) {
        return engine_of(state)->unpack(offset, source, length);
    }
    if (marks_of(state) == failed_mark) {
        return UCS_ERR_NO_MEMORY;
    }
    return originals.unpack(unmark(state), offset, source, length);
}

void finish(void *state) {
    void *original = unmark(state);
    if (CUDA_NC_LIKELY(marks_of(state) == 0)) {
        original = engine_of(state)->user;
        engine_of(state)->finish();
    }
    originals.finish(original);  // may destroy the type, and our record of it
}

const ucp_generic_dt_ops_t replaced_operations = {start_pack, start_unpack, packed_size,
                                                  pack,       unpack,       finish};

// ---- create and destroy

struct registry {
    std::mutex mutex;
    std::unordered_map<uint64_t, std::unique_ptr<type_record>> types;
};

registry &all_types() {
    static auto *only = new registry;
    return *only;
}

// True where `operations` are those that our requests call.
bool adopt(const ucp_generic_dt_ops_t &operations) {
    registry &all = all_types();
    std::lock_guard<std::mutex> guard(all.mutex);
    if (originals.finish == nullptr) {
        originals = operations;
    }
    return std::memcmp(&originals, &operations, sizeof(operations)) == 0;
}

// The record to wrap the datatype with, or null where the caller is to be served by UCX alone.
std::unique_ptr<type_record> make_record(const ucp_api &ucp, const ucp_generic_dt_ops_t &operations,
                                         void *context) {
    const owner &caller = owner_of(reinterpret_cast<const void *>(operations.start_pack));
    switch (caller.what) {
        case owner::kind::other:
            return nullptr;
        case owner::kind::mpich:
            nc_info("%s is an MPICH: its datatypes are left to its own operations",
                    caller.path.c_str());
            return nullptr;
        case owner::kind::unknown_mpi:
            nc_warn_once(
                "%s is an MPI library that we do not know: its datatypes are left to its "
                "own operations",
                caller.path.c_str());
            return nullptr;
        case owner::kind::open_mpi:
            break;
    }
    if (!ucp.at_least(1, 13)) {
        nc_warn_once(
            "UCX %u.%u.%u is older than 1.13: datatypes are left to Open MPI's own "
            "operations",
            ucp.major, ucp.minor, ucp.release);
        return nullptr;
    }
    if (!adopt(operations)) {
        nc_warn_once(
            "%s registers datatypes of two sorts: the second is left to its own operations",
            caller.path.c_str());
        return nullptr;
    }
    return std::make_unique<type_record>(operations, context, *caller.api);
}

}  // namespace

int8_t create_generic(const void *operations, void *context, uint64_t *datatype_p) noexcept {
    const ucp_api *ucp = find_ucp();
    if (ucp == nullptr) {
        return UCS_ERR_UNSUPPORTED;
    }
    auto *given = static_cast<const ucp_generic_dt_ops_t *>(operations);
    std::unique_ptr<type_record> record;
    try {
        record = make_record(*ucp, *given, context);
    } catch (...) {
        nc_warn_once("no memory to serve a datatype: it is left to its own operations");
    }
    if (record == nullptr) {
        return static_cast<int8_t>(ucp->dt_create_generic(given, context, datatype_p));
    }
    ucs_status_t status = ucp->dt_create_generic(&replaced_operations, record.get(), datatype_p);
    if (status != UCS_OK) {
        return static_cast<int8_t>(status);
    }
    type_record *kept = record.release();  // UCX holds it: better leaked than lost
    try {
        registry &all = all_types();
        std::lock_guard<std::mutex> guard(all.mutex);
        all.types[*datatype_p].reset(kept);
    } catch (...) {
    }
    return static_cast<int8_t>(status);
}

void destroy_datatype(uint64_t datatype) noexcept {
    const ucp_api *ucp = find_ucp();
    if (ucp == nullptr) {
        return;
    }
    std::unique_ptr<type_record> record;  // dies after UCX's own, without the lock
    {
        registry &all = all_types();
        std::lock_guard<std::mutex> guard(all.mutex);
        auto entry = all.types.find(datatype);
        if (entry != all.types.end()) {
            record = std::move(entry->second);
            all.types.erase(entry);
        }
    }
    ucp->dt_destroy(datatype);
}

}  // namespace cuda_nc::hooks
