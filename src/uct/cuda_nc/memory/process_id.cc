#include "uct/cuda_nc/memory/process_id.hpp"

#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cinttypes>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "ucs/backend/backends.hpp"

namespace cuda_nc::uct {
namespace {

struct process_status {
    uint64_t started = 0;    // 0: not found
    bool is_absent = false;  // not found, because there is no such process
    bool has_ended = false;  // its parent has yet to hear of it: its memory and files are closed
};

// Fields 3, 20 and 22 of /proc/PID/stat, behind a name that may hold anything.
process_status status_of(uint32_t pid) noexcept {
    process_status found;
    char path[64], text[1024];
    std::snprintf(path, sizeof(path), "/proc/%" PRIu32 "/stat", pid);
    FILE *file = std::fopen(path, "r");
    if (file == nullptr) {
        // /proc may hide other users' processes (hidepid).
        found.is_absent =
            errno == ENOENT && kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH;
        return found;
    }
    size_t length = std::fread(text, 1, sizeof(text) - 1, file);
    found.is_absent = std::ferror(file) != 0 && errno == ESRCH;
    std::fclose(file);
    text[length] = '\0';
    const char *behind_name = std::strrchr(text, ')');
    char state = 0;
    long threads = 0;
    if (behind_name == nullptr ||
        std::sscanf(behind_name + 1,
                    " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %ld %*s "
                    "%" SCNu64,
                    &state, &threads, &found.started) != 3) {
        found.started = 0;
    }
    // A first thread that has ended before the others is shown so too.
    found.has_ended = (state == 'Z' || state == 'X') && threads <= 1;
    return found;
}

// The namespace of clocks, if it is not the machine's: the start of a process reads otherwise
// there.
uint32_t own_time_space() noexcept {
    constexpr ino_t of_machine = 0xeffffffa;
    struct stat status;
    return stat("/proc/self/ns/time", &status) == 0 && status.st_ino != of_machine
               ? static_cast<uint32_t>(status.st_ino) * 2654435761u
               : 0;
}

// 0 where /proc is that of another PID namespace: its numbers are not ours.
uint32_t own_pid_space() noexcept {
    char self[16] = {};
    struct stat status;
    return readlink("/proc/self", self, sizeof(self) - 1) > 0 &&
                   std::strtol(self, nullptr, 10) == getpid() &&
                   stat("/proc/self/ns/pid", &status) == 0
               ? static_cast<uint32_t>(status.st_ino) ^ own_time_space()
               : 0;
}

std::atomic<const process_id *> own{nullptr};  // no lock: a child would have it, too

// Now, and not at first use: a fork on another thread could miss a handler that is set later.
const bool children_forget =
    pthread_atfork(nullptr, nullptr, [] { own.store(nullptr, std::memory_order_relaxed); }) == 0;

}  // namespace

process_id process_id_of(uint32_t pid) noexcept {
    process_id one = {pid, own_pid_space(), status_of(pid).started};
    return one.started != 0 && one.pid_space != 0 ? one : process_id{};
}

// Not read again and again: it takes some 20 us, and a question for our number as long as the rest
// of a message's key. A child has another number, and forgets its parent's.
process_id own_process_id() noexcept {
    const process_id *known = own.load(std::memory_order_acquire);
    if (known != nullptr) {
        return *known;
    }
    const process_id found = process_id_of(static_cast<uint32_t>(getpid()));
    const process_id *made =
        children_forget && found.started != 0 ? new (std::nothrow) process_id(found) : nullptr;
    if (made != nullptr) {
        own.store(made, std::memory_order_release);  // others may read the one before for ever
    }
    return found;
}

bool is_own(const process_id &process) noexcept {
    return process.started != 0 && process == own_process_id() && !gpu::forked();
}

bool can_be_seen(const process_id &process) noexcept {
    return process.started != 0 && process.pid_space == own_pid_space();
}

bool is_gone(const process_id &process) noexcept {
    if (!can_be_seen(process)) {
        return false;
    }
    const process_status now = status_of(process.pid);
    return now.is_absent || (now.started != 0 && (now.started != process.started || now.has_ended));
}

}  // namespace cuda_nc::uct
