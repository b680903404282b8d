#include "hooks/common/datatype_ops.hpp"

#include <memory>

#include "hooks/common/message_ops.hpp"
#include "hooks/common/owner.hpp"
#include "hooks/common/record_map.hpp"
#include "hooks/common/type_record.hpp"
#include "hooks/common/ucp_api.hpp"
#include "ucs/base/log.hpp"

namespace cuda_nc::hooks {
namespace {

using registered_map = record_map<uint64_t>;  // by UCP's handle

registered_map &all_types() {
    static auto *only = new registered_map;
    return *only;
}

// Null: the datatype is registered with the caller's own operations.
std::unique_ptr<type_record> make_record(const ucp_api &ucp, const ucp_generic_dt_ops_t &operations,
                                         void *context) {
    const owner &caller = owner_of(reinterpret_cast<const void *>(operations.start_pack));
    switch (caller.what) {
        case owner::kind::no_mpi:
            return nullptr;
        case owner::kind::not_served:
            nc_info("%s is an %s: its datatypes are left to its own operations",
                    caller.path.c_str(), caller.product);
            return nullptr;
        case owner::kind::unknown_mpi:
            nc_warn_once(
                "%s is an MPI library that we do not know: its datatypes are left to its "
                "own operations",
                caller.path.c_str());
            return nullptr;
        case owner::kind::served:
            break;
    }
    if (!ucp.at_least(1, 13)) {
        nc_warn_once("UCX %u.%u.%u is older than 1.13: datatypes are left to %s's own operations",
                     ucp.major, ucp.minor, ucp.release, caller.product);
        return nullptr;
    }
    if (!adopt_originals(operations)) {
        nc_warn_once(
            "%s registers datatypes with other operations than the first MPI library did: they "
            "are left to its own operations",
            caller.path.c_str());
        return nullptr;
    }
    return std::make_unique<type_record>(*caller.library, caller.library->datatype_of(context),
                                         context);
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
        nc_warn_once("no memory to serve a datatype: it is left to the caller's own operations");
    }
    if (record == nullptr) {
        return static_cast<int8_t>(ucp->dt_create_generic(given, context, datatype_p));
    }
    ucs_status_t status = ucp->dt_create_generic(&message_operations, record.get(), datatype_p);
    if (status != UCS_OK) {
        return static_cast<int8_t>(status);
    }
    try {
        all_types().set(*datatype_p, record);
    } catch (...) {
        record.release();  // UCX uses it: better leaked than destroyed
    }
    return static_cast<int8_t>(status);
}

void destroy_datatype(uint64_t datatype) noexcept {
    const ucp_api *ucp = find_ucp();
    if (ucp == nullptr) {
        return;
    }
    // removed before UCX may use the handle again, destroyed after UCX's own object
    std::unique_ptr<type_record> record = all_types().remove(datatype);
    ucp->dt_destroy(datatype);
}

bool find_bytes(uint64_t datatype, uint64_t count, dt::message_bytes *bytes_p) noexcept {
    const type_record *record;  // lives: the caller keeps its datatype
    return all_types().find(datatype, &record) && record->find_bytes(count, bytes_p);
}

}  // namespace cuda_nc::hooks
