// Why the calling thread's last call of the C API failed.
#pragma once

#include <ucs/type/status.h>

#include <new>

namespace cuda_nc::capi {

// Notes the sentence, which begins with the parameter at fault ("stride: ..."), and returns
// `status`.
[[gnu::format(printf, 2, 3)]] ucs_status_t fail(ucs_status_t status, const char *format,
                                                ...) noexcept;

// Never null.
const char *last_error() noexcept;

// A C entry point: `call` returns a status and may throw.
template <typename Call>
ucs_status_t guarded(Call &&call) noexcept {
    try {
        return call();
    } catch (const std::bad_alloc &) {
        return fail(UCS_ERR_NO_MEMORY, "out of memory");
    } catch (...) {
        return fail(UCS_ERR_IO_ERROR, "an internal error");
    }
}

}  // namespace cuda_nc::capi
