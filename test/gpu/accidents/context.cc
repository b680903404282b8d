#include <unistd.h>

#include <cstdio>

#include "accidents/cases.hpp"

namespace gpu_test {
namespace {

int run_until_lost(const case_options &options, void (*lose)()) {
    auto where = open_kind("malloc", options.rank);
    int wrong = 0;
    int number = 0;
    try {
        strided buffer(*where, options.bytes);
        for (; number < options.count; ++number) {
            if (number == options.count / 2 && options.rank == 1) {
                lose();
            }
            wrong += exchange(buffer, options, number);
        }
    } catch (const std::exception &error) {
        std::printf("rank %d: after %d messages: %s\n", options.rank, number, error.what());
    }
    std::fflush(stdout);
    if (wrong == 0) {
        // What MPI_Finalize does with a peer that is lost is not the matter here.
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
    return wrong;
}

}  // namespace

int run_reset(const case_options &options) {
    return run_until_lost(options, [] {
        CUdevice device;
        DRIVER_CALL(cuCtxGetDevice, &device);
        DRIVER_CALL(cuDevicePrimaryCtxReset, device);
    });
}

int run_trap(const case_options &options) {
    return run_until_lost(options, launch_trap);
}

int run_exit(const case_options &options) {
    auto where = open_kind(options.kind, options.rank);
    strided buffer(*where, options.bytes);
    int wrong = exchange_all(buffer, options);
    if (options.kind != "sim") {
        launch_spin(3000);
    }
    // A send that the peer receives while this process ends.
    MPI_Request request;
    MPI_Irecv(&wrong, 0, MPI_BYTE, 1 - options.rank, 2, MPI_COMM_WORLD, &request);
    MPI_Send(&wrong, 0, MPI_BYTE, 1 - options.rank, 2, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    return wrong;
}

}  // namespace gpu_test
