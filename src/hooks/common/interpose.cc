// The entry points of the hooks: a table of replacements for the preloaded shim, and redirection
// for the module that UCX loads.
#include "hooks/common/interpose.h"

#include <dlfcn.h>

#include <atomic>

#include "hooks/open_mpi/convertor.hpp"
#include "hooks/common/datatype_ops.hpp"
#include "hooks/common/tag_send.hpp"
#include "hooks/common/ucx_settings.hpp"
#include "ucs/base/elf_walker.hpp"
#include "ucs/base/loaded_objects.hpp"
#include "ucs/base/log.hpp"
#include "ucs/base/settings.hpp"

namespace {

using namespace cuda_nc::hooks;
using cuda_nc::redirect_loaded_objects;
using cuda_nc::replacement;

const cuda_nc_symbols_t replacements = {create_generic,   destroy_datatype, prepare_for_send,
                                        prepare_for_recv, convertor_pack,   convertor_unpack,
                                        copy_same,        tag_send_nbx};

// UCX's ucm_reloc_modify: changes what is loaded now and whatever is loaded later. It keeps the
// patch in a list of its own.
struct ucm_patch {
    const char *symbol;
    void *value;
    void *previous;
    void *list[2];
    char **blacklist;
};

constexpr int num_symbols = 8;

const replacement redirected[num_symbols] = {
    {"ucp_dt_create_generic", reinterpret_cast<void *>(create_generic)},
    {"ucp_dt_destroy", reinterpret_cast<void *>(destroy_datatype)},
    {"opal_convertor_prepare_for_send", reinterpret_cast<void *>(prepare_for_send)},
    {"opal_convertor_prepare_for_recv", reinterpret_cast<void *>(prepare_for_recv)},
    {"opal_convertor_pack", reinterpret_cast<void *>(convertor_pack)},
    {"opal_convertor_unpack", reinterpret_cast<void *>(convertor_unpack)},
    {"opal_datatype_copy_content_same_ddt", reinterpret_cast<void *>(copy_same)},
    {"ucp_tag_send_nbx", reinterpret_cast<void *>(tag_send_nbx)},
};

bool redirect_by_ucm() noexcept {
    void *handle = cuda_nc::open_loaded("libucm.so.0");
    using modify_f = int8_t (*)(ucm_patch *);
    auto modify =
        reinterpret_cast<modify_f>(handle != nullptr ? dlsym(handle, "ucm_reloc_modify") : nullptr);
    if (modify == nullptr) {
        return false;
    }
    static ucm_patch patches[num_symbols];  // UCX's for ever
    bool all = true;
    for (int i = 0; i < num_symbols; ++i) {
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
        return;  // the shim stands in front of every caller already
    }
    if (!redirect_by_ucm()) {
        size_t changed = redirect_loaded_objects(redirected, num_symbols);
        nc_debug("redirected %zu calls of the objects loaded so far", changed);
    }
}
