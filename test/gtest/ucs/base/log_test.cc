// Beside a real UCX, whose log prints what we say.
#include "ucs/base/log.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <string>

namespace cuda_nc {
namespace {

// What a process prints that says this and is killed.
std::string last_words_of_killed(const char *words) {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        static char buffer[4096];
        std::setvbuf(stdout, buffer, _IOFBF, sizeof(buffer));
        dup2(ends[1], STDOUT_FILENO);
        nc_warn("%s", words);
        kill(getpid(), SIGKILL);
    }
    close(ends[1]);
    std::string said;
    char part[256];
    for (ssize_t size; (size = read(ends[0], part, sizeof(part))) > 0;) {
        said.append(part, static_cast<size_t>(size));
    }
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status));
    return said;
}

TEST(log, a_warning_is_told_though_the_process_is_killed_then) {
    EXPECT_NE(last_words_of_killed("these are the words").find("these are the words"),
              std::string::npos);
}

}  // namespace
}  // namespace cuda_nc
