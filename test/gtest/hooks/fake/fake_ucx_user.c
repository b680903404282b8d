/* A library that uses a UCP; linked once to each of the two, and bound lazily. */
#include <stdint.h>

void ucp_get_version(unsigned *major, unsigned *minor, unsigned *release);
void ucp_dt_destroy(uint64_t datatype);

/* The minor release; binds the call. */
int user_version(void) {
    unsigned major, minor, release;
    ucp_get_version(&major, &minor, &release);
    return (int)minor;
}

void user_destroys(uint64_t datatype) {
    ucp_dt_destroy(datatype);
}
