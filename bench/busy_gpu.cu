// A transfer into a GPU that is busy: while messages of 64-byte blocks go from one GPU to another,
// a kernel of the application fills the receiver's GPU for 100 ms. Every byte and gap is checked;
// prints the half round trip before, the longest one meanwhile, and the one afterwards.
//
//     nvcc -std=c++17 -O2 -arch=native -Isrc -ccbin mpicxx -o busy_gpu bench/busy_gpu.cu
//     mpirun -np 2 ./busy_gpu [MEGABYTES]
//
// Exit status 1: a wrong byte, or slower than 1.5 times as before, afterwards.
#include <cuda_runtime.h>
#include <mpi.h>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "tools/perftest/support/statistics.hpp"

namespace {

constexpr int block = 64, stride = 128, rounds = 30;

void check(cudaError_t result, const char *what) {
    if (result != cudaSuccess) {
        std::printf("%s: %s\n", what, cudaGetErrorString(result));
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

// Bounded by its clock: ends after `cycles` whatever happens.
__global__ void occupy(long long cycles) {
    long long start = clock64();
    while (clock64() - start < cycles) {
    }
}

__global__ void fill(unsigned char *data, size_t size, unsigned seed) {
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < size;
         i += size_t(gridDim.x) * blockDim.x) {
        data[i] = i % stride < block ? static_cast<unsigned char>(i * 7 + seed + (i >> 13)) : 0xa5;
    }
}

__global__ void compare(const unsigned char *data, size_t size, unsigned seed, unsigned *wrong) {
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < size;
         i += size_t(gridDim.x) * blockDim.x) {
        unsigned char right =
            i % stride < block ? static_cast<unsigned char>(i * 7 + seed + (i >> 13)) : 0xa5;
        if (data[i] != right) {
            atomicAdd(wrong, 1);
        }
    }
}

struct exchange {
    int rank;
    unsigned char *data;
    size_t size;
    MPI_Datatype type;
    cudaStream_t stream;
    unsigned *wrong;  // pinned
    unsigned seed = 0;

    // Microseconds of half a round trip; the bytes are those that rank 0 made.
    double once() {
        if (rank == 0) {
            fill<<<256, 256, 0, stream>>>(data, size, ++seed);
            check(cudaStreamSynchronize(stream), "fill");
        }
        auto start = std::chrono::steady_clock::now();
        if (rank == 0) {
            MPI_Send(data, 1, type, 1, 0, MPI_COMM_WORLD);
            MPI_Recv(data, 1, type, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(data, 1, type, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(data, 1, type, 0, 0, MPI_COMM_WORLD);
        }
        std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
        if (rank == 0) {
            compare<<<256, 256, 0, stream>>>(data, size, seed, wrong);
            check(cudaStreamSynchronize(stream), "compare");
        }
        return took.count() / 2;
    }

    double median() {
        std::vector<double> times;
        for (int i = 0; i < rounds; ++i) {
            times.push_back(once());
        }
        return cuda_nc::tools::median_of(times);
    }
};

}  // namespace

int main(int argc, char **argv) {
    size_t megabytes = 16;
    CLI::App app("Messages into a GPU that is busy: mpirun -np 2 busy_gpu", "busy_gpu");
    app.add_option("MEGABYTES", megabytes, "Size of a message")->capture_default_str();
    CLI11_PARSE(app, argc, argv);
    MPI_Init(&argc, &argv);
    exchange pair = {};
    MPI_Comm_rank(MPI_COMM_WORLD, &pair.rank);
    size_t bytes = megabytes << 20;
    int devices = 0, khz = 0, sms = 0;
    check(cudaGetDeviceCount(&devices), "cudaGetDeviceCount");
    int device = pair.rank % devices;
    check(cudaSetDevice(device), "cudaSetDevice");
    check(cudaDeviceGetAttribute(&khz, cudaDevAttrClockRate, device), "clock rate");
    check(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device), "processors");
    pair.size = bytes * (stride / block);
    check(cudaMalloc(&pair.data, pair.size), "cudaMalloc");
    check(cudaMemset(pair.data, 0xa5, pair.size), "cudaMemset");
    check(cudaStreamCreateWithFlags(&pair.stream, cudaStreamNonBlocking), "stream");
    check(cudaHostAlloc(&pair.wrong, sizeof(unsigned), cudaHostAllocDefault), "cudaHostAlloc");
    *pair.wrong = 0;
    MPI_Type_vector(static_cast<int>(bytes / block), block, stride, MPI_BYTE, &pair.type);
    MPI_Type_commit(&pair.type);
    cudaStream_t busy;
    check(cudaStreamCreateWithFlags(&busy, cudaStreamNonBlocking), "stream");

    pair.median();  // warm
    double before = pair.median();
    MPI_Barrier(MPI_COMM_WORLD);
    if (pair.rank == 1) {
        occupy<<<sms * 2, 1024, 0, busy>>>(khz * 100ll);
        check(cudaGetLastError(), "occupy");
    }
    double longest = 0;
    for (int i = 0; i < rounds; ++i) {
        longest = std::max(longest, pair.once());
    }
    check(cudaStreamSynchronize(busy), "occupy");
    MPI_Barrier(MPI_COMM_WORLD);
    double after = pair.median();
    int status = 0;
    if (pair.rank == 0) {
        std::printf(
            "%zu bytes: before %.1f us, longest beside the busy kernel %.0f us, after "
            "%.1f us, %u wrong bytes\n",
            bytes, before, longest, after, *pair.wrong);
        status = *pair.wrong != 0 || after > 1.5 * before;
    }
    MPI_Bcast(&status, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Type_free(&pair.type);
    cudaFree(pair.data);
    MPI_Finalize();
    return status;
}
