/*
 * hooks_probe [--module PATH] [--load PATH] [--convertor] [--sends] [--table] PATH: loads the
 * libraries in the given order, each RTLD_LOCAL, as Python loads its extensions; a module is loaded
 * as UCX loads it. The last one is a fake Open MPI, which registers datatypes. For each datatype it
 * prints who packed, the plugin or the fake: "vector engine" or "vector original". The types are a
 * vector, a contiguous one, one whose sizes disagree, and with --convertor the vector through a
 * convertor. With --sends it prints who takes the fake's calls of ucp_tag_send_nbx, "hook" or
 * "ucp"; with --table, to whom the preloaded shim passes these calls on.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_open_mpi.h"
#include "hooks/interpose.h"

static void *open_or_die(const char *path) {
    void *handle = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    if (handle == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(2);
    }
    return handle;
}

static void *find(void *handle, const char *symbol) {
    void *address = dlsym(handle, symbol);
    if (address == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(2);
    }
    return address;
}

typedef struct {
    void *(*start_pack)(void *, const void *, size_t);
    void *(*start_unpack)(void *, void *, size_t);
    size_t (*packed_size)(void *);
    size_t (*pack)(void *, size_t, void *, size_t);
    int8_t (*unpack)(void *, size_t, const void *, size_t);
    void (*finish)(void *);
} operations_t;

static void *mpi;

static void probe_type(const char *what, const fake_datatype_t *type) {
    uint64_t (*enrol)(const fake_datatype_t *) = find(mpi, "fake_register");
    void (*remove)(uint64_t) = find(mpi, "fake_unregister");
    const operations_t *(*operations_of)(uint64_t) = find(mpi, "fake_ucp_operations");
    void *(*context_of)(uint64_t) = find(mpi, "fake_ucp_context");
    fake_calls_t *calls = find(mpi, "fake_calls");
    uint64_t datatype = enrol(type);
    const operations_t *ops = operations_of(datatype);
    char source[256], packed[64], expected[64];
    size_t block, i, size = 0;
    void *state;
    for (i = 0; i < sizeof(source); ++i) {
        source[i] = (char)(i * 7);
    }
    for (block = 0; block < type->num_blocks; ++block) {
        memcpy(expected + size, source + type->blocks[block].displacement,
               type->blocks[block].length);
        size += type->blocks[block].length;
    }
    memset(calls, 0, sizeof(*calls));
    state = ops->start_pack(context_of(datatype), source, 1);
    i = ops->pack(state, 0, packed, SIZE_MAX);
    ops->finish(state);
    if (i != size || memcmp(packed, expected, size) != 0) {
        printf("%s: wrong bytes\n", what);
        exit(3);
    }
    if (calls->starts != 1 || calls->finishes != 1) {
        printf("%s: the original operations were started %d and finished %d times\n", what,
               calls->starts, calls->finishes);
        exit(3);
    }
    printf("%s %s\n", what, calls->packs == 0 ? "engine" : "original");
    remove(datatype);
}

static void probe_convertor(const fake_datatype_t *type) {
    int32_t (*pack)(void *, struct iovec *, uint32_t *, size_t *) = find(mpi, "fake_call_pack");
    int32_t (*prepare)(void *, const void *, size_t, const void *) =
        find(mpi, "opal_convertor_prepare_for_send");
    const uint32_t *arch = find(mpi, "opal_local_arch");
    fake_calls_t *calls = find(mpi, "fake_calls");
    static fake_convertor_t convertor;
    static char source[256], packed[64];
    struct iovec part = {packed, sizeof(packed)};
    uint32_t one = 1;
    size_t moved = sizeof(packed);
    int before;
    convertor.remote_arch = *arch;
    prepare(&convertor, type, 1, source);
    pack(&convertor, &part, &one, &moved); /* what a convertor looks like is found by trying */
    prepare(&convertor, type, 1, source);
    part.iov_len = moved = sizeof(packed);
    before = calls->convertor_moves;
    pack(&convertor, &part, &one, &moved);
    printf("convertor %s\n", calls->convertor_moves == before ? "engine" : "original");
}

static void probe_sends(void) {
    const void *(*sends_by)(void) = find(mpi, "fake_sends_by");
    Dl_info where;
    int is_ucp = dladdr(sends_by(), &where) != 0 && strstr(where.dli_fname, "libucp") != NULL;
    printf("sends %s\n", is_ucp ? "ucp" : "hook");
}

static void probe_table(void) {
    const cuda_nc_symbols_t *(*interpose)(int) =
        find(open_or_die("libcuda_nc.so.0"), "cuda_nc_interpose");
    const cuda_nc_symbols_t *symbols = interpose(CUDA_NC_INTERPOSE_VERSION);
    printf("table %s\n", symbols->ucp_tag_send_nbx == NULL ? "ucp" : "hook");
}

int main(int argc, char **argv) {
    static fake_block_t strided[20];
    static const fake_block_t one[] = {{16, 24}};
    static const fake_datatype_t vector = {"vector", 240, 0, 20, strided};
    static const fake_datatype_t contiguous = {"contiguous", 48, 0, 1, one};
    static const fake_datatype_t liar = {"liar", 240, 1, 20, strided};
    int i, asks_convertor = 0, asks_sends = 0, asks_table = 0;
    for (i = 0; i < 20; ++i) {
        strided[i].displacement = 12 * i;
        strided[i].length = 3;
    }
    for (i = 1; i < argc - 1; ++i) {
        if (strcmp(argv[i], "--module") == 0) {
            /* UCX's flags; what it pulls in must be there for good */
            dlopen(argv[++i], RTLD_NOW | RTLD_LOCAL);
        } else if (strcmp(argv[i], "--convertor") == 0) {
            asks_convertor = 1;
        } else if (strcmp(argv[i], "--sends") == 0) {
            asks_sends = 1;
        } else if (strcmp(argv[i], "--table") == 0) {
            asks_table = 1;
        } else {
            open_or_die(argv[++i]);
        }
    }
    mpi = open_or_die(argv[argc - 1]);
    probe_type("vector", &vector);
    probe_type("contiguous", &contiguous);
    probe_type("liar", &liar);
    probe_type("liar again", &liar);
    ((void (*)(uint64_t))find(mpi, "fake_unregister"))(64); /* a contiguous type: nobody's */
    printf("live %d\n", ((int (*)(void))find(mpi, "fake_ucp_live"))());
    if (asks_convertor) {
        probe_convertor(&vector);
    }
    if (asks_sends) {
        probe_sends();
    }
    if (asks_table) {
        probe_table();
    }
    return 0;
}
