// UCX_CUDA_NC_TRACE=FILE: a timeline of messages, written at exit in the Trace Event Format that
// chrome://tracing and Perfetto open. Times are of the machine's monotonic clock, so that the files
// of processes of one machine can be laid side by side (contrib/timeline.py).
#pragma once

#include <cstdint>
#include <string>

#include "ucs/base/compiler.hpp"
#include "ucs/base/settings.hpp"

namespace cuda_nc {

enum class trace_phase : char { begin = 'b', end = 'e', mark = 'n' };

inline bool tracing() noexcept {
    return CUDA_NC_UNLIKELY(!config().trace.empty());
}

// Thread safe. `name` is kept: a literal. Events of one message have one `id`, also in the process
// at its other end; `value` is shown beside the name ("bytes"), 0: nothing.
void trace_slow(trace_phase phase, const char *name, uint64_t id, uint64_t value) noexcept;

inline void trace_begin(const char *name, uint64_t id, uint64_t bytes = 0) noexcept {
    if (tracing()) {
        trace_slow(trace_phase::begin, name, id, bytes);
    }
}
inline void trace_end(const char *name, uint64_t id) noexcept {
    if (tracing()) {
        trace_slow(trace_phase::end, name, id, 0);
    }
}
inline void trace_mark(const char *name, uint64_t id, uint64_t bytes = 0) noexcept {
    if (tracing()) {
        trace_slow(trace_phase::mark, name, id, bytes);
    }
}

// What the file will hold so far.
std::string format_trace();

// `pattern` with each %p replaced by the process's number; without %p, "a.json" is "a.NUMBER.json",
// but a device or a pipe is what it is.
std::string trace_file(const std::string &pattern);

}  // namespace cuda_nc
