/*
 * A library that brings a UCX of its own, as Python's packages do: messages between two workers of
 * its process, contiguous ones, of a generic datatype of its own, and, where the product is loaded,
 * of a datatype that the product makes, between buffers of the simulated GPU. Prints what is wrong.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucp/api/ucp.h>

#include "include/cuda_nc/cuda_nc.h"

#define MUST(call)                                                       \
    do {                                                                 \
        ucs_status_t status_ = (call);                                   \
        if (status_ != UCS_OK) {                                         \
            printf("WRONG %s: %s\n", #call, ucs_status_string(status_)); \
            return 1;                                                    \
        }                                                                \
    } while (0)

enum { largest = 200000, block = 8, stride = 24 };
static const size_t sizes[] = {1, 3000, largest};

static ucp_context_h context;
static ucp_worker_h sender, receiver;
static ucp_ep_h ep;

/* ---- a datatype whose packed bytes are the buffer's, each plus one */

typedef struct {
    char *buffer;
    size_t size;
} state_t;
static int num_live;

static void *start(void *buffer, size_t size) {
    state_t *made = malloc(sizeof(*made));
    made->buffer = buffer;
    made->size = size;
    ++num_live;
    return made;
}
static void *start_pack(void *unused, const void *buffer, size_t size) {
    (void)unused;
    return start((void *)buffer, size);
}
static void *start_unpack(void *unused, void *buffer, size_t size) {
    (void)unused;
    return start(buffer, size);
}
static size_t packed_size(void *state) {
    return ((state_t *)state)->size;
}
static size_t pack(void *state, size_t offset, void *to, size_t room) {
    const state_t *from = state;
    size_t length = room < from->size - offset ? room : from->size - offset;
    size_t i;
    for (i = 0; i < length; ++i) {
        ((char *)to)[i] = (char)(from->buffer[offset + i] + 1);
    }
    return length;
}
static ucs_status_t unpack(void *state, size_t offset, const void *from, size_t length) {
    memcpy(((state_t *)state)->buffer + offset, from, length);
    return UCS_OK;
}
static void finish(void *state) {
    --num_live;
    free(state);
}

/* ---- messages */

static ucs_status_t wait_for(void *request) {
    ucs_status_t status;
    if (!UCS_PTR_IS_PTR(request)) {
        return UCS_PTR_STATUS(request);
    }
    while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS) {
        ucp_worker_progress(sender);
        ucp_worker_progress(receiver);
    }
    ucp_request_free(request);
    return status;
}

static int exchange(const void *from, void *to, size_t count, ucp_datatype_t datatype) {
    ucp_request_param_t how = {.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE, .datatype = datatype};
    void *in = ucp_tag_recv_nbx(receiver, to, count, 1, ~0ull, &how);
    void *out = ucp_tag_send_nbx(ep, from, count, 1, &how);
    MUST(wait_for(out));
    MUST(wait_for(in));
    return 0;
}

static int exchange_bytes(ucp_datatype_t datatype, int added) {
    static char from[largest], to[largest];
    size_t i, n;
    for (n = 0; n < sizeof(sizes) / sizeof(sizes[0]); ++n) {
        for (i = 0; i < sizes[n]; ++i) {
            from[i] = (char)(i * 7 + n);
        }
        memset(to, 0, sizeof(to));
        if (exchange(from, to, sizes[n], datatype) != 0) {
            return 1;
        }
        for (i = 0; i < sizes[n]; ++i) {
            if (to[i] != (char)(from[i] + added)) {
                printf("WRONG byte %zu of %zu\n", i, sizes[n]);
                return 1;
            }
        }
    }
    return 0;
}

static int exchange_own_type(void) {
    const ucp_generic_dt_ops_t operations = {start_pack, start_unpack, packed_size,
                                             pack,       unpack,       finish};
    ucp_datatype_t datatype;
    MUST(ucp_dt_create_generic(&operations, NULL, &datatype));
    if (exchange_bytes(datatype, 1) != 0) {
        return 1;
    }
    ucp_dt_destroy(datatype);
    if (num_live != 0) {
        printf("WRONG: %d states are left\n", num_live);
        return 1;
    }
    return 0;
}

