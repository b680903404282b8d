/*
 * libucp_fake.so: UCP's generic datatypes, sends that only remember how they were asked for, and
 * receives that can be cancelled. libucp_second.so is another copy, of release 1.19.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    void *functions[6];
    void *context;
} generic_t;

#ifndef FAKE_MINOR
#define FAKE_MINOR 22
#endif

enum { generic_class = 7 }; /* lowest bits of a handle, as in UCP */
static int num_live;

static generic_t *of(uint64_t datatype) {
    return (generic_t *)(uintptr_t)(datatype - generic_class);
}

int8_t ucp_dt_create_generic(const void *ops, void *context, uint64_t *datatype_p) {
    generic_t *made = malloc(sizeof(*made));
    memcpy(made->functions, ops, sizeof(made->functions));
    made->context = context;
    *datatype_p = (uint64_t)(uintptr_t)made + generic_class;
    ++num_live;
    return 0;
}

void ucp_dt_destroy(uint64_t datatype) {
    if (datatype % 8 == generic_class) { /* nothing was made for contiguous types */
        memset(of(datatype), 0xdd, sizeof(generic_t));
        free(of(datatype));
        --num_live;
    }
}

void ucp_get_version(unsigned *major, unsigned *minor, unsigned *release) {
    const char *text = getenv("FAKE_UCP_MINOR");
    *major = 1;
    *minor = text != NULL ? (unsigned)atoi(text) : FAKE_MINOR;
    *release = 0;
}

static void (*inside)(void);

/* Called by each thread inside a send, a cancel or progress. */
void fake_ucp_set_inside(void (*call)(void)) {
    inside = call;
}

static void call_inside(void) {
    if (inside != NULL) {
        inside();
    }
}

static uint32_t sent_flags, sent_am_flags;
static uint64_t sent_datatype;

void *ucp_tag_send_nbx(void *ep, const void *buffer, size_t count, uint64_t tag,
                       const void *param) {
    (void)ep, (void)buffer, (void)count, (void)tag;
    /* members of ucp_request_param_t */
    memcpy(&sent_flags, param, sizeof(sent_flags));
    memcpy(&sent_am_flags, (const char *)param + 4, sizeof(sent_am_flags));
    memcpy(&sent_datatype, (const char *)param + 24, sizeof(sent_datatype));
    call_inside();
    return NULL;
}

void *ucp_tag_send_sync_nbx(void *ep, const void *buffer, size_t count, uint64_t tag,
                            const void *param) {
    return ucp_tag_send_nbx(ep, buffer, count, tag, param);
}

void *ucp_am_send_nbx(void *ep, unsigned id, const void *header, size_t header_length,
                      const void *buffer, size_t count, const void *param) {
    (void)id, (void)header, (void)header_length;
    return ucp_tag_send_nbx(ep, buffer, count, 0, param);
}

/* ucp_ep_query is this function, or fails */
static int8_t (*ep_query)(void *ep, void *attributes);
void fake_ucp_set_ep_query(int8_t (*answer)(void *, void *)) {
    ep_query = answer;
}

int8_t ucp_ep_query(void *ep, void *attributes) {
    return ep_query != NULL ? ep_query(ep, attributes) : -1;
}

/* For the test: op_attr_mask of the last send, its flags and its datatype. */
uint32_t fake_ucp_sent_flags(void) {
    return sent_flags;
}

uint32_t fake_ucp_sent_am_flags(void) {
    return sent_am_flags;
}

uint64_t fake_ucp_sent_datatype(void) {
    return sent_datatype;
}

/* For the test: what UCP would call. */
const void *fake_ucp_operations(uint64_t datatype) {
    return of(datatype)->functions;
}

void *fake_ucp_context(uint64_t datatype) {
    return of(datatype)->context;
}

int fake_ucp_live(void) {
    return num_live;
}

/* ---- receives. A request begins as those of UCX 1.16 to 1.22 do. */

enum { canceled = -16, in_progress = 1, completed = 1 };

typedef struct {
    int8_t status;
    uint32_t flags;
    uint64_t words[3];
    uint32_t class; /* 32 bytes from the start: that of the datatype */
    uint64_t others[4];
    void *datatype; /* 72 bytes from the start */
    void *state;
    uint64_t more[12];
} request_t;

/*
 * What a cancel does: 'c' cancels the receive, 'm' nothing, because the message has come; 'f'
 * cancels and finishes the state; 'r' cancels, and the request is used again for another receive.
 */
static char cancel_behaviour = 'c';

void fake_ucp_set_cancel(char behaviour) {
    cancel_behaviour = behaviour;
}

/* What UCP hands out for a posted receive. */
void *fake_ucp_post(uint64_t datatype, void *state) {
    request_t *made = calloc(1, sizeof(*made));
    made->datatype = of(datatype);
    made->state = state;
    made->class = 7;
    return made + 1;
}

/* The same for contiguous memory, in a request that had this datatype before. */
void *fake_ucp_post_contiguous(uint64_t datatype, void *state) {
    request_t *made = (request_t *)fake_ucp_post(datatype, state) - 1;
    made->class = 0;
    return made + 1;
}

void fake_ucp_complete(void *request, int8_t status) {
    request_t *one = (request_t *)request - 1;
    one->status = status;
    one->flags |= completed;
}

void fake_ucp_release(void *request) {
    free((request_t *)request - 1);
}

int8_t ucp_request_check_status(void *request) {
    request_t *one = (request_t *)request - 1;
    return (one->flags & completed) != 0 ? one->status : in_progress;
}

void ucp_request_cancel(void *worker, void *request) {
    request_t *one = (request_t *)request - 1;
    (void)worker;
    if ((one->flags & completed) != 0 || cancel_behaviour == 'm') {
        return;
    }
    fake_ucp_complete(request, canceled);
    if (cancel_behaviour == 'f') {
        ((void (*)(void *))((generic_t *)one->datatype)->functions[5])(one->state);
    } else if (cancel_behaviour == 'r') {
        one->state = &one->more;
        one->flags = 0;
    }
    call_inside(); /* as a completion callback */
}

int8_t ucp_context_query(void *context, void *attributes) {
    uint64_t mask;
    const size_t size = sizeof(request_t);
    (void)context;
    memcpy(&mask, attributes, sizeof(mask));
    if (mask == 1) { /* the size of a request alone */
        memcpy((char *)attributes + sizeof(mask), &size, sizeof(size));
    }
    return 0;
}

/* ---- workers */

static void (*while_creating)(void);
static int8_t creation_status;
static unsigned num_progressed;

/* Called by the thread that creates a worker, while it does; then it has this status. */
void fake_ucp_while_creating(void (*call)(void), int8_t status) {
    while_creating = call;
    creation_status = status;
}

int8_t ucp_worker_create(void *context, const void *params, void **worker_p) {
    (void)params;
    if (while_creating != NULL) {
        while_creating();
    }
    *worker_p = context;
    return creation_status;
}

static uint32_t given_thread_mode;

/* That workers are said to have. */
void fake_ucp_set_thread_mode(uint32_t mode) {
    given_thread_mode = mode;
}

int8_t ucp_worker_query(void *worker, void *attributes) {
    (void)worker;
    memcpy((char *)attributes + sizeof(uint64_t), &given_thread_mode, sizeof(given_thread_mode));
    return 0;
}

/* How often it was called in this UCP. */
unsigned ucp_worker_progress(void *worker) {
    (void)worker;
    call_inside();
    return ++num_progressed;
}
