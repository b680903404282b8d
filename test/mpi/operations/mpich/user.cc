// A library that uses MPI, loaded when the program runs (late.py).
#include <mpi.h>

#include <cstdio>
#include <vector>

#include "support/memory.hpp"

using namespace mpi_test;

extern "C" int pack_and_reduce() {
    constexpr int length = 1000;
    MPI_Init(nullptr, nullptr);
    simulated_memory gpu;
    std::vector<int> values(length, 3), got(length);
    void *buffer = gpu.allocate(sizeof(int) * length);
    gpu.copy(buffer, values.data(), sizeof(int) * length);
    int position = 0;
    MPI_Pack(buffer, length, MPI_INT, got.data(), int(sizeof(int) * length), &position,
             MPI_COMM_WORLD);
    const bool packed = got == values;
    MPI_Allreduce(MPI_IN_PLACE, buffer, length, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    gpu.copy(got.data(), buffer, sizeof(int) * length);
    const bool reduced = got == values;
    std::printf("%s late\n", packed && reduced ? "PASS" : "FAIL");
    std::fflush(stdout);
    MPI_Finalize();
    return !(packed && reduced);
}
