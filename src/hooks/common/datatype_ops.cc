#include "hooks/common/datatype_ops.hpp"

#include <atomic>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "hooks/common/message_ops.hpp"
#include "hooks/common/owner.hpp"
#include "hooks/common/record_map.hpp"
#include "hooks/common/type_record.hpp"
#include "ucp/dt/ucp_api.hpp"
#include "ucs/base/compiler.hpp"
#include "ucs/base/log.hpp"

namespace cuda_nc::hooks {
namespace {

using registered_map = record_map<uint64_t>;  // by UCP's handle

registered_map &all_types() {
    static auto *only = new registered_map;
    return *only;
}

// How often a record has left the map. What a thread found at another count is looked up again:
// another datatype may have the same handle now. A relaxed load is enough: a program that hands a
// new datatype to another thread orders the two itself.
std::atomic<uint64_t> removals{0};

struct found_type {
    uint64_t datatype = 0;  // 0: none
    const type_record *record = nullptr;
    uint64_t removals = 0;
};

// What find_record() found for this thread last: set and read there alone, to save the lock. It
// cannot be a parameter: the callers are hooks of UCP's functions.
thread_local found_type last_found;

// Null: `datatype` is not registered with message_operations. Else it lives: the caller keeps its
// datatype.
const type_record *find_record(uint64_t datatype) noexcept {
    found_type &last = last_found;
    const uint64_t now = removals.load(std::memory_order_relaxed);
    if (CUDA_NC_LIKELY(last.datatype == datatype && last.removals == now)) {
        return last.record;
    }
    const type_record *record = nullptr;
    if (all_types().find(datatype, &record)) {
        last = {datatype, record, now};
    }
    return record;
}

// The UCX of each generic datatype that was created here, served or not.
class datatype_homes {
  public:
    void set(uint64_t datatype, const ucx_instance *ucx) {
        std::lock_guard<std::mutex> guard(mutex_);
        homes_[datatype] = ucx;
    }
    // Null: it was not created here.
    const ucx_instance *remove(uint64_t datatype) noexcept {
        std::lock_guard<std::mutex> guard(mutex_);
        auto found = homes_.find(datatype);
        if (found == homes_.end()) {
            return nullptr;
        }
        const ucx_instance *ucx = found->second;
        homes_.erase(found);
        return ucx;
    }

  private:
    std::mutex mutex_;
    std::unordered_map<uint64_t, const ucx_instance *> homes_;
};

datatype_homes &all_homes() {
    static auto *only = new datatype_homes;
    return *only;
}

// Null: the datatype is registered with the caller's own operations.
std::unique_ptr<type_record> make_record(const ucx_instance &ucx,
                                         const ucp_generic_dt_ops_t &operations, void *context) {
    const owner &caller = owner_of(reinterpret_cast<const void *>(operations.start_pack));
    switch (caller.what) {
        case owner::kind::no_mpi:
            return nullptr;
        case owner::kind::not_served:
            nc_warn_once(
                "%s is an %s of a release that cannot be served: its datatypes are left to its own "
                "operations",
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
    if (!ucx.at_least(1, 13)) {
        nc_warn_once("UCX %u.%u.%u is older than 1.13: datatypes are left to %s's own operations",
                     ucx.major, ucx.minor, ucx.release, caller.product);
        return nullptr;
    }
    if (!adopt_originals(operations)) {
        nc_warn_once(
            "%s registers datatypes with other operations than the first MPI library did: they "
            "are left to its own operations",
            caller.path.c_str());
        return nullptr;
    }
    return std::make_unique<type_record>(*caller.mpi, caller.mpi->datatype_of(context), context);
}

// The object with the operations tells most: a call may come by way of others.
caller_ucx ucx_of_datatype(const ucp_generic_dt_ops_t &operations, const void *caller) noexcept {
    const caller_ucx of_operations = ucx_of(reinterpret_cast<const void *>(operations.start_pack));
    if (of_operations.why == caller_ucx::reason::by_object) {
        return of_operations;
    }
    return ucx_of(caller);
}

}  // namespace

int8_t create_generic(const void *operations, void *context, uint64_t *datatype_p,
                      const void *caller) {
    auto *given = static_cast<const ucp_generic_dt_ops_t *>(operations);
    const caller_ucx found = ucx_of_datatype(*given, caller);
    if (found.ucx == nullptr) {
        return UCS_ERR_UNSUPPORTED;
    }
    const dt::ucp_api &ucp = dt::ucp_of(*found.ucx);
    std::unique_ptr<type_record> record;
    try {
        if (found.is_certain()) {
            record = make_record(*found.ucx, *given, context);
        }
    } catch (...) {
        nc_warn_once("no memory to serve a datatype: it is left to the caller's own operations");
    }
    ucs_status_t status = record != nullptr
                              ? ucp.dt_create_generic(&message_operations, record.get(), datatype_p)
                              : ucp.dt_create_generic(given, context, datatype_p);
    if (status != UCS_OK) {
        return static_cast<int8_t>(status);
    }
    if (record != nullptr) {
        record->mpi.note_registered();
    }
    try {
        all_homes().set(*datatype_p, found.ucx);
        if (record != nullptr) {
            all_types().set(*datatype_p, record);
            if (record != nullptr) {  // the one that it replaced
                removals.fetch_add(1, std::memory_order_relaxed);
            }
        }
    } catch (...) {
        record.release();  // UCX uses it: better leaked than destroyed
    }
    return static_cast<int8_t>(status);
}

void destroy_datatype(uint64_t datatype, const void *caller) {
    // removed before UCX may use the handle again, destroyed after UCX's own object
    const ucx_instance *ucx = all_homes().remove(datatype);
    std::unique_ptr<type_record> record = all_types().remove(datatype);
    if (record != nullptr) {
        removals.fetch_add(1, std::memory_order_relaxed);
    }
    if (ucx == nullptr) {
        ucx = ucx_of(caller).ucx;
    }
    if (ucx != nullptr) {
        dt::ucp_of(*ucx).dt_destroy(datatype);
    }
}

bool find_bytes(uint64_t datatype, uint64_t count, dt::message_bytes *bytes_p) noexcept {
    const type_record *record = find_record(datatype);
    return record != nullptr && record->find_bytes(count, bytes_p);
}

const ucp_generic_dt_ops_t *find_operations(uint64_t datatype) noexcept {
    return find_record(datatype) != nullptr ? &message_operations : nullptr;
}

}  // namespace cuda_nc::hooks
