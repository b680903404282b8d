// The program of all tests that run inside UCX.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

// UCX never calls finish() for a cancelled receive.
extern "C" __attribute__((visibility("default"))) const char *__lsan_default_suppressions() {
    return "leak:ucp/dt/free_list.hpp\nleak:libucp.so\nleak:libucs.so\nleak:libuct.so\n";
}

// UCX reads some settings before main() begins: they are set for a second start.
int main(int argc, char **argv) {
    if (std::getenv("UCX_MEM_EVENTS") == nullptr) {
        setenv("UCX_MEM_EVENTS", "n", 1);  // its patches of mmap() and sanitizers do not agree
        setenv("UCX_WARN_UNUSED_ENV_VARS", "n", 1);
        execv("/proc/self/exe", argv);
    }
    ::testing::InitGoogleTest(&argc, argv);
    return RUN_ALL_TESTS();
}
