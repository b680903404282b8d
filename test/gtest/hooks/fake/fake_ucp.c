/*
 * libucp_fake.so: UCP's generic datatypes, and sends that only remember how they were asked for.
 * libucp_second.so is another copy, of release 1.19.
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

static uint32_t sent_flags;

void *ucp_tag_send_nbx(void *ep, const void *buffer, size_t count, uint64_t tag,
                       const void *param) {
    (void)ep, (void)buffer, (void)count, (void)tag;
    memcpy(&sent_flags, param, sizeof(sent_flags)); /* its first member */
    return NULL;
}

/* For the test: op_attr_mask of the last send. */
uint32_t fake_ucp_sent_flags(void) {
    return sent_flags;
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
