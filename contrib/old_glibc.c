/* What a static libstdc++ and its headers ask of a glibc later than 2.28, for contrib/old_glibc.sh.
 */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
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

/* a + sign * b, normalised. */
static struct timespec combine(struct timespec a, struct timespec b, int sign) {
    struct timespec result = {a.tv_sec + sign * b.tv_sec, a.tv_nsec + sign * b.tv_nsec};
    if (result.tv_nsec < 0) {
        result.tv_nsec += 1000000000;
        --result.tv_sec;
    } else if (result.tv_nsec >= 1000000000) {
        result.tv_nsec -= 1000000000;
        ++result.tv_sec;
    }
    return result;
}

/*
 * glibc 2.30; of std::condition_variable::wait_for. It waits by the wall clock. Where that was set
 * meanwhile, it may wake too early, as every wait on a condition may, or as much too late.
 */
HIDDEN int pthread_cond_clockwait(pthread_cond_t *condition, pthread_mutex_t *mutex,
                                  clockid_t clock, const struct timespec *end);
int pthread_cond_clockwait(pthread_cond_t *condition, pthread_mutex_t *mutex, clockid_t clock,
                           const struct timespec *end) {
    struct timespec now, wall, left;
    int status;
    if (clock == CLOCK_REALTIME) {
        return pthread_cond_timedwait(condition, mutex, end);
    }
    if (clock_gettime(clock, &now) != 0 || clock_gettime(CLOCK_REALTIME, &wall) != 0) {
        return EINVAL;
    }
    left = combine(*end, now, -1);
    if (left.tv_sec < 0) {
        return ETIMEDOUT;
    }
    wall = combine(wall, left, 1);
    status = pthread_cond_timedwait(condition, mutex, &wall);
    if (status != ETIMEDOUT || clock_gettime(clock, &now) != 0) {
        return status;
    }
    return combine(*end, now, -1).tv_sec < 0 ? ETIMEDOUT : 0;
}
