#include "hooks/datatype_ops.hpp"

#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "hooks/convertor.hpp"
#include "hooks/owner.hpp"
#include "hooks/policy.hpp"
#include "hooks/type_record.hpp"
#include "hooks/ucp_api.hpp"
#include "ucp/dt/address.hpp"
#include "ucp/dt/free_list.hpp"
#include "ucp/dt/request_state.hpp"
#include "ucp/dt/shape_text.hpp"
#include "ucs/base/compiler.hpp"
#include "ucs/base/log.hpp"
#include "ucs/base/statistics.hpp"

namespace cuda_nc::hooks {
namespace {

// One message. The original operations are always started and finished too: that is how Open MPI
// keeps the type alive.
struct request {
    dt::request_state *engine = nullptr;  // null: the original operations serve
    void *original = nullptr;
    const type_record *type = nullptr;
    bool failed = false;  // GPU memory that the engine could not take: nobody else may touch it
    request *next_free = nullptr;
};

// ---- start

void count_original(const char *operation, const request &of, const layout *what,
                    const char *why) noexcept {
    if (CUDA_NC_LIKELY(!statistics_enabled())) {
        return;
    }
    try {
        count_message_slow(operation, what != nullptr ? dt::shape_text(what->view()) : "not read",
                           "original", why, of.type->operations.packed_size(of.original));
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
void fail(request *of, bool packs, const layout &what) noexcept {
    of->failed = true;
    std::string text;
    try {
        text = of->type->api.name(of->type->context) + ", " + what.describe();
    } catch (...) {
    }
    NC_LOG(packs ? log_level::fatal : log_level::error,
           "a message of %s in GPU memory cannot be %s: no memory, or the GPU is lost",
           text.c_str(), packs ? "sent" : "received");
    if (packs) {
        std::abort();  // a sender cannot report an error to UCX, and must not deliver wrong bytes
    }
}

template <bool packs>
void choose(request *of, const void *buffer, size_t count) noexcept {
    const type_record &type = *of->type;
    const char *operation = packs ? "send" : "recv";
    bool kept;
    layout_ref what = type.layout(count, of->original, &kept);
    if (CUDA_NC_UNLIKELY(what == nullptr)) {
        count_original(operation, *of, nullptr, "layout not understood");
        return;
    }
    if (CUDA_NC_UNLIKELY(what->packed_size() == 0)) {
        return;
    }
    gpu::memory_info info = dt::memory_of(*what, buffer);
    choice path = choose_path(*what, info, type.api);
    if (!path.engine) {
        count_original(operation, *of, what.get(), path.why);
        return;
    }
    const layout &seen = *what;
    bool on_host = info.kind == gpu::memory_kind::host || info.kind == gpu::memory_kind::pinned;
    if (!on_host && kept) {
        what = type.owned(count);  // work lists outlive the message
    }
    layout_ref held = on_host ? nullptr : what;
    of->engine = start_engine<packs>(std::move(what), buffer, info);
    if (CUDA_NC_LIKELY(of->engine != nullptr)) {
        return;
    }
    if (info.kind == gpu::memory_kind::device) {
        fail(of, packs, seen);
    } else {
        count_original(operation, *of, nullptr, "no memory for the engine");
    }
}

template <bool packs>
void *start(void *context, const void *buffer, size_t count) noexcept {
    auto *type = static_cast<const type_record *>(context);
    request *of = dt::free_list<request>::take();
    if (CUDA_NC_UNLIKELY(of == nullptr)) {
        NC_LOG(log_level::fatal, "no memory for a message's state");
        std::abort();  // UCX takes no failure here
    }
    of->engine = nullptr;
    of->type = type;
    of->failed = false;
    {
        untracked_scope quiet;  // Open MPI prepares a convertor here
        of->original =
            packs ? type->operations.start_pack(type->context, buffer, count)
                  : type->operations.start_unpack(type->context, const_cast<void *>(buffer), count);
    }
    choose<packs>(of, buffer, count);
    return of;
}

void *start_pack(void *context, const void *buffer, size_t count) {
    return start<true>(context, buffer, count);
}

void *start_unpack(void *context, void *buffer, size_t count) {
    return start<false>(context, buffer, count);
}

// ---- the other operations

size_t packed_size(void *state) {
    auto *of = static_cast<const request *>(state);
    return of->engine != nullptr ? of->engine->packed_size()
                                 : of->type->operations.packed_size(of->original);
}

size_t pack(void *state, size_t offset, void *destination, size_t max_length) {
    auto *of = static_cast<request *>(state);
    if (of->engine != nullptr) {
        return of->engine->pack(offset, destination, max_length);
    }
    return of->type->operations.pack(of->original, offset, destination, max_length);
}

ucs_status_t unpack(void *state, size_t offset, const void *source, size_t length) {
    auto *of = static_cast<request *>(state);
    if (of->engine != nullptr) {
        return of->engine->unpack(offset, source, length);
    }
    if (of->failed) {
        return UCS_ERR_NO_MEMORY;
    }
    return of->type->operations.unpack(of->original, offset, source, length);
}

void finish(void *state) {
    auto *of = static_cast<request *>(state);
    if (of->engine != nullptr) {
        of->engine->finish();
    }
    void (*original_finish)(void *) = of->type->operations.finish;
    void *original = of->original;
    dt::free_list<request>::give(of);
    original_finish(original);  // may destroy the type, and our record of it
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
