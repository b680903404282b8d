#include "hooks/common/owner.hpp"

#include <dlfcn.h>

#include <map>
#include <memory>
#include <mutex>

#include "ucs/base/loaded_objects.hpp"

namespace cuda_nc::hooks {
namespace {

// A library that merely uses an MPI reaches its symbols too: what counts is what it defines.
bool defines(void *handle, const char *symbol, const void *function) noexcept {
    void *address = dlsym(handle, symbol);
    return address != nullptr && same_object(address, function);
}

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
    // UCX's layer of Open MPI: a component of its own, or part of libmpi
    if (defines(handle, "mca_pml_ucx_component", function)) {
        found.api = open_mpi::find(handle);
        found.what = found.api != nullptr ? owner::kind::open_mpi : owner::kind::unknown_mpi;
    } else if (defines(handle, "MPIR_Process", function) ||
               (defines(handle, "MPIX_Comm_failure_ack", function) &&
                dlsym(handle, "ompi_mpi_local_convertor") == nullptr)) {
        found.what = owner::kind::mpich;
    } else if (defines(handle, "MPI_Init", function) || defines(handle, "PMPI_Init", function)) {
        found.what = owner::kind::unknown_mpi;
    }
    return found;
}

}  // namespace

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
