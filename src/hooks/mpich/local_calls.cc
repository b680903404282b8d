#include "hooks/mpich/local_calls.hpp"

#include <cxxabi.h>
#include <dlfcn.h>

#include <atomic>
#include <cstring>
#include <mutex>
#include <string>
#include <string_view>

#include "hooks/common/owner.hpp"
#include "hooks/common/thread_context.hpp"
#include "hooks/mpich/local_collectives.hpp"
#include "hooks/mpich/local_messages.hpp"
#include "hooks/mpich/local_packs.hpp"
#include "hooks/mpich/local_reductions.hpp"
#include "hooks/mpich/pmpi.hpp"
#include "ucs/base/definer.h"
#include "ucs/base/loaded_objects.hpp"
#include "ucs/base/log.hpp"
#include "ucs/gpu/device.hpp"

namespace cuda_nc::hooks::local {
namespace {

// Written once, before a function of `entry` is known to anybody.
pmpi_functions functions;
// Where calls are passed on to: a tool's function that stands in front of MPICH's, for it is to see
// them, else MPICH's. The rows of interposed_mpi.h alone.
pmpi_functions next;

// Runs our part of a call. What ends a thread (pthread_cancel) unwinds it and is no error.
template <typename part>
int guarded(part ours) {
    try {
        return ours();
    } catch (const abi::__forced_unwind &) {
        throw;
    } catch (const failure &what) {
        return report(what);
    } catch (...) {
        return report({self, error_no_memory});
    }
}

constexpr bool is_send(std::string_view name) noexcept {
    return name == "Send";
}

// What callers get in place of MPI's functions.
namespace entry {

#define SPREAD(...) __VA_ARGS__
#define ENTRY_BY(name, suffix, ours, parameters, arguments)                           \
    int name##suffix parameters {                                                     \
        int result = guarded([&] { return ours; });                                   \
        if (result == pass_on) {                                                      \
            const buffered_send_scope scope(is_send(#name));                          \
            result = __atomic_load_n(&next.name##suffix, __ATOMIC_RELAXED) arguments; \
        }                                                                             \
        staged_call::test_freed();                                                    \
        return result;                                                                \
    }
#define ENTRY(name, suffix, serve, parameters, arguments)                                    \
    ENTRY_BY(name, suffix, (local::serve(functions.name##_c, SPREAD arguments)), parameters, \
             arguments)
CUDA_NC_MPI_SYMBOLS(ENTRY)
#undef ENTRY
#define ENTRY(name, suffix, serve, parameters, arguments) \
    ENTRY_BY(name, suffix, staged_call::serve arguments, parameters, arguments)
CUDA_NC_MPI_REQUEST_SYMBOLS(ENTRY)
#undef ENTRY
#undef ENTRY_BY
#undef SPREAD

}  // namespace entry

// Whether all that we call is there.
bool find_functions(void *handle, pmpi_functions *found) noexcept {
#define FIND(name, suffix, serve, parameters, arguments) \
    look_up(handle, "PMPI_" #name #suffix, &found->name##suffix);
    CUDA_NC_MPI_SYMBOLS(FIND)
    CUDA_NC_MPI_REQUEST_SYMBOLS(FIND)
#undef FIND
#define FIND(name) look_up(handle, "PMPI_" #name, &found->name)
    return FIND(Initialized) && FIND(Comm_create_keyval) && FIND(Comm_set_attr) &&
           FIND(Comm_free_keyval) && FIND(Comm_rank) && FIND(Comm_size) && FIND(Comm_remote_size) &&
           FIND(Comm_test_inter) && FIND(Comm_call_errhandler) && FIND(Type_get_extent) &&
           FIND(Type_get_true_extent) && FIND(Type_size_c) && FIND(Type_contiguous_c) &&
           FIND(Type_create_resized) && FIND(Type_commit) && FIND(Type_free) &&
           FIND(Pack_external_size_c) && FIND(Topo_test) && FIND(Cartdim_get) && FIND(Cart_shift) &&
           FIND(Graph_neighbors_count) && FIND(Graph_neighbors) &&
           FIND(Dist_graph_neighbors_count) && FIND(Dist_graph_neighbors) && FIND(Wait) &&
           FIND(Test) && FIND(Cancel) && FIND(Test_cancelled) && FIND(Get_count_c) &&
           FIND(Grequest_complete) &&
           look_up(handle, "PMPIX_Grequest_start", &found->Grequest_start);
#undef FIND
}

// Whether `function`, called as one of MPI's, is a tool's: not of `mpich`'s object, of another MPI,
// or of the shim. Nor of the program: where that takes the address of one of MPI's functions, the
// address may be its own entry for calls of that function, which leads to us.
bool is_of_tool(const void *function, const void *mpich) noexcept {
    Dl_info where;
    if (function == nullptr || same_object(function, mpich) || dladdr(function, &where) == 0) {
        return false;
    }
    const void *shim = dlsym(RTLD_DEFAULT, "cuda_nc_preload_version");
    void *handle = open_loaded(where.dli_fname);
    return (shim == nullptr || !same_object(function, shim)) && handle != nullptr &&
           !defines(handle, "PMPI_Init", function);
}

template <typename function>
void pass_to(function *next_p, function mpich, void *following) noexcept {
    if (is_of_tool(following, reinterpret_cast<const void *>(mpich))) {
        __atomic_store_n(next_p, reinterpret_cast<function>(following), __ATOMIC_RELAXED);
    }
}

// The library with MPI's standard ABI has other handles; its file is libmpi_abi.so.
bool has_own_handles(const std::string &path) noexcept {
    return path.find("libmpi_abi") == std::string::npos;
}

enum class outcome { no_mpi_yet, served, not_served };

outcome look_for_mpich(pmpi_functions *found) noexcept {
    const void *init = find_definition("PMPI_Init");
    if (init == nullptr) {
        return outcome::no_mpi_yet;
    }
    if (std::strcmp(gpu::platform::instance().name(), "none") == 0) {
        return outcome::not_served;
    }
    const owner &its = owner_of(init);
    if (its.what != owner::kind::served || std::strcmp(its.product, "MPICH") != 0 ||
        !has_own_handles(its.path)) {
        return outcome::not_served;
    }
    void *handle = open_loaded(its.path.c_str());
    found->mpi = its.mpi;
    if (handle == nullptr || !find_functions(handle, found)) {
        nc_info("MPICH %s: what it does by itself with GPU memory is left to it",
                its.mpi->version().c_str());
        return outcome::not_served;
    }
    return outcome::served;
}

// MPICH may be loaded long after UCX. No lock is held while loaded objects are searched: the
// loader's own may be held here, or there.
bool serves_mpich() noexcept {
    static std::atomic<outcome> known{outcome::no_mpi_yet};
    static std::atomic<unsigned long long> loads_searched{0};
    static std::mutex mutex;
    const unsigned long long loads = cuda_nc_count_loads();
    if (known == outcome::no_mpi_yet && loads != loads_searched) {
        pmpi_functions found;
        const outcome now = look_for_mpich(&found);
        std::lock_guard<std::mutex> guard(mutex);
        if (known == outcome::no_mpi_yet) {
            functions = next = found;
            known = now;
            loads_searched = loads;
        }
    }
    return known == outcome::served;
}

template <typename function>
void add(std::vector<replacement> *made, const char *symbol, function ours, function mpich,
         function *next_p) {
    if (mpich != nullptr) {
        pass_to(next_p, mpich, dlsym(RTLD_DEFAULT, symbol));
        made->push_back({symbol, reinterpret_cast<void *>(ours)});
    }
}

}  // namespace

const pmpi_functions &pmpi() noexcept {
    return functions;
}

std::vector<replacement> replaced_calls(whose wanted) noexcept {
    std::vector<replacement> made;
    if (!serves_mpich()) {
        return made;
    }
    try {
#define ADD_IF(served, name, suffix)                                                   \
    if (served) {                                                                      \
        add(&made, "MPI_" #name #suffix, &entry::name##suffix, functions.name##suffix, \
            &next.name##suffix);                                                       \
    }
#define ADD(name, suffix, serve, parameters, arguments) \
    ADD_IF(functions.name##_c != nullptr, name, suffix)
        if (wanted == whose::all) {
            CUDA_NC_MPI_SHIM_SYMBOLS(ADD)
        }
        CUDA_NC_MPI_NEW_SYMBOLS(ADD)
#undef ADD
#define ADD(name, suffix, serve, parameters, arguments) ADD_IF(true, name, suffix)
        CUDA_NC_MPI_REQUEST_SYMBOLS(ADD)
#undef ADD
#undef ADD_IF
    } catch (...) {
        made.clear();
    }
    return made;
}

void *find_replaced(const char *name, void *following) noexcept {
    if (!serves_mpich()) {
        return nullptr;
    }
#define FIND(its, suffix, serve, parameters, arguments)                     \
    if (functions.its##suffix != nullptr && functions.its##_c != nullptr && \
        std::strcmp(name, "MPI_" #its #suffix) == 0) {                      \
        pass_to(&next.its##suffix, functions.its##suffix, following);       \
        return reinterpret_cast<void *>(&entry::its##suffix);               \
    }
    CUDA_NC_MPI_SHIM_SYMBOLS(FIND)
#undef FIND
    return nullptr;
}

}  // namespace cuda_nc::hooks::local
