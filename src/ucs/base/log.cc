#include "ucs/base/log.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "ucs/base/ucx_instance.hpp"

namespace cuda_nc {
namespace {

// What ucs_log_dispatch takes as its component: 1.13 reads the first two members, later releases
// all three.
struct log_component {
    int level;
    char name[16];
    const char *file_filter;
};

using dispatch_f = void (*)(const char *file, unsigned line, const char *function, int level,
                            const log_component *component, const char *format, ...);

struct ucx_log {
    dispatch_f dispatch = nullptr;
    void (*flush)() = nullptr;   // null: not known
    const int *level = nullptr;  // first member of ucs_global_opts: the level in force
};

// Whether its release is one whose log we know. libucs does not tell its release, but libucp does.
bool is_known_log() noexcept {
    using version_f = void (*)(unsigned *, unsigned *, unsigned *);
    enum answer { not_asked, yes, no };
    static std::atomic<answer> known{not_asked};
    if (known.load(std::memory_order_relaxed) != not_asked) {
        return known.load(std::memory_order_relaxed) == yes;
    }
    unsigned major = 0, minor = 0, release = 0;
    if (void *ucp = dlopen("libucp.so.0", RTLD_LAZY | RTLD_NOLOAD)) {
        if (auto *ask = reinterpret_cast<version_f>(dlsym(ucp, "ucp_get_version"))) {
            ask(&major, &minor, &release);
        }
        dlclose(ucp);
    } else if (const ucx_instance *ucx = first_known_ucx()) {
        major = ucx->major;
        minor = ucx->minor;
    } else {
        return false;  // there may be one later
    }
    const bool answer = is_known_release(major, minor);
    known.store(answer ? yes : no, std::memory_order_relaxed);
    return answer;
}

// The log of the UCX in this process; null where none is loaded (this loads none). Until UCX is
// there, each message asks again: messages are rare.
const ucx_log *find_ucx_log() noexcept {
    static std::atomic<const ucx_log *> found{nullptr};
    const ucx_log *known = found.load(std::memory_order_acquire);
    if (known != nullptr) {
        return known;
    }
    void *handle = dlopen("libucs.so.0", RTLD_LAZY | RTLD_NOLOAD);
    if (handle == nullptr && first_known_ucx() != nullptr) {
        handle = first_known_ucx()->handle;  // of libraries with other names
    }
    if (handle == nullptr || !is_known_log()) {
        return nullptr;
    }
    static ucx_log functions;
    functions.dispatch = reinterpret_cast<dispatch_f>(dlsym(handle, "ucs_log_dispatch"));
    functions.flush = reinterpret_cast<void (*)()>(dlsym(handle, "ucs_log_flush"));
    // A program may hold the level of the libucs that it is linked with (a copy relocation).
    const bool is_global =
        dlsym(RTLD_DEFAULT, "ucs_log_dispatch") == reinterpret_cast<void *>(functions.dispatch);
    functions.level =
        static_cast<const int *>(dlsym(is_global ? RTLD_DEFAULT : handle, "ucs_global_opts"));
    if (functions.dispatch == nullptr || functions.level == nullptr) {
        return nullptr;
    }
    found.store(&functions, std::memory_order_release);
    return &functions;
}

const char *level_name(log_level level) noexcept {
    static const char *const names[] = {"FATAL", "ERROR", "WARN", "DIAG", "INFO", "DEBUG", "TRACE"};
    return names[static_cast<int>(level)];
}

}  // namespace

bool log_enabled(log_level level) noexcept {
    const ucx_log *ucx = find_ucx_log();
    int limit = ucx != nullptr ? *ucx->level : static_cast<int>(log_level::warn);
    return static_cast<int>(level) <= limit;
}

void log_message(log_level level, const char *file, unsigned line, const char *function,
                 const char *format, ...) noexcept {
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);

    if (const ucx_log *ucx = find_ucx_log()) {
        static const log_component component = {static_cast<int>(log_level::trace), "CUDA_NC", "*"};
        ucx->dispatch(file, line, function, static_cast<int>(level), &component, "%s", text);
        // UCX itself flushes errors alone. A warning may tell why the program crashes next.
        if (level == log_level::warn && ucx->flush != nullptr) {
            ucx->flush();
        }
        return;
    }
    timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    const char *slash = std::strrchr(file, '/');
    std::fprintf(stderr, "[%lld.%06ld] [%d] %16s:%-4u CUDA_NC %-5s %s\n",
                 static_cast<long long>(now.tv_sec), now.tv_nsec / 1000, getpid(),
                 slash != nullptr ? slash + 1 : file, line, level_name(level), text);
}

}  // namespace cuda_nc
