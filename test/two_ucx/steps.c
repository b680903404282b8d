/*
 * steps [LIBRARY:FUNCTIONS]...: calls functions of libraries in the given order, "o" for ..._open,
 * "r" for ..._run, "c" for ..._close; "j" exchanges messages by client_send and others, which pass
 * calls of UCP on. A library is loaded at its first step, RTLD_LOCAL; its functions' names begin
 * with "mpi" where its file's name holds "mpi", else with "client".
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static int pass_on(void *library) {
    static char from[100000], to[sizeof(from)];
    static const size_t sizes[] = {8, sizeof(from)};
    void *(*send)(const void *, size_t) = dlsym(library, "client_send");
    void *(*receive)(void *, size_t) = dlsym(library, "client_receive");
    void (*cancel)(void *) = dlsym(library, "client_cancel");
    int (*wait)(void *) = dlsym(library, "client_wait");
    void *request;
    int i;
    for (i = 0; i < 2; ++i) {
        memset(from, 'a' + i, sizes[i]);
        request = receive(to, sizes[i]);
        if (wait(send(from, sizes[i])) != 0 || wait(request) != 0 ||
            memcmp(from, to, sizes[i]) != 0) {
            return 1;
        }
    }
    request = receive(to, sizeof(to));
    cancel(request);
    return wait(request) != -16; /* UCS_ERR_CANCELED */
}

static int call(const char *library, char step) {
    const char *slash = strrchr(library, '/');
    char name[64];
    int (*function)(void);
    void *handle = dlopen(library, RTLD_LAZY | RTLD_LOCAL);
    if (handle == NULL) {
        printf("WRONG %s\n", dlerror());
        return 1;
    }
    if (step == 'j') {
        const int failed = pass_on(handle);
        printf("%s passed on by %s\n", failed ? "WRONG" : "RIGHT", library);
        fflush(stdout);
        return failed;
    }
    snprintf(name, sizeof(name), "%s_%s", strstr(slash, "mpi") != NULL ? "mpi" : "client",
             step == 'o'   ? "open"
             : step == 'r' ? "run"
                           : "close");
    function = dlsym(handle, name);
    if (function == NULL) {
        printf("WRONG %s\n", dlerror());
        return 1;
    }
    if (function() != 0) {
        printf("WRONG %s of %s\n", name, library);
        return 1;
    }
    fflush(stdout);
    return 0;
}

int main(int argc, char **argv) {
    int i;
    for (i = 1; i < argc; ++i) {
        char *step = strchr(argv[i], ':');
        for (*step++ = '\0'; *step != '\0'; ++step) {
            if (call(argv[i], *step) != 0) {
                return 1;
            }
        }
    }
    puts("DONE");
    return 0;
}
