/*
 * Which loaded object defines the functions that a caller calls: a process may hold several copies
 * of a library, under one name or under several. Plain C, for the shim as well.
 */
#ifndef CUDA_NC_UCS_BASE_DEFINER_H
#define CUDA_NC_UCS_BASE_DEFINER_H

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cuda_nc_definer {
    void *handle;     /* of dlopen, never closed: the object stays loaded */
    const void *base; /* where the object is loaded: tells objects apart */
} cuda_nc_definer_t;

/*
 * Finds the object whose functions named `prefix`... are called by the object that holds `caller`,
 * an address in its code. It must define `marker`, a function with that prefix that nobody
 * interposes. In this order:
 *   1. what the caller's own words (GOT and PLT) lead to now;
 *   2. what the loader would bind them to: the first definition in the global scope;
 *   3. else in the caller's object and those that it depends on.
 * Returns 0 where there is none, or where the caller's object has no such word: it calls none of
 * these functions by their names. Else 1, and the caller's object stays loaded too, so that its
 * addresses keep their meaning. Any thread may call.
 */
int cuda_nc_find_definer(const void *caller, const char *prefix, const char *marker,
                         cuda_nc_definer_t *found);

/* The object that the first definition of `marker` in the global scope lies in; 0: there is none.
 */
int cuda_nc_find_global_definer(const char *marker, cuda_nc_definer_t *found);

/*
 * Calls visit() once for each loaded object that defines `marker`, in load order. The objects stay
 * loaded.
 */
void cuda_nc_visit_definers(const char *marker,
                            void (*visit)(const cuda_nc_definer_t *one, void *argument),
                            void *argument);

/* How many objects have been loaded since the process started; costs about 50 ns. */
unsigned long long cuda_nc_count_loads(void);

#ifdef __cplusplus
}
#endif
#endif
