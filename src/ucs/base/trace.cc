#include "ucs/base/trace.hpp"

#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <nlohmann/json.hpp>

#include "ucs/base/log.hpp"
#include "ucs/base/nvtx.hpp"
#include "ucs/base/settings.hpp"

namespace cuda_nc {

std::atomic<trace_state> trace_state_now{trace_state::undecided};

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

void record(trace_phase phase, const char *name, uint64_t id, uint64_t value) {
    static thread_local const int thread = static_cast<int>(syscall(SYS_gettid));
    int64_t time = now();
    recorder &all = get_recorder();
    std::lock_guard<std::mutex> guard(all.mutex);
    if (all.events.size() == most_events) {
        ++all.lost;
        return;
    }
    all.events.push_back({name, id, value, time, thread, phase});
}

void tell_tool(trace_phase phase, const char *name, uint64_t id, uint64_t value) noexcept {
    switch (phase) {
        case trace_phase::begin:
            return nvtx_begin(name, id, value);
        case trace_phase::end:
            return nvtx_end(name, id);
        case trace_phase::mark:
            return nvtx_mark(name, value);
    }
}

// Times are in microseconds; a double holds them to the nanosecond in the machine's first 100 days.
nlohmann::ordered_json describe(const event &one, pid_t process) {
    char id[20];
    std::snprintf(id, sizeof(id), "0x%llx", static_cast<unsigned long long>(one.id));
    nlohmann::ordered_json result;
    result["ph"] = std::string(1, static_cast<char>(one.phase));
    result["cat"] = "message";
    result["name"] = one.name;
    result["id"] = id;
    result["pid"] = process;
    result["tid"] = one.thread;
    result["ts"] = static_cast<double>(one.time) / 1000;
    if (one.value != 0) {
        result["args"]["bytes"] = one.value;
    }
    return result;
}

}  // namespace

bool decide_trace() noexcept {
    const bool wanted = !config().trace.empty() || nvtx_attached();
    trace_state_now.store(wanted ? trace_state::on : trace_state::off, std::memory_order_relaxed);
    return wanted;
}

void reload_trace_for_test() noexcept {
    trace_state_now.store(trace_state::undecided, std::memory_order_relaxed);
}

void trace_slow(trace_phase phase, const char *name, uint64_t id, uint64_t value) noexcept try {
    if (nvtx_attached()) {
        tell_tool(phase, name, id, value);
    }
    if (!config().trace.empty()) {
        record(phase, name, id, value);
    }
} catch (...) {
    // a lost event harms nobody
}

std::string format_trace() {
    recorder &all = get_recorder();
    std::lock_guard<std::mutex> guard(all.mutex);
    // Event by event: as one value they would take some 600 bytes each.
    std::string text = R"({"displayTimeUnit":"ns","traceEvents":[)";
    const char *separator = "\n";
    for (const event &one : all.events) {
        text += separator + describe(one, all.owner).dump();
        separator = ",\n";
    }
    const nlohmann::json other = {{"lost", all.lost}};
    text += "\n],\"otherData\":" + other.dump() + "}\n";
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
