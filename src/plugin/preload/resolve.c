#define _GNU_SOURCE
#include "resolve.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ucs/base/definer.h"

enum {
    min_served_minor = 13, /* UCX 1.13 */
    max_objects = 1024
};

/* ---- loaded objects */

typedef struct {
    const char *prefix; /* of the file name; NULL: every object but the program */
    char *paths[max_objects];
    int count;
} object_list_t;

static const char *file_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static int collect(struct dl_phdr_info *info, size_t size, void *argument) {
    object_list_t *list = argument;
    const char *name = file_name(info->dlpi_name);
    (void)size;
    if (*name != '\0' && list->count < max_objects &&
        (list->prefix == NULL || strncmp(name, list->prefix, strlen(list->prefix)) == 0)) {
        char *path = strdup(info->dlpi_name);
        if (path != NULL) {
            list->paths[list->count++] = path;
        }
    }
    return 0;
}

static int is_ours(const void *address) {
    Dl_info where, shim;
    if (dladdr(address, &where) == 0) {
        return 0;
    }
    return (dladdr((const void *)(uintptr_t)cuda_nc_find_original, &shim) != 0 &&
            where.dli_fbase == shim.dli_fbase) ||
           strncmp(file_name(where.dli_fname), "libcuda_nc", strlen("libcuda_nc")) == 0;
}

/* `symbol` as the loaded libraries resolve it: libraries that were loaded RTLD_LOCAL too. */
static void *find_in_objects(const char *symbol, const char *prefix) {
    object_list_t *list = calloc(1, sizeof(*list));
    void *found = NULL;
    int i;
    if (list == NULL) {
        return NULL;
    }
    list->prefix = prefix;
    dl_iterate_phdr(collect, list);
    for (i = 0; i < list->count; ++i) {
        if (found == NULL) {
            void *handle = dlopen(list->paths[i], RTLD_LAZY | RTLD_NOLOAD);
            void *address = handle != NULL ? dlsym(handle, symbol) : NULL;
            if (address != NULL && !is_ours(address)) {
                found = address; /* the handle is kept: the library stays */
            } else if (handle != NULL) {
                dlclose(handle);
            }
        }
        free(list->paths[i]);
    }
    free(list);
    return found;
}

void *cuda_nc_find_original(const char *symbol, const char *library) {
    void *found = find_in_objects(symbol, library);
    if (found == NULL) {
        found = dlsym(RTLD_NEXT, symbol);
    }
    if (found == NULL) {
        found = find_in_objects(symbol, NULL);
    }
    if (found == NULL) {
        fprintf(stderr, "libcuda_nc_preload.so: %s is called, but nothing defines it\n", symbol);
        abort();
    }
    return found;
}

typedef struct {
    uintptr_t page;           /* of code; it belongs to one object, which stays loaded */
    unsigned long long loads; /* 0: certain; else a guess, until more objects are loaded */
    void *address;
} original_t;

/*
 * Records are never freed, as others may read them, and those that are certain never change. A
 * guess that no longer holds is written over by whoever makes its `loads` this word; who reads it
 * meanwhile sees that in `loads`, which never has the same value again.
 */
static const unsigned long long changing = ~0ull;

