#include "ucs/gpu/child_process.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <stdexcept>

extern char **environ;

namespace cuda_nc::gpu::test {
namespace {

constexpr int child_in = 3, child_out = 4;

bool write_all(int fd, const void *bytes, size_t size) {
    auto *next = static_cast<const char *>(bytes);
    while (size != 0) {
        ssize_t n = write(fd, next, size);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return false;
        }
        next += n;
        size -= static_cast<size_t>(n);
    }
    return true;
}

bool read_all(int fd, void *bytes, size_t size) {
    auto *next = static_cast<char *>(bytes);
    while (size != 0) {
        ssize_t n = read(fd, next, size);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return false;
        }
        next += n;
        size -= static_cast<size_t>(n);
    }
    return true;
}

std::vector<char *> pointers(std::vector<std::string> &texts) {
    std::vector<char *> result;
    for (std::string &text : texts) {
        result.push_back(text.data());
    }
    result.push_back(nullptr);
    return result;
}

}  // namespace

const char *this_program() {
    const char *given = std::getenv("CUDA_NC_TEST_PROGRAM");
    return given != nullptr ? given : "/proc/self/exe";
}

child_process::child_process(const std::string &test, const std::vector<std::string> &settings) {
    signal(SIGPIPE, SIG_IGN);
    int down[2], up[2];
    if (pipe2(down, O_CLOEXEC) != 0 || pipe2(up, O_CLOEXEC) != 0) {
        throw std::runtime_error("no pipe");
    }
    output_ = memfd_create("output", MFD_CLOEXEC);
    // Made before the fork: other threads may hold the allocator's locks there.
    std::vector<std::string> arguments = {this_program(), "--gtest_filter=" + test,
                                          "--gtest_also_run_disabled_tests", "--gtest_brief=1"};
    std::vector<std::string> environment;
    for (char **one = environ; *one != nullptr; ++one) {
        std::string text = *one;
        bool replaced = text.rfind("GTEST_", 0) == 0;
        for (const std::string &setting : settings) {
            replaced = replaced || text.rfind(setting.substr(0, setting.find('=') + 1), 0) == 0;
        }
        if (!replaced) {
            environment.push_back(text);
        }
    }
    environment.insert(environment.end(), settings.begin(), settings.end());
    std::vector<char *> argv = pointers(arguments), envp = pointers(environment);
    pid_ = fork();
    if (pid_ == 0) {
        // Above the descriptors they are moved to.
        int in = fcntl(down[0], F_DUPFD_CLOEXEC, 10), out = fcntl(up[1], F_DUPFD_CLOEXEC, 10);
        dup2(output_, STDOUT_FILENO);
        dup2(output_, STDERR_FILENO);
        if (dup2(in, child_in) == child_in && dup2(out, child_out) == child_out) {
            execve(argv[0], argv.data(), envp.data());
        }
        _exit(127);
    }
    close(down[0]);
    close(up[1]);
    to_child_ = down[1];
    from_child_ = up[0];
}

child_process::~child_process() {
    if (pid_ > 0) {
        kill();
        wait();
    }
    close(to_child_);
    close(from_child_);
    close(output_);
}

std::string child_process::output() const {
    off_t size = lseek(output_, 0, SEEK_CUR);
    std::string text(size > 0 ? static_cast<size_t>(size) : 0, '\0');
    ssize_t n = pread(output_, text.data(), text.size(), 0);
    text.resize(n > 0 ? static_cast<size_t>(n) : 0);
    return text;
}

bool child_process::send(const void *bytes, size_t size) {
    return write_all(to_child_, bytes, size);
}

bool child_process::receive(void *bytes, size_t size) {
    return read_all(from_child_, bytes, size);
}

// A child that has been waited for has no number any more; -1 would mean every process.
int child_process::wait() {
    int status = 0;
    if (pid_ <= 0) {
        return status;
    }
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

void child_process::kill() {
    if (pid_ > 0) {
        ::kill(pid_, SIGKILL);
    }
}

bool send_to_parent(const void *bytes, size_t size) {
    return write_all(child_out, bytes, size);
}

bool receive_from_parent(void *bytes, size_t size) {
    return read_all(child_in, bytes, size);
}

}  // namespace cuda_nc::gpu::test
