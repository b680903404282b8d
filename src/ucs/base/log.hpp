// Log messages. They go through UCX's own log where UCX is loaded, so that UCX_LOG_LEVEL and
// UCX_LOG_FILE apply; else to standard error in the same form.
//
// The function that first notices an error logs it; its callers only pass the status on.
#pragma once

#include <atomic>

namespace cuda_nc {

// Values are UCX's.
enum class log_level : int {
    fatal = 0,
    error = 1,
    warn = 2,
    diag = 3,
    info = 4,
    debug = 5,
    trace = 6
};

bool log_enabled(log_level level) noexcept;
void log_message(log_level level, const char *file, unsigned line, const char *function,
                 const char *format, ...) noexcept __attribute__((format(printf, 5, 6)));

}  // namespace cuda_nc

#define NC_LOG(level, ...)                                                            \
    do {                                                                              \
        if (::cuda_nc::log_enabled(level)) {                                          \
            ::cuda_nc::log_message(level, __FILE__, __LINE__, __func__, __VA_ARGS__); \
        }                                                                             \
    } while (0)
#define nc_error(...) NC_LOG(::cuda_nc::log_level::error, __VA_ARGS__)
#define nc_warn(...) NC_LOG(::cuda_nc::log_level::warn, __VA_ARGS__)
#define nc_info(...) NC_LOG(::cuda_nc::log_level::info, __VA_ARGS__)
#define nc_debug(...) NC_LOG(::cuda_nc::log_level::debug, __VA_ARGS__)
#define nc_trace(...) NC_LOG(::cuda_nc::log_level::trace, __VA_ARGS__)

// One warning per process and call site.
#define nc_warn_once(...)                                            \
    do {                                                             \
        static std::atomic<bool> nc_warned_{false};                  \
        if (!nc_warned_.exchange(true, std::memory_order_relaxed)) { \
            nc_warn(__VA_ARGS__);                                    \
        }                                                            \
    } while (0)
