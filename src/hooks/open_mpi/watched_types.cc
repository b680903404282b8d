#include "hooks/open_mpi/watched_types.hpp"

#include <atomic>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "ucs/base/compiler.hpp"
#include "ucs/base/log.hpp"

namespace cuda_nc::hooks {
namespace {

struct registry {
    std::mutex mutex;  // never held while MPI is called
    std::unordered_map<const void *, std::unique_ptr<type_record>> types;
};

registry &all_types() {
    static auto *only = new registry;
    return *only;
}

// How many types have died: whoever remembers one of an earlier time looks again, because another
// type may have its address. A program that hands a new type to another thread orders the two.
std::atomic<uint64_t> deaths{0};

int forget(void *datatype, int, void *, void *) noexcept {
    std::unique_ptr<type_record> record;  // dies without the lock
    registry &all = all_types();
    std::lock_guard<std::mutex> guard(all.mutex);
    auto entry = all.types.find(datatype);
    if (entry != all.types.end()) {
        record = std::move(entry->second);
        all.types.erase(entry);
    }
    deaths.fetch_add(1, std::memory_order_relaxed);
    return 0;
}

// False where the type's end cannot be watched. A null record stays for a predefined type.
bool find_or_make(const open_mpi &api, const void *datatype, const type_record **record_p) {
    registry &all = all_types();
    {
        std::lock_guard<std::mutex> guard(all.mutex);
        auto entry = all.types.find(datatype);
        if (entry != all.types.end()) {
            *record_p = entry->second.get();
            return true;
        }
    }
    std::unique_ptr<type_record> made;
    if (!api.is_predefined(datatype)) {
        made = std::make_unique<type_record>(ucp_generic_dt_ops_t{}, const_cast<void *>(datatype),
                                             api);
        if (!api.watch(datatype, forget, nullptr)) {
            return false;
        }
    }
    std::lock_guard<std::mutex> guard(all.mutex);
    // another thread's may have come first: then `made` dies here
    *record_p = all.types.try_emplace(datatype, std::move(made)).first->second.get();
    return true;
}

struct last_type {
    const void *datatype = nullptr;
    const type_record *record = nullptr;
    uint64_t deaths = 0;
};
thread_local last_type last;

}  // namespace

const type_record *find_watched(const open_mpi &api, const void *datatype) noexcept {
    const uint64_t now = deaths.load(std::memory_order_relaxed);
    if (CUDA_NC_LIKELY(last.datatype == datatype && last.deaths == now)) {
        return last.record;
    }
    try {
        const type_record *record = nullptr;
        if (find_or_make(api, datatype, &record)) {
            last = {datatype, record, now};
        }
        return record;
    } catch (...) {
        nc_warn_once("no memory to pack a datatype: it is left to Open MPI's own operations");
        return nullptr;
    }
}

}  // namespace cuda_nc::hooks