/* The product's functions, where it is loaded. */
static void *find(const char *symbol) {
    void *handle = dlopen("libcuda_nc.so.0", RTLD_NOW | RTLD_NOLOAD);
    return handle != NULL ? dlsym(handle, symbol) : NULL;
}

static int exchange_product_type(void) {
    ucs_status_t (*create)(const cuda_nc_block_t *, size_t, ptrdiff_t, ucp_datatype_t *) =
        find("cuda_nc_dt_create");
    void (*destroy)(ucp_datatype_t) = find("cuda_nc_dt_destroy");
    void *(*gpu_malloc)(size_t) = find("cuda_nc_sim_malloc");
    void (*gpu_free)(void *) = find("cuda_nc_sim_free");
    void (*gpu_copy)(void *, const void *, size_t) = find("cuda_nc_sim_memcpy");
    const cuda_nc_block_t one = {4, block};
    const size_t bytes = 5000 * stride;
    char *from, *to, *host;
    ucp_datatype_t datatype;
    size_t i;
    if (create == NULL) {
        return 0;
    }
    MUST(create(&one, 1, stride, &datatype));
    from = gpu_malloc(bytes);
    to = gpu_malloc(bytes);
    host = malloc(bytes);
    for (i = 0; i < bytes; ++i) {
        host[i] = (char)(i * 11);
    }
    gpu_copy(from, host, bytes);
    memset(host, 0, bytes);
    gpu_copy(to, host, bytes);
    if (exchange(from, to, bytes / stride, datatype) != 0) {
        return 1;
    }
    gpu_copy(host, to, bytes);
    for (i = 0; i < bytes; ++i) {
        const int is_sent = i % stride >= 4 && i % stride < 4 + block;
        if (host[i] != (is_sent ? (char)(i * 11) : 0)) {
            printf("WRONG byte %zu of the product's datatype\n", i);
            return 1;
        }
    }
    destroy(datatype);
    gpu_free(from);
    gpu_free(to);
    free(host);
    return 0;
}

/* ---- steps */

int client_open(void) {
    ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_TAG};
    ucp_worker_params_t worker_params = {0};
    ucp_ep_params_t ep_params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS};
    ucp_address_t *address;
    size_t length;
    MUST(ucp_init(&params, NULL, &context));
    MUST(ucp_worker_create(context, &worker_params, &sender));
    MUST(ucp_worker_create(context, &worker_params, &receiver));
    MUST(ucp_worker_get_address(receiver, &address, &length));
    ep_params.address = address;
    MUST(ucp_ep_create(sender, &ep_params, &ep));
    ucp_worker_release_address(receiver, address);
    return 0;
}

int client_run(void) {
    unsigned major, minor, release;
    if (exchange_bytes(ucp_dt_make_contig(1), 0) != 0 || exchange_own_type() != 0 ||
        exchange_product_type() != 0) {
        return 1;
    }
    ucp_get_version(&major, &minor, &release);
    printf("RIGHT client %u.%u.%u\n", major, minor, release);
    return 0;
}

/*
 * What the program calls, which uses no UCX. The compiler makes jumps of the calls of UCP, so that
 * they seem to come from the program.
 */
static const ucp_request_param_t simple;

void *client_send(const void *from, size_t bytes) {
    return ucp_tag_send_nbx(ep, from, bytes, 1, &simple);
}

void *client_receive(void *to, size_t bytes) {
    return ucp_tag_recv_nbx(receiver, to, bytes, 1, ~0ull, &simple);
}

void client_cancel(void *request) {
    ucp_request_cancel(receiver, request);
}

int client_wait(void *request) {
    return wait_for(request);
}

int client_close(void) {
    ucp_request_param_t none = {0};
    MUST(wait_for(ucp_ep_close_nbx(ep, &none)));
    ucp_worker_destroy(sender);
    ucp_worker_destroy(receiver);
    ucp_cleanup(context);
    return 0;
}
