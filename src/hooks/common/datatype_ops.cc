#include "hooks/common/datatype_ops.hpp"

#include <memory>
#include <mutex>
#include <unordered_map>

#include "hooks/common/message_ops.hpp"
#include "hooks/common/owner.hpp"
#include "hooks/common/type_record.hpp"
#include "hooks/common/ucp_api.hpp"
#include "ucs/base/log.hpp"

namespace cuda_nc::hooks {
namespace {

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
    if (!adopt_originals(operations)) {
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
    ucs_status_t status = ucp->dt_create_generic(&message_operations, record.get(), datatype_p);
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

bool find_bytes(uint64_t datatype, uint64_t count, dt::message_bytes *bytes_p) noexcept {
    const type_record *record;
    {
        registry &all = all_types();
        std::lock_guard<std::mutex> guard(all.mutex);
        auto entry = all.types.find(datatype);
        if (entry == all.types.end()) {
            return false;
        }
        record = entry->second.get();  // the caller keeps its datatype
    }
    return record->find_bytes(count, bytes_p);
}

}  // namespace cuda_nc::hooks
