// Threads in host memory for the length of a test, and work in a child process.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "ucs/base/settings.hpp"
#include "ucs/exec/host/split.hpp"

namespace cuda_nc::exec::test {

// UCX_CUDA_NC_HOST_THREADS and the least bytes of a thread; 0: what pays.
class thread_settings {
  public:
    thread_settings(const char *threads, uint64_t least_bytes) {
        setenv("UCX_CUDA_NC_HOST_THREADS", threads, 1);
        reload_config_for_test();
        reload_split_for_test(least_bytes);
    }
    ~thread_settings() {
        unsetenv("UCX_CUDA_NC_HOST_THREADS");
        reload_config_for_test();
        reload_split_for_test(0);
    }
    thread_settings(const thread_settings &) = delete;
    thread_settings &operator=(const thread_settings &) = delete;
};

// What a child of this process returns from `action`, or -1 where it does not end well, or not in a
// minute.
template <class Action>
int result_of_child(Action &&action) {
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child == 0) {
        alarm(60);
        _exit(action());
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status)) {
        return -1;
    }
    return WEXITSTATUS(status);
}

}  // namespace cuda_nc::exec::test
