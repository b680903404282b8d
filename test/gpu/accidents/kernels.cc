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

CUfunction load(const char *name) {
    CUmodule module;
    CUfunction kernel;
    DRIVER_CALL(cuModuleLoadData, &module, source);
    DRIVER_CALL(cuModuleGetFunction, &kernel, module, name);
    return kernel;
}

CUstream make_stream() {
    CUstream stream;
    DRIVER_CALL(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    return stream;
}

void launch(const char *name, void **arguments) {
    CUfunction kernel = load(name);
    CUstream stream = make_stream();
    DRIVER_CALL(cuLaunchKernel, kernel, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr);
}

}  // namespace

computation::computation() : kernel_(load("spin")), stream_(make_stream()) {}

void computation::launch(std::chrono::nanoseconds length, CUstream stream) {
    auto nanoseconds = static_cast<uint64_t>(length.count());
    void *arguments[] = {&nanoseconds};
    constexpr unsigned blocks = 264, threads = 256;  // two for each multiprocessor of an H200
    DRIVER_CALL(cuLaunchKernel, kernel_, blocks, 1, 1, threads, 1, 1, 0, stream, arguments,
                nullptr);
}

void launch_spin(unsigned milliseconds) {
    uint64_t nanoseconds = uint64_t{milliseconds} * 1000000;
    void *arguments[] = {&nanoseconds};
    launch("spin", arguments);
}

void launch_trap() {
    launch("fault", nullptr);
}

}  // namespace gpu_test
