#include "tools/found_libraries.hpp"

#include <dlfcn.h>
#include <strings.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <vector>

#include "ucs/base/text.hpp"

namespace cuda_nc::tools {
namespace {

std::string path_of(const void *address) {
    Dl_info where;
    return dladdr(address, &where) != 0 && where.dli_fname != nullptr ? where.dli_fname : "";
}

std::string error_text() {
    const char *text = dlerror();
    return text != nullptr ? text : "unknown error";
}

// UCX keeps what depends on a driver in modules beside its libraries.
bool has_module(const std::string &library, const char *module) {
    std::string directory = library.substr(0, library.rfind('/') + 1);
    return access((directory + "ucx/" + module).c_str(), R_OK) == 0;
}

// The file behind the first program of that name in PATH; empty: none.
std::string find_program(const char *name) {
    const char *path = std::getenv("PATH");
    for (const std::string &directory : split(path != nullptr ? path : "", ':')) {
        char file[PATH_MAX];
        if (!directory.empty() && access((directory + "/" + name).c_str(), X_OK) == 0 &&
            realpath((directory + "/" + name).c_str(), file) != nullptr) {
            return file;
        }
    }
    return "";
}

// An MPI's compiler knows where its libraries are; the loader may know of another MPI's only.
void *mpi_of_path(std::string *of_p) {
    for (const char *name : {"mpicxx", "mpirun"}) {
        const std::string program = find_program(name);
        const std::string prefix = program.substr(0, program.rfind("/bin/") + 1);
        for (const char *library : {"lib/libmpi.so.40", "lib64/libmpi.so.40", "lib/libmpi.so",
                                    "lib64/libmpi.so", "lib/libmpi.so.12"}) {
            void *handle = prefix.empty()
                               ? nullptr
                               : dlopen((prefix + library).c_str(), RTLD_LAZY | RTLD_LOCAL);
            if (handle != nullptr) {
                *of_p = std::string("that of ") + name + " in PATH; ";
                return handle;
            }
        }
    }
    return nullptr;
}

// Whether Open MPI's messages go by UCX, as far as the environment says.
std::string remark_on_pml() {
    const char *pml = std::getenv("OMPI_MCA_pml");
    if (pml == nullptr || *pml == '\0') {
        return "served where its messages go by UCX (mpirun --mca pml ucx)";
    }
    const std::string chosen = pml;
    const bool denies = chosen[0] == '^';
    const std::vector<std::string> names = split(denies ? chosen.substr(1) : chosen, ',');
    const bool names_ucx = std::find(names.begin(), names.end(), "ucx") != names.end();
    return names_ucx != denies ? "served" : "not served: OMPI_MCA_pml=" + chosen + " is not UCX";
}

std::string remark_on_mpich(void *library) {
    if (dlsym(library, "PMPIX_Type_iov") == nullptr) {
        return "older than MPICH 4.1: not served";
    }
    static constexpr const char *on[] = {"1", "yes", "true", "on"};  // its words for it
    const char *nolocal = std::getenv("MPIR_CVAR_NOLOCAL");
    const bool goes_by_ucx =
        nolocal != nullptr && std::any_of(std::begin(on), std::end(on), [&](const char *word) {
            return strcasecmp(nolocal, word) == 0;
        });
    return goes_by_ucx ? "served"
                       : "served; messages within a machine go past UCX, and so past the plugin, "
                         "unless MPIR_CVAR_NOLOCAL=1 is set";
}

}  // namespace

found_library find_ucx() {
    found_library ucx;
    void *handle = dlopen("libucp.so.0", RTLD_LAZY | RTLD_NOLOAD);
    const bool came_with_mpi = handle != nullptr;
    if (!came_with_mpi) {
        handle = dlopen("libucp.so.0", RTLD_LAZY | RTLD_LOCAL);
    }
    if (handle == nullptr) {
        ucx.remark = error_text();
        return ucx;
    }
    void *version = dlsym(handle, "ucp_get_version");
    void *text = dlsym(handle, "ucp_get_version_string");
    if (version == nullptr || text == nullptr) {
        ucx.remark = "libucp.so.0 does not tell its version";
        return ucx;
    }
    unsigned major, minor, release;
    reinterpret_cast<void (*)(unsigned *, unsigned *, unsigned *)>(version)(&major, &minor,
                                                                            &release);
    ucx.found = true;
    ucx.version = reinterpret_cast<const char *(*)()>(text)();
    ucx.path = path_of(version);
    ucx.address = version;
    ucx.loads_plugins = major > 1 || minor >= 22;
    if (major == 1 && minor < 13) {
        ucx.remark = "older than 1.13: not served";
    } else if (major == 1 && minor < 22) {
        ucx.remark = "served by LD_PRELOAD of libcuda_nc_preload.so";
    } else {
        ucx.remark = "served by UCX_PLUGIN_PATH, or by LD_PRELOAD of libcuda_nc_preload.so";
    }
    if (came_with_mpi) {
        ucx.remark = "the MPI's own; " + ucx.remark;
    }
    bool detects =
        has_module(ucx.path, "libuct_cuda.so.0") || has_module(ucx.path, "libuct_cuda.so");
    ucx.remark +=
        detects ? "; built with CUDA" : "; built without CUDA: it takes GPU memory for host memory";
    return ucx;
}

found_loader find_loader(const found_library &ucx) {
    constexpr char module[] = "/libuct_cudanc.so.0", shim[] = "libcuda_nc_preload.so";
    const char *preloaded = std::getenv("LD_PRELOAD"), *path = std::getenv("UCX_PLUGIN_PATH");
    for (std::string part : split(preloaded != nullptr ? preloaded : "", ':')) {
        for (const std::string &file : split(part, ' ')) {
            if (file.find(shim) != std::string::npos) {
                const bool is_there =
                    file.find('/') == std::string::npos || access(file.c_str(), R_OK) == 0;
                return {is_there,
                        "LD_PRELOAD=" + file + (is_there ? "" : ": there is no such file")};
            }
        }
    }
    if (path == nullptr) {
        return {false, "neither UCX_PLUGIN_PATH nor LD_PRELOAD is set to it"};
    }
    if (!ucx.loads_plugins) {
        return {false, "this UCX reads no UCX_PLUGIN_PATH: set LD_PRELOAD to " + std::string(shim)};
    }
    for (const std::string &directory : split(path, ':')) {
        if (access((directory + module).c_str(), R_OK) == 0) {
            return {true, "UCX_PLUGIN_PATH=" + directory};
        }
    }
    return {false, "there is no " + std::string(module + 1) + " in UCX_PLUGIN_PATH=" + path};
}

found_library find_mpi() {
    found_library mpi;
    std::string which;
    void *handle = mpi_of_path(&which);
    if (handle == nullptr) {
        handle = dlopen("libmpi.so.40", RTLD_LAZY | RTLD_LOCAL);
        which = "the loader's (no libmpi.so lies beside mpicxx or mpirun in PATH); ";
    }
    if (handle == nullptr) {
        mpi.remark = "no libmpi.so lies beside mpicxx or mpirun in PATH, and " + error_text();
        return mpi;
    }
    void *version = dlsym(handle, "PMPI_Get_library_version");
    if (version == nullptr) {
        mpi.remark = "the libmpi.so does not tell its version";
        return mpi;
    }
    char text[8192] = "";  // MPI_MAX_LIBRARY_VERSION_STRING of any MPI
    int length = 0;
    reinterpret_cast<int (*)(char *, int *)>(version)(text, &length);
    unsigned major = 0;
    char number[32];
    mpi.found = true;
    mpi.path = path_of(version);
    mpi.version = std::string(text, std::strcspn(text, ",\n"));
    if (std::sscanf(text, "MPICH Version: %31s", number) == 1) {
        mpi.version = std::string("MPICH ") + number;
        mpi.remark = which + remark_on_mpich(handle);
    } else if (std::sscanf(text, "Open MPI v%u", &major) != 1) {
        mpi.remark = which + "neither Open MPI nor MPICH: not served";
    } else if (major >= 5) {
        mpi.remark = which + remark_on_pml() +
                     "; its own packing delivers wrong bytes for some derived types";
    } else {
        mpi.remark = which + remark_on_pml();
    }
    return mpi;
}

}  // namespace cuda_nc::tools
