#include "hooks/mpich/local_calls.hpp"

#include <cstring>
#include <string>

#include "hooks/common/owner.hpp"
#include "hooks/mpich/local_collectives.hpp"
#include "hooks/mpich/local_messages.hpp"
#include "hooks/mpich/local_packs.hpp"
#include "hooks/mpich/local_reductions.hpp"
#include "hooks/mpich/pmpi.hpp"
#include "ucs/base/loaded_objects.hpp"
#include "ucs/base/log.hpp"
#include "ucs/gpu/device.hpp"

namespace cuda_nc::hooks::local {
namespace {

pmpi_functions functions;  // written once, before a function of `entry` is known to anybody

// What callers get in place of MPI's functions.
namespace entry {

#define SPREAD(...) __VA_ARGS__
#define ENTRY(name, suffix, serve, parameters, arguments)                          \
    int name##suffix parameters noexcept {                                         \
        try {                                                                      \
            const int result = local::serve(functions.name##_c, SPREAD arguments); \
            return result == pass_on ? functions.name##suffix arguments : result;  \
        } catch (const failure &what) {                                            \
            return report(what);                                                   \
        } catch (...) {                                                            \
            return report({self, error_no_memory});                                \
        }                                                                          \
    }
CUDA_NC_MPI_SYMBOLS(ENTRY)
#undef ENTRY
#undef SPREAD

}  // namespace entry

// Whether all that we call is there.
bool find_functions(void *handle) noexcept {
#define FIND(name, suffix, serve, parameters, arguments) \
    look_up(handle, "PMPI_" #name #suffix, &functions.name##suffix);
    CUDA_NC_MPI_SYMBOLS(FIND)
#undef FIND
#define FIND(name) look_up(handle, "PMPI_" #name, &functions.name)
    return FIND(Comm_rank) && FIND(Comm_size) && FIND(Comm_remote_size) && FIND(Comm_test_inter) &&
           FIND(Comm_call_errhandler) && FIND(Type_get_extent) && FIND(Type_get_true_extent) &&
           FIND(Type_size_c) && FIND(Type_contiguous_c) && FIND(Type_commit) && FIND(Type_free) &&
           FIND(Pack_external_size_c) && FIND(Topo_test) && FIND(Cartdim_get) && FIND(Cart_shift) &&
           FIND(Graph_neighbors_count) && FIND(Graph_neighbors) &&
           FIND(Dist_graph_neighbors_count) && FIND(Dist_graph_neighbors) && FIND(Wait) &&
           FIND(Test) && FIND(Cancel) && FIND(Test_cancelled) && FIND(Get_count_c) &&
           FIND(Grequest_complete) &&
           look_up(handle, "PMPIX_Grequest_start", &functions.Grequest_start);
#undef FIND
}

// The library with MPI's standard ABI has other handles; its file is libmpi_abi.so.
bool has_own_handles(const std::string &path) noexcept {
    return path.find("libmpi_abi") == std::string::npos;
}

bool find_mpich() noexcept {
    const void *init = find_definition("PMPI_Init");
    if (init == nullptr || std::strcmp(gpu::platform::instance().name(), "none") == 0) {
        return false;
    }
    const owner &its = owner_of(init);
    if (its.what != owner::kind::served || std::strcmp(its.product, "MPICH") != 0 ||
        !has_own_handles(its.path)) {
        return false;
    }
    void *handle = open_loaded(its.path.c_str());
    functions.mpi = its.mpi;
    if (handle == nullptr || !find_functions(handle)) {
        nc_info("MPICH %s: what it does by itself with GPU memory is left to it",
                its.mpi->version().c_str());
        return false;
    }
    return true;
}

}  // namespace

const pmpi_functions &pmpi() noexcept {
    return functions;
}

const std::vector<replacement> &replaced_calls() noexcept {
    static const std::vector<replacement> all = [] {
        std::vector<replacement> made;
        try {
            if (find_mpich()) {
#define ADD(name, suffix, serve, parameters, arguments)                                        \
    if (functions.name##suffix != nullptr && functions.name##_c != nullptr) {                  \
        made.push_back({"MPI_" #name #suffix, reinterpret_cast<void *>(entry::name##suffix)}); \
    }
                CUDA_NC_MPI_SYMBOLS(ADD)
#undef ADD
            }
        } catch (...) {
            made.clear();
        }
        return made;
    }();
    return all;
}

std::vector<replacement> replaced_calls_of_large_counts() noexcept {
    std::vector<replacement> made;
    try {
        for (const replacement &one : replaced_calls()) {
            const std::string name = one.symbol;
            if (name.compare(name.size() - 2, 2, "_c") == 0) {
                made.push_back(one);
            }
        }
    } catch (...) {
        made.clear();
    }
    return made;
}

void *find_replaced(const char *name) noexcept {
    for (const replacement &one : replaced_calls()) {
        if (std::strcmp(one.symbol, name) == 0) {
            return one.value;
        }
    }
    return nullptr;
}

}  // namespace cuda_nc::hooks::local
