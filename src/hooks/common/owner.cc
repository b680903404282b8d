#include "hooks/common/owner.hpp"

#include <dlfcn.h>

#include <map>
#include <memory>
#include <mutex>

#include "hooks/mpich/mpich.hpp"
#include "hooks/open_mpi/open_mpi.hpp"
#include "ucs/base/loaded_objects.hpp"

namespace cuda_nc::hooks {
namespace {

// The MPI libraries that we know, asked in this order; a new one is added here and nowhere else in
// common/.
struct known_library {
    const char *product;
    // Whether the object of `handle`, which holds `function`, is this library.
    bool (*is_it)(void *handle, const void *function) noexcept;
    // Its one object; null where this release of it cannot be served.
    const mpi_library *(*find)(void *handle) noexcept;
};

const known_library known_libraries[] = {
    {"Open MPI", open_mpi::is_it,
     [](void *handle) noexcept -> const mpi_library * { return open_mpi::find(handle); }},
    {"MPICH", mpich::is_it,
     [](void *handle) noexcept -> const mpi_library * { return mpich::find(handle); }},
};

owner recognise(const char *path, const void *function) {
    owner found;
    found.path = path;
    void *handle = open_loaded(path);
    if (handle == nullptr) {
        handle = open_loaded("");  // linked into the program, whose name need not be a path
    }
    if (handle == nullptr) {
        return found;
    }
    for (const known_library &one : known_libraries) {
        if (!one.is_it(handle, function)) {
            continue;
        }
        found.product = one.product;
        found.mpi = one.find(handle);
        found.what = found.mpi != nullptr ? owner::kind::served : owner::kind::not_served;
        return found;
    }
    if (defines(handle, "MPI_Init", function) || defines(handle, "PMPI_Init", function)) {
        found.what = owner::kind::unknown_mpi;
    }
    return found;
}

}  // namespace

const mpi_library *find_ready_library(size_t datatype_bytes, const char **why_p) noexcept try {
    constexpr char marker[] = "PMPI_Initialized";
    using asks = int (*)(int *);
    const mpi_library *found = nullptr;
    bool any = false, several = false;
    for (const std::string &path : loaded_objects()) {
        void *handle = open_loaded(path.c_str());
        asks initialized = nullptr, finalized = nullptr;
        if (handle == nullptr || !look_up(handle, marker, &initialized) ||
            !look_up(handle, "PMPI_Finalized", &finalized)) {
            continue;
        }
        const owner &its = owner_of(reinterpret_cast<const void *>(initialized));
        int begun = 0, ended = 0;
        any = any || its.mpi != nullptr;
        if (its.mpi == nullptr || its.mpi == found || its.mpi->datatype_bytes() != datatype_bytes ||
            initialized(&begun) != 0 || begun == 0 || finalized(&ended) != 0 || ended != 0) {
            continue;
        }
        several = found != nullptr;
        found = its.mpi;
    }
    *why_p = several ? "several MPI libraries are in use in this process"
             : any   ? "the MPI library is not initialised, or its datatypes have another size"
                     : "no MPI library that can be read is loaded";
    return several ? nullptr : found;
} catch (...) {
    *why_p = "out of memory";
    return nullptr;
}

bool defines(void *handle, const char *symbol, const void *function) noexcept {
    void *address = dlsym(handle, symbol);
    return address != nullptr && same_object(address, function);
}

const owner &owner_of(const void *function) noexcept try {
    static const owner nobody;
    static auto *known = new std::map<const void *, std::unique_ptr<const owner>>;
    static std::mutex mutex;
    Dl_info where;
    if (dladdr(function, &where) == 0) {
        return nobody;
    }
    std::lock_guard<std::mutex> guard(mutex);
    std::unique_ptr<const owner> &entry = (*known)[where.dli_fbase];
    if (entry == nullptr) {
        entry = std::make_unique<owner>(
            recognise(where.dli_fname != nullptr ? where.dli_fname : "", function));
    }
    return *entry;
} catch (...) {
    static const owner nobody;
    return nobody;
}

}  // namespace cuda_nc::hooks
