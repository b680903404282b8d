/*
 * steps [LIBRARY:[g]FUNCTIONS]...: calls functions of libraries in the given order, "o" for
 * ..._open, "r" for ..._run, "c" for ..._close. A library is loaded at its first step, RTLD_LOCAL,
 * or with "g" RTLD_GLOBAL; its functions' names begin with "mpi" where its file's name holds "mpi",
 * else with "client".
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static int call(const char *library, char step) {
    const char *slash = strrchr(library, '/');
    char name[64];
    int (*function)(void);
    void *handle = dlopen(library, RTLD_LAZY | RTLD_LOCAL);
    if (handle == NULL) {
        printf("WRONG %s\n", dlerror());
        return 1;
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
