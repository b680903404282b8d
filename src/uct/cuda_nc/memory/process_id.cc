#include "uct/cuda_nc/memory/process_id.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "ucs/backend/backends.hpp"

namespace cuda_nc::uct {
namespace {

// The 22nd field of /proc/PID/stat, behind a name that may hold anything; 0: not found, and then
// *absent_p says whether there is no such process.
uint64_t start_time(uint32_t pid, bool *absent_p) noexcept {
    *absent_p = false;
    char path[64], text[1024];
    std::snprintf(path, sizeof(path), "/proc/%" PRIu32 "/stat", pid);
    FILE *file = std::fopen(path, "r");
    if (file == nullptr) {
        *absent_p = errno == ENOENT;
        return 0;
    }
    size_t length = std::fread(text, 1, sizeof(text) - 1, file);
    *absent_p = std::ferror(file) != 0 && errno == ESRCH;
    std::fclose(file);
    text[length] = '\0';
    const char *at = std::strrchr(text, ')');
    for (int field = 2; at != nullptr && field < 22; ++field) {
        at = std::strchr(at + 1, ' ');
    }
    uint64_t value = 0;
    return at != nullptr && std::sscanf(at, " %" SCNu64, &value) == 1 ? value : 0;
}

uint32_t own_pid_space() noexcept {
    struct stat status;
    return stat("/proc/self/ns/pid", &status) == 0 ? static_cast<uint32_t>(status.st_ino) : 0;
}

}  // namespace

process_id process_id_of(uint32_t pid) noexcept {
    bool absent;
    process_id one = {pid, own_pid_space(), start_time(pid, &absent)};
    return one.started != 0 && one.pid_space != 0 ? one : process_id{};
}

process_id own_process_id() noexcept {
    return process_id_of(static_cast<uint32_t>(getpid()));
}

bool is_own(const process_id &process) noexcept {
    static const process_id own = own_process_id();
    return process.started != 0 && process == own && !gpu::forked();
}

bool is_gone(const process_id &process) noexcept {
    if (process.started == 0 || process.pid_space != own_pid_space()) {
        return false;
    }
    bool absent;
    uint64_t started = start_time(process.pid, &absent);
    return absent || (started != 0 && started != process.started);
}

}  // namespace cuda_nc::uct
