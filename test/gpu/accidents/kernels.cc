#include <cstdint>

#include "accidents/driver.hpp"

namespace gpu_test {
namespace {

// No compiler is needed where the test runs. The timer counts nanoseconds.
constexpr const char *source = R"(
.version 6.0
.target sm_60
.address_size 64
.visible .entry spin(.param .u64 nanoseconds)
{
    .reg .pred %p;
    .reg .u64 %limit, %begin, %now;
    ld.param.u64 %limit, [nanoseconds];
    mov.u64 %begin, %globaltimer;
again:
    mov.u64 %now, %globaltimer;
    sub.u64 %now, %now, %begin;
    setp.lt.u64 %p, %now, %limit;
    @%p bra again;
    ret;
}
.visible .entry fault()
{
    trap;
    ret;
}
)";

void launch(const char *name, void **arguments) {
    CUmodule module;
    CUfunction kernel;
    CUstream stream;
    DRIVER_CALL(cuModuleLoadData, &module, source);
    DRIVER_CALL(cuModuleGetFunction, &kernel, module, name);
    DRIVER_CALL(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    DRIVER_CALL(cuLaunchKernel, kernel, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr);
}

}  // namespace

void launch_spin(unsigned milliseconds) {
    uint64_t nanoseconds = uint64_t{milliseconds} * 1000000;
    void *arguments[] = {&nanoseconds};
    launch("spin", arguments);
}

void launch_trap() {
    launch("fault", nullptr);
}

}  // namespace gpu_test
