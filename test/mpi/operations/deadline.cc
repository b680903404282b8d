#include "operations/deadline.hpp"

#include <execinfo.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <initializer_list>

namespace mpi_test {
namespace {

const char *volatile current = "start or end";
char process_text[16];
char rank_text[32];

void say(const char *text) {
    ssize_t ignored = write(STDOUT_FILENO, text, std::strlen(text));
    static_cast<void>(ignored);
}

// Async-signal-safe: a hung process may hold any lock.
void print_stacks() {
    pid_t child = fork();
    if (child == 0) {
        dup2(STDOUT_FILENO, STDERR_FILENO);
        execlp("gdb", "gdb", "-p", process_text, "-batch", "-ex", "thread apply all backtrace",
               static_cast<char *>(nullptr));
        _exit(127);
    }
    int status = 0;
    if (child > 0) {
        waitpid(child, &status, 0);
    }
    if (child < 0 || status != 0) {
        void *frames[64];
        backtrace_symbols_fd(frames, backtrace(frames, 64), STDOUT_FILENO);
    }
}

void handle(int signal) {
    say("\nFAIL ");
    say(current);
    say(": ");
    say(rank_text);
    say(signal == SIGALRM ? "no result in time\n" : strsignal(signal));
    say("\n");
    print_stacks();
    if (signal == SIGALRM) {
        sleep(10);  // the other ranks print theirs before the launcher ends them
        _exit(124);
    }
    std::signal(signal, SIG_DFL);
    raise(signal);
}

}  // namespace

void watch_signals(int rank) {
    std::snprintf(process_text, sizeof(process_text), "%d", static_cast<int>(getpid()));
    std::snprintf(rank_text, sizeof(rank_text), "rank %d: ", rank);
    for (int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGALRM}) {
        std::signal(signal, handle);
    }
}

void start_deadline(const char *name, unsigned seconds) {
    current = name;
    alarm(seconds);
}

void stop_deadline() {
    alarm(0);
    current = "start or end";
}

}  // namespace mpi_test
