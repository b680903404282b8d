#include "ucs/base/trace.hpp"

#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>

#include "ucs/base/log.hpp"

namespace cuda_nc {
namespace {

constexpr size_t most_events = size_t(1) << 18;  // 10 MB

struct event {
    const char *name;
    uint64_t id, value;
    int64_t time;  // nanoseconds
    int thread;
    trace_phase phase;
};

struct recorder {
    std::mutex mutex;
    std::deque<event> events;
    uint64_t lost = 0;
    pid_t owner = getpid();
    std::string file = trace_file(config().trace);
};

void write_at_exit();

recorder &get_recorder() {
    static recorder *only = [] {
        auto *made = new recorder;
        std::atexit(write_at_exit);
        return made;
    }();
    return *only;
}

int64_t now() noexcept {
    timespec time = {};
    clock_gettime(CLOCK_MONOTONIC, &time);
    return int64_t{time.tv_sec} * 1000000000 + time.tv_nsec;
}

void write_at_exit() {
    if (get_recorder().owner != getpid()) {
        return;  // a forked child's messages are its parent's
    }
    const std::string &name = get_recorder().file;
    std::string text = format_trace();
    FILE *file = std::fopen(name.c_str(), "we");
    bool written = file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size();
    if (file != nullptr) {
        written = std::fclose(file) == 0 && written;
    }
    if (!written) {
        nc_warn("the trace %s cannot be written: %s", name.c_str(), std::strerror(errno));
    }
}

}  // namespace

void trace_slow(trace_phase phase, const char *name, uint64_t id, uint64_t value) noexcept try {
    static thread_local const int thread = static_cast<int>(syscall(SYS_gettid));
    int64_t time = now();
    recorder &all = get_recorder();
    std::lock_guard<std::mutex> guard(all.mutex);
    if (all.events.size() == most_events) {
        ++all.lost;
        return;
    }
    all.events.push_back({name, id, value, time, thread, phase});
} catch (...) {
    // a lost event harms nobody
}

std::string format_trace() {
    recorder &all = get_recorder();
    std::lock_guard<std::mutex> guard(all.mutex);
    std::string text = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[";
    const char *separator = "\n";
    char line[320];
    for (const event &one : all.events) {
        int length = std::snprintf(
            line, sizeof(line),
            "%s{\"ph\":\"%c\",\"cat\":\"message\",\"name\":\"%s\",\"id\":\"0x%" PRIx64
            "\",\"pid\":%d,\"tid\":%d,\"ts\":%" PRId64 ".%03d",
            separator, static_cast<char>(one.phase), one.name, one.id, static_cast<int>(all.owner),
            one.thread, one.time / 1000, static_cast<int>(one.time % 1000));
        text.append(line, static_cast<size_t>(length));
        if (one.value != 0) {
            text += ",\"args\":{\"bytes\":" + std::to_string(one.value) + "}";
        }
        text += "}";
        separator = ",\n";
    }
    text += "\n],\"otherData\":{\"lost\":" + std::to_string(all.lost) + "}}\n";
    return text;
}

std::string trace_file(const std::string &pattern) {
    std::string name = pattern;
    struct stat there;
    const bool is_device =
        stat(name.c_str(), &there) == 0 && (S_ISCHR(there.st_mode) || S_ISFIFO(there.st_mode));
    if (name.find("%p") == std::string::npos && !is_device) {  // else ranks share one file
        const size_t dot = name.rfind('.');
        const bool has_suffix =
            dot != std::string::npos && name.find('/', dot) == std::string::npos;
        name.insert(has_suffix ? dot : name.size(), ".%p");
    }
    for (size_t at = 0; (at = name.find("%p", at)) != std::string::npos;) {
        std::string number = std::to_string(getpid());
        name.replace(at, 2, number);
        at += number.size();
    }
    return name;
}

}  // namespace cuda_nc