/* False: it is being changed. */
static int read_record(const original_t *one, original_t *seen) {
    seen->loads = __atomic_load_n(&one->loads, __ATOMIC_ACQUIRE);
    seen->page = __atomic_load_n(&one->page, __ATOMIC_RELAXED);
    seen->address = __atomic_load_n(&one->address, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return seen->loads != changing && seen->loads == __atomic_load_n(&one->loads, __ATOMIC_RELAXED);
}

/* False: another thread has changed it since it had these `loads`. */
static int write_over(original_t *one, unsigned long long loads, const original_t *made) {
    if (!__atomic_compare_exchange_n(&one->loads, &loads, changing, 0, __ATOMIC_ACQUIRE,
                                     __ATOMIC_RELAXED)) {
        return 0;
    }
    __atomic_thread_fence(__ATOMIC_RELEASE);
    __atomic_store_n(&one->page, made->page, __ATOMIC_RELAXED);
    __atomic_store_n(&one->address, made->address, __ATOMIC_RELAXED);
    __atomic_store_n(&one->loads, made->loads, __ATOMIC_RELEASE);
    return 1;
}

/* The i-th place in which a page's record is looked for. */
static unsigned place_of(uintptr_t page, unsigned i) {
    return (unsigned)((page + i) % CUDA_NC_MAX_ORIGINALS);
}

/* In a free place, or over a guess that no longer holds; `now`: the number of loads. */
static void keep(cuda_nc_originals_t *originals, const original_t *made, unsigned long long now) {
    original_t *kept = NULL, seen;
    unsigned i;
    for (i = 0; i < CUDA_NC_MAX_ORIGINALS; ++i) {
        void **place = &originals->found[place_of(made->page, i)];
        void *there = __atomic_load_n(place, __ATOMIC_ACQUIRE);
        if (there == NULL) {
            kept = kept != NULL ? kept : malloc(sizeof(*kept));
            if (kept == NULL) {
                return;
            }
            *kept = *made;
            if (__atomic_compare_exchange_n(place, &there, kept, 0, __ATOMIC_ACQ_REL,
                                            __ATOMIC_ACQUIRE)) {
                return;
            }
        }
        if (read_record(there, &seen) && seen.loads != 0 && seen.loads < now &&
            write_over(there, seen.loads, made)) {
            break;
        }
    }
    free(kept);
}

void *cuda_nc_find_kept_original(const cuda_nc_originals_t *originals, const void *caller) {
    const uintptr_t page = (uintptr_t)caller >> 12;
    original_t seen;
    unsigned i;
    for (i = 0; i < CUDA_NC_MAX_ORIGINALS; ++i) {
        const original_t *known =
            __atomic_load_n(&originals->found[place_of(page, i)], __ATOMIC_ACQUIRE);
        if (known == NULL) {
            break; /* places never become free again */
        }
        if (read_record(known, &seen) && seen.page == page &&
            (seen.loads == 0 || seen.loads == cuda_nc_count_loads())) {
            return seen.address;
        }
    }
    return NULL;
}

void *cuda_nc_find_original_of(cuda_nc_originals_t *originals, const void *caller) {
    original_t made = {(uintptr_t)caller >> 12, 0, NULL};
    void *kept = cuda_nc_find_kept_original(originals, caller);
    unsigned long long now;
    cuda_nc_definer_t definer;
    if (kept != NULL) {
        return kept;
    }
    now = cuda_nc_count_loads(); /* what is loaded during the search may change its result */
    if (cuda_nc_find_definer(caller, originals->prefix, originals->marker, &definer)) {
        made.address = dlsym(definer.handle, originals->symbol);
    }
    if (made.address == NULL) {
        made.loads = now;
        made.address = cuda_nc_find_original(originals->symbol, originals->library);
    }
    keep(originals, &made, now);
    return made.address;
}

static int ucx_is_at_least(unsigned minor_wanted) {
    void (*version)(unsigned *, unsigned *, unsigned *) = NULL;
    unsigned major = 0, minor = 0, release = 0;
    void *address = find_in_objects("ucp_get_version", "libucp");
    if (address == NULL) {
        return 0;
    }
    memcpy(&version, &address, sizeof(version));
    version(&major, &minor, &release);
    return major > 1 || (major == 1 && minor >= minor_wanted);
}

/* ---- our own libraries */

/* Where a library may lie, relative to the shim's directory. */
static const char *const places[] = {"", "ucx-cuda-nc/", "../lib/", "../lib/ucx-cuda-nc/"};

static void *open_own(const char *name) {
    char path[PATH_MAX];
    const char *slash;
    Dl_info shim;
    unsigned i;
    if (dladdr((const void *)(uintptr_t)cuda_nc_find_original, &shim) == 0) {
        return NULL;
    }
    slash = strrchr(shim.dli_fname, '/');
    if (slash == NULL) { /* found by the loader's search path: so are the others */
        return dlopen(name, RTLD_NOW | RTLD_LOCAL);
    }
    for (i = 0; i < sizeof(places) / sizeof(places[0]); ++i) {
        int length = snprintf(path, sizeof(path), "%.*s%s%s", (int)(slash + 1 - shim.dli_fname),
                              shim.dli_fname, places[i], name);
        if (length < (int)sizeof(path) && access(path, F_OK) == 0) {
            return dlopen(path, RTLD_NOW | RTLD_LOCAL);
        }
    }
    return dlopen(name, RTLD_NOW | RTLD_LOCAL);
}

static cuda_nc_symbols_t replacements;

static void load_replacements(void) {
    const cuda_nc_symbols_t *(*interpose)(int) = NULL;
    const cuda_nc_symbols_t *offered;
    char reason[512] = "it does not have cuda_nc_interpose";
    void *address;
    /* one copy in a process: the program may be linked with it */
    void *handle = dlopen("libcuda_nc.so.0", RTLD_NOW | RTLD_NOLOAD);
    if (handle == NULL) {
        handle = open_own("libcuda_nc.so.0");
    }
    if (handle == NULL) {
        const char *error = dlerror();
        snprintf(reason, sizeof(reason), "%s", error != NULL ? error : "unknown error");
    }
    address = handle != NULL ? dlsym(handle, "cuda_nc_interpose") : NULL;
    if (address == NULL) {
        if (ucx_is_at_least(min_served_minor)) {
            fprintf(stderr,
                    "libcuda_nc_preload.so: libcuda_nc.so cannot be used, the job runs without it: "
                    "%s\n",
                    reason);
        }
        return;
    }
    memcpy(&interpose, &address, sizeof(interpose));
    offered = interpose(CUDA_NC_INTERPOSE_VERSION);
    if (offered != NULL) {
        replacements = *offered;
    }
}

const cuda_nc_symbols_t *cuda_nc_find_replacements(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load_replacements);
    return &replacements;
}

void *cuda_nc_find_mpi_call(const char *symbol) {
    const cuda_nc_symbols_t *ours = cuda_nc_find_replacements();
    void *next = dlsym(RTLD_NEXT, symbol);
    void *found = ours->find_mpi_call != NULL ? ours->find_mpi_call(symbol, next) : NULL;
    if (found == NULL) {
        found = next;
    }
    return found != NULL ? found : cuda_nc_find_original(symbol, "libmpi");
}
