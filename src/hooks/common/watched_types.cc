#include "hooks/common/watched_types.hpp"

#include <atomic>
#include <memory>

#include "hooks/common/record_map.hpp"
#include "ucs/base/compiler.hpp"
#include "ucs/base/log.hpp"

namespace cuda_nc::hooks {
namespace {

using watched_map = record_map<const void *>;

watched_map &all_types() {
    static auto *only = new watched_map;
    return *only;
}

// How many types have died. A result that was remembered at another count is looked up again,
// because another type may have the same address now. A relaxed load is enough: a program that
// hands a new type to another thread orders the two itself.
std::atomic<uint64_t> deaths{0};

void forget(const void *datatype) noexcept {
    all_types().remove(datatype);
    deaths.fetch_add(1, std::memory_order_relaxed);
}

// False where the type's end cannot be watched. A predefined type is kept with a null record.
bool find_or_make(const mpi_library &library, const void *datatype, const type_record **record_p) {
    if (all_types().find(datatype, record_p)) {
        return true;
    }
    std::unique_ptr<type_record> made;
    if (!library.is_predefined(datatype)) {
        made = std::make_unique<type_record>(library, datatype);
        if (!library.watch_end(datatype, forget)) {
            return false;
        }
    }
    // `made` dies here where another thread was first
    *record_p = all_types().add(datatype, made);
    return true;
}

struct last_type {
    const void *datatype = nullptr;
    const type_record *record = nullptr;
    uint64_t deaths = 0;
};

// What find_watched() returned to this thread last: set and read there alone, to save the lock. It
// cannot be a parameter: the callers are entry points that the MPI library calls, which keep
// nothing from one call to the next.
thread_local last_type last;

}  // namespace

const type_record *find_watched(const mpi_library &library, const void *datatype) noexcept {
    const uint64_t now = deaths.load(std::memory_order_relaxed);
    if (CUDA_NC_LIKELY(last.datatype == datatype && last.deaths == now)) {
        return last.record;
    }
    try {
        const type_record *record = nullptr;
        if (find_or_make(library, datatype, &record)) {
            last = {datatype, record, now};
        }
        return record;
    } catch (...) {
        nc_warn_once("no memory to serve a datatype that %s packs: it packs the type itself",
                     library.product());
        return nullptr;
    }
}

const counted_layout *find_watched_layout(const mpi_library &library, const void *datatype,
                                          uint64_t count, uint64_t expected_size,
                                          counted_layout *made_p) noexcept {
    const type_record *record = find_watched(library, datatype);
    if (record == nullptr) {
        return nullptr;
    }
    const counted_layout *known = record->find(count);
    if (CUDA_NC_UNLIKELY(known == nullptr) && record->make(count, expected_size, made_p)) {
        known = made_p;
    }
    return known;
}

}  // namespace cuda_nc::hooks
