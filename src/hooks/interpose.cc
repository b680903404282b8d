// How the hooks get in front of their callers: a table of replacements for the preloaded shim, and
// redirection of loaded objects for the module that UCX loads.
#include "hooks/interpose.h"

#include <dlfcn.h>

#include <atomic>
#include <iterator>

#include "hooks/common/datatype_ops.hpp"
#include "hooks/common/tag_send.hpp"
#include "hooks/common/ucx_settings.hpp"
#include "hooks/open_mpi/convertor.hpp"
#include "hooks/open_mpi/type_faults.hpp"
#include "ucs/base/elf_walker.hpp"
#include "ucs/base/loaded_objects.hpp"
#include "ucs/base/log.hpp"
#include "ucs/base/settings.hpp"

namespace {

using namespace cuda_nc::hooks;
using cuda_nc::redirect_loaded_objects;
using cuda_nc::replacement;

#define ADDRESS(result, name, library, replacement, parameters, arguments) replacement,
const cuda_nc_symbols_t replacements = {CUDA_NC_INTERPOSED_SYMBOLS(ADDRESS)};
#undef ADDRESS

#define REDIRECTION(result, name, library, replacement, parameters, arguments) \
    {#name, reinterpret_cast<void *>(replacement)},
const replacement redirected[] = {CUDA_NC_INTERPOSED_SYMBOLS(REDIRECTION)};
#undef REDIRECTION

// The argument of UCX's ucm_reloc_modify, which changes the objects that are loaded now and those
// that will be. UCX links the patch into a list of its own.
struct ucm_patch {
    const char *symbol;
    void *value;
    void *previous;
    void *list[2];
    char **blacklist;
};

// False where some calls have not been redirected.
bool redirect_by_ucm() noexcept {
    void *handle = cuda_nc::open_loaded("libucm.so.0");
    using modify_f = int8_t (*)(ucm_patch *);
    auto modify =
        reinterpret_cast<modify_f>(handle != nullptr ? dlsym(handle, "ucm_reloc_modify") : nullptr);
    if (modify == nullptr) {
        return false;
    }
    static ucm_patch patches[std::size(redirected)];  // UCX keeps them until the process ends
    bool all = true;
    for (size_t i = 0; i < std::size(redirected); ++i) {
        patches[i].symbol = redirected[i].symbol;
        patches[i].value = redirected[i].value;
        int8_t status = modify(&patches[i]);
        if (status != 0) {
            nc_debug("ucm_reloc_modify(%s) failed: %d", redirected[i].symbol, status);
            all = false;
        }
    }
    return all;
}

}  // namespace

const cuda_nc_symbols_t *cuda_nc_interpose(int version) {
    register_settings();
    if (version != CUDA_NC_INTERPOSE_VERSION || !cuda_nc::config().enable) {
        return nullptr;
    }
    return &replacements;
}

void cuda_nc_interpose_install(void) {
    static std::atomic<bool> done{false};
    register_settings();
    if (done.exchange(true) || !cuda_nc::config().enable) {
        return;
    }
    if (dlsym(RTLD_DEFAULT, "cuda_nc_preload_version") != nullptr) {
        return;  // the shim's definitions take every call already
    }
    if (!redirect_by_ucm()) {
        size_t changed = redirect_loaded_objects(redirected, std::size(redirected));
        nc_debug("redirected %zu calls of the objects loaded so far", changed);
    }
}
