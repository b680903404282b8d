#include "capi/error.hpp"

#include <cstdarg>
#include <cstdio>

namespace cuda_nc::capi {
namespace {

thread_local char text[256] = "";

}  // namespace

ucs_status_t fail(ucs_status_t status, const char *format, ...) noexcept {
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    return status;
}

const char *last_error() noexcept {
    return text;
}

}  // namespace cuda_nc::capi
