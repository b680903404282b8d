/* What a static libstdc++ asks of a glibc later than 2.28, for contrib/old_glibc.sh. */
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#define HIDDEN __attribute__((visibility("hidden")))

/* glibc 2.32; 0: there may be several threads. */
HIDDEN extern char __libc_single_threaded;
char __libc_single_threaded = 0;

/* glibc 2.36; of std::random_device. */
HIDDEN uint32_t arc4random(void);
uint32_t arc4random(void) {
    uint32_t value;
    if (getentropy(&value, sizeof(value)) != 0) {
        abort();
    }
    return value;
}
