// A timeline of messages, for whoever asks for it:
// - UCX_CUDA_NC_TRACE=FILE: a file in the Trace Event Format, written at exit, which
//   chrome://tracing and Perfetto open. Times are of the machine's monotonic clock, so that files
//   of several processes of one machine can be laid side by side (contrib/timeline.py).
// - A tool that listens to NVTX, such as Nsight Systems (nvtx.hpp).
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "ucs/base/compiler.hpp"

namespace cuda_nc {

enum class trace_phase : char { begin = 'b', end = 'e', mark = 'n' };

enum class trace_state : int { undecided, off, on };
extern std::atomic<trace_state> trace_state_now;

// Decides, at the first event of a process, whether anybody wants events.
bool decide_trace() noexcept;

// While nobody does, this is a load and a branch.
inline bool tracing() noexcept {
    const trace_state state = trace_state_now.load(std::memory_order_relaxed);
    return CUDA_NC_UNLIKELY(state != trace_state::off) &&
           (state == trace_state::on || decide_trace());
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

// A slow step of a process's first messages, such as opening a GPU: the length of its scope.
class trace_span {
  public:
    explicit trace_span(const char *name, uint64_t bytes = 0) noexcept : name_(name) {
        trace_begin(name, 0, bytes);
    }
    ~trace_span() { trace_end(name_, 0); }
    trace_span(const trace_span &) = delete;
    trace_span &operator=(const trace_span &) = delete;

  private:
    const char *const name_;
};

// What the file will hold so far.
std::string format_trace();

// `pattern` with each %p replaced by the process's number; without %p, "a.json" is "a.NUMBER.json",
// but a device or a pipe is what it is.
std::string trace_file(const std::string &pattern);

// For tests, after reload_config_for_test(): decides again. Not thread safe.
void reload_trace_for_test() noexcept;

}  // namespace cuda_nc
