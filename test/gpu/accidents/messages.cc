#include <cstdio>
#include <set>

#include "accidents/cases.hpp"

namespace gpu_test {

int run_messages(const case_options &options) {
    auto where = open_kind(options.kind, options.rank);
    strided buffer(*where, options.bytes);
    return exchange_all(buffer, options);
}

int run_reuse(const case_options &options) {
    // Below a block of 2 MiB, as long as one, and across some.
    constexpr size_t mebibyte = 1 << 20;
    const size_t sizes[] = {64 << 10, mebibyte, 2 * mebibyte, 3 * mebibyte, 5 * mebibyte};
    auto where = open_kind(options.kind, options.rank);
    std::set<char *> places;
    int wrong = 0;
    int again = 0;
    for (int number = 0; number < options.count; ++number) {
        // The same size several times, so that the same address comes again; then another.
        strided buffer(*where, sizes[number / 8 % 5]);
        again += !places.insert(buffer.address()).second;
        wrong += exchange(buffer, options, number);
    }
    std::printf("rank %d: %d of %d allocations at an address that was freed before\n", options.rank,
                again, options.count);
    return wrong;
}

int run_open(const case_options &options) {
    auto where = open_kind("malloc", options.rank);
    int wrong = 0;
    for (int number = 0; number < options.count; ++number) {
        strided buffer(*where, options.bytes);
        CUipcMemHandle mine, theirs;
        DRIVER_CALL(cuIpcGetMemHandle, &mine, reinterpret_cast<CUdeviceptr>(buffer.address()));
        const int peer = 1 - options.rank;
        MPI_Sendrecv(&mine, sizeof(mine), MPI_BYTE, peer, 3, &theirs, sizeof(theirs), MPI_BYTE,
                     peer, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (number % 3 == 0) {
            wrong += exchange(buffer, options, number);  // ours has it mapped first
        }
        CUdeviceptr mapped = 0;
        // Calls that the product does not watch: this program found the function by itself.
        const CUresult opened = DRIVER_FUNCTION(cuIpcOpenMemHandle)(
            &mapped, theirs, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
        if (opened != CUDA_SUCCESS && opened != CUDA_ERROR_ALREADY_MAPPED) {
            std::printf("WRONG cuIpcOpenMemHandle: %d\n", opened);
            ++wrong;
        }
        wrong += exchange(buffer, options, number);
        MPI_Barrier(MPI_COMM_WORLD);
        if (opened == CUDA_SUCCESS) {
            DRIVER_CALL(cuIpcCloseMemHandle, mapped);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        wrong += exchange(buffer, options, number + 1);
    }
    return wrong;
}

}  // namespace gpu_test
