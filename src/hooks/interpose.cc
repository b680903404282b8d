// How the hooks get in front of their callers: a table of replacements for the preloaded shim, and
// redirection of loaded objects for the module that UCX loads, and for what the shim leaves out.
#include "hooks/interpose.h"

#include <dlfcn.h>

#include <atomic>
#include <iterator>
#include <new>
#include <string_view>
#include <vector>

#include "hooks/common/datatype_ops.hpp"
#include "hooks/common/endpoints.hpp"
#include "hooks/common/iov_message.hpp"
#include "hooks/common/receives.hpp"
#include "hooks/common/request_cancel.hpp"
#include "hooks/common/sends.hpp"
#include "hooks/common/ucx_settings.hpp"
#include "hooks/common/workers.hpp"
#include "hooks/mpich/local_calls.hpp"
#include "hooks/open_mpi/convertor.hpp"
#include "hooks/open_mpi/type_faults.hpp"
#include "ucs/base/elf_walker.hpp"
#include "ucs/base/loaded_objects.hpp"
#include "ucs/base/log.hpp"
#include "ucs/base/settings.hpp"
#include "ucs/base/ucx_instance.hpp"
#include "uct/cuda_nc/transport.h"

namespace {

using namespace cuda_nc::hooks;
using cuda_nc::redirect_loaded_objects;
using cuda_nc::replacement;

// The argument of UCX's ucm_reloc_modify, which changes the objects that are loaded now and those
// that will be. UCX links the patch into a list of its own, and keeps it until the process ends.
struct ucm_patch {
    const char *symbol;
    void *value;
    void *previous;
    void *list[2];
    char **blacklist;
};

// False where some calls have not been redirected. Each libucm changes what is loaded by dlopen
// calls that go through it, and the last one that is told to takes these calls over: so each is
// told.
bool redirect_by_ucm(const cuda_nc::ucx_instance &ucx, const replacement *wanted,
                     size_t number) noexcept {
    using modify_f = int8_t (*)(ucm_patch *);
    auto modify =
        ucx.is_known() ? reinterpret_cast<modify_f>(ucx.find("ucm_reloc_modify")) : nullptr;
    auto *patches = modify != nullptr ? new (std::nothrow) ucm_patch[number]() : nullptr;
    if (patches == nullptr) {
        return false;
    }
    bool all = true;
    for (size_t i = 0; i < number; ++i) {
        patches[i].symbol = wanted[i].symbol;
        patches[i].value = wanted[i].value;
        int8_t status = modify(&patches[i]);
        if (status != 0) {
            nc_debug("ucm_reloc_modify(%s) failed: %d", wanted[i].symbol, status);
            all = false;
        }
    }
    return all;
}

void redirect(const cuda_nc::ucx_instance &ucx, const replacement *wanted, size_t number) noexcept {
    if (number != 0 && !redirect_by_ucm(ucx, wanted, number)) {
        size_t changed = redirect_loaded_objects(wanted, number);
        nc_debug("redirected %zu calls of the objects loaded so far", changed);
    }
}

// Once for each UCX, as soon as MPICH is there: it may be loaded after UCX.
void redirect_mpi(const cuda_nc::ucx_instance &ucx, local::whose wanted) noexcept {
    static std::atomic<bool> done[cuda_nc::max_ucx_instances];
    if (!cuda_nc::config().enable || done[ucx.index]) {
        return;
    }
    const std::vector<replacement> of_mpi = local::replaced_calls(wanted);
    if (!of_mpi.empty() && !done[ucx.index].exchange(true)) {
        redirect(ucx, of_mpi.data(), of_mpi.size());
    }
}

// An MPI makes its worker when it starts. By then it is loaded, which it need not have been when
// UCX was.
constexpr bool starts_mpi(std::string_view name) noexcept {
    return name == "ucp_worker_create";
}

void before_start(const void *caller) noexcept {
    const cuda_nc::caller_ucx found = cuda_nc::ucx_of(caller);
    if (found.is_certain()) {
        redirect_mpi(*found.ucx, local::whose::all);
    }
}

// What calls are redirected to: with UCP's own parameters. None is noexcept: a thread may be
// cancelled in UCP, and a program's callback may throw through it.
namespace entry {

#define ENTRY(result, name, library, replacement, parameters, arguments)  \
    result replacement parameters {                                       \
        const void *caller = __builtin_return_address(0);                 \
        if constexpr (starts_mpi(#name)) {                                \
            before_start(caller);                                         \
        }                                                                 \
        return cuda_nc::hooks::replacement CUDA_NC_PASS_CALLER arguments; \
    }
CUDA_NC_UCP_SYMBOLS(ENTRY)
#undef ENTRY

}  // namespace entry

#define REDIRECTION(result, name, library, replacement, parameters, arguments) \
    {#name, reinterpret_cast<void *>(replacement)},
#define UCP_REDIRECTION(result, name, library, replacement, parameters, arguments) \
    {#name, reinterpret_cast<void *>(entry::replacement)},
const replacement redirected[] = {CUDA_NC_OPAL_SYMBOLS(REDIRECTION)
                                      CUDA_NC_UCP_OBJECT_SYMBOLS(UCP_REDIRECTION)};
const replacement redirected_messages[] = {CUDA_NC_UCP_MESSAGE_SYMBOLS(UCP_REDIRECTION)};
#undef REDIRECTION
#undef UCP_REDIRECTION

// Every wait of a program goes through this function, so the shim does not define it, and it is
// redirected only in the object that wants it: not in UCX, which calls it with locks held.
void redirect_progress(const void *caller) noexcept {
    const replacement progress = {"ucp_worker_progress", reinterpret_cast<void *>(worker_progress)};
    const size_t changed = cuda_nc::redirect_object(caller, &progress, 1);
    nc_debug("redirected %zu calls of ucp_worker_progress", changed);
}

// Calls the original later, so that our transport and settings are there when UCX asks.
void before_components(const void *caller) noexcept {
    const cuda_nc::caller_ucx found = cuda_nc::ucx_of(caller);
    if (found.is_certain()) {
        register_settings(*found.ucx);
        cuda_nc_register_transport(caller);
        redirect_mpi(*found.ucx, local::whose::not_the_shims);
    }
}

#define ADDRESS(result, name, library, replacement, parameters, arguments) replacement,
constexpr cuda_nc_symbols_t replacements = {CUDA_NC_OPAL_SYMBOLS(ADDRESS)
                                                CUDA_NC_UCP_SYMBOLS(ADDRESS) before_components,
                                            local::find_replaced};
#undef ADDRESS

constexpr cuda_nc_symbols_t without_messages() noexcept {
    cuda_nc_symbols_t symbols = replacements;
#define NO_ADDRESS(result, name, library, replacement, parameters, arguments) \
    symbols.name = nullptr;
    CUDA_NC_UCP_MESSAGE_SYMBOLS(NO_ADDRESS)
#undef NO_ADDRESS
    return symbols;
}

// Most messages are contiguous, and each would come through a hook: these are there only where some
// may lie in GPU memory.
bool may_serve_messages() noexcept {
    return cuda_nc_transport_is_wanted() != 0 || may_serve_lists();
}

}  // namespace

const cuda_nc_symbols_t *cuda_nc_interpose(int version) {
    static const cuda_nc_symbols_t none = [] {
        cuda_nc_symbols_t symbols = {};
        symbols.before_components = before_components;  // UCX is to know our settings
        return symbols;
    }();
    static constexpr cuda_nc_symbols_t of_objects = without_messages();
    if (version != CUDA_NC_INTERPOSE_VERSION) {
        return nullptr;
    }
    set_progress_redirection(redirect_progress);
    return !cuda_nc::config().enable ? &none : may_serve_messages() ? &replacements : &of_objects;
}

void cuda_nc_interpose_install(const void *in_ucx) {
    static std::atomic<bool> done[cuda_nc::max_ucx_instances];
    const cuda_nc::caller_ucx found = cuda_nc::ucx_around(in_ucx);
    if (!found.is_certain()) {
        return;
    }
    register_settings(*found.ucx);
    if (done[found.ucx->index].exchange(true) || !cuda_nc::config().enable) {
        return;
    }
    if (dlsym(RTLD_DEFAULT, "cuda_nc_preload_version") != nullptr) {
        return;  // the shim's definitions take every call already
    }
    set_progress_redirection(redirect_progress);
    redirect(*found.ucx, redirected, std::size(redirected));
    if (may_serve_messages()) {
        redirect(*found.ucx, redirected_messages, std::size(redirected_messages));
    }
    redirect_mpi(*found.ucx, local::whose::all);
}
