/* libucp_fake.so: UCP's generic datatypes, and nothing else of it. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    void *functions[6];
    void *context;
} generic_t;

static int num_live;

int8_t ucp_dt_create_generic(const void *ops, void *context, uint64_t *datatype_p) {
    generic_t *made = malloc(sizeof(*made));
    memcpy(made->functions, ops, sizeof(made->functions));
    made->context = context;
    *datatype_p = (uint64_t)(uintptr_t)made;
    ++num_live;
    return 0;
}

void ucp_dt_destroy(uint64_t datatype) {
    if (datatype > 4096) { /* others are contiguous types: nothing was made for them */
        memset((void *)(uintptr_t)datatype, 0xdd, sizeof(generic_t));
        free((void *)(uintptr_t)datatype);
        --num_live;
    }
}

void ucp_get_version(unsigned *major, unsigned *minor, unsigned *release) {
    const char *text = getenv("FAKE_UCP_MINOR");
    *major = 1;
    *minor = text != NULL ? (unsigned)atoi(text) : 22;
    *release = 0;
}

/* For the test: what UCP would call. */
const void *fake_ucp_operations(uint64_t datatype) {
    return ((const generic_t *)(uintptr_t)datatype)->functions;
}

void *fake_ucp_context(uint64_t datatype) {
    return ((const generic_t *)(uintptr_t)datatype)->context;
}

int fake_ucp_live(void) {
    return num_live;
}
