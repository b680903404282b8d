// What kernels of the application lose while messages pass through their GPUs, and what the
// messages lose: 64 MiB from rank 0 to rank 1, two at a time, contiguous and as a vector of blocks
// of 64 bytes, beside a kernel that copies memory and one that computes, both of many short blocks
// of threads.
//
//     nvcc -std=c++17 -O2 -arch=native -Isrc -ccbin mpicxx -o beside bench/beside.cu
//     mpirun -np 2 ./beside [MEGABYTES [BLOCK]]
//
// Times are medians of batches. `loss` is of the kernel; `taken` what the message's own bytes are
// of the memory bandwidth that the copying kernel reaches alone, counted once at the sender (read)
// and three times at the receiver of a pipe (into the ring, out of it, to their places).
#include <cuda_runtime.h>
#include <mpi.h>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "tools/perftest/support/statistics.hpp"

namespace {

constexpr int window = 2, kernels = 40, batches = 5;
constexpr size_t copied = size_t{512} << 20;  // bytes of one copying kernel

void check(cudaError_t result, const char *what) {
    if (result != cudaSuccess) {
        std::printf("%s: %s\n", what, cudaGetErrorString(result));
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

__global__ void copy_memory(const uint4 *from, uint4 *to, size_t quads) {
    size_t i = blockIdx.x * size_t{blockDim.x} * 4 + threadIdx.x;
    uint4 value[4];
    for (int k = 0; k < 4; ++k) {
        size_t at = i + k * blockDim.x;
        value[k] = at < quads ? from[at] : uint4{};
    }
    for (int k = 0; k < 4; ++k) {
        size_t at = i + k * blockDim.x;
        if (at < quads) {
            to[at] = value[k];
        }
    }
}

__global__ void compute(float *out, int rounds) {
    float a = threadIdx.x, b = 1.0001f, c = 0.5f, d = 0.25f;
    for (int i = 0; i < rounds; ++i) {
        a = a * b + c;
        c = c * b + d;
        d = d * b + a;
    }
    if (a + c + d == 12345.678f) {
        *out = a;
    }
}

struct gpu {
    cudaStream_t stream;
    cudaEvent_t begin, end;
    uint4 *from, *to;
    int sms;

    void start(bool copies) {
        check(cudaEventRecord(begin, stream), "event");
        for (int i = 0; i < kernels; ++i) {
            if (copies) {
                constexpr size_t quads = copied / sizeof(uint4);
                copy_memory<<<quads / 1024, 256, 0, stream>>>(from, to, quads);
            } else {
                compute<<<sms * 8 * 16, 256, 0, stream>>>(reinterpret_cast<float *>(to), 2500);
            }
        }
        check(cudaGetLastError(), "launch");
        check(cudaEventRecord(end, stream), "event");
    }
    bool done() { return cudaEventQuery(end) == cudaSuccess; }
    double milliseconds() {
        float time = 0;
        check(cudaEventSynchronize(end), "kernels");
        check(cudaEventElapsedTime(&time, begin, end), "time");
        return time / kernels;
    }
};

struct messages {
    int rank;
    char *data[window];
    size_t bytes;
    MPI_Datatype type;
    int count;

    void once() {
        MPI_Request requests[window];
        for (int i = 0; i < window; ++i) {
            if (rank == 0) {
                MPI_Isend(data[i], count, type, 1, 0, MPI_COMM_WORLD, &requests[i]);
            } else {
                MPI_Irecv(data[i], count, type, 0, 0, MPI_COMM_WORLD, &requests[i]);
            }
        }
        MPI_Waitall(window, requests, MPI_STATUSES_IGNORE);
    }
    // GB/s of `times` windows; of those alone that end before the kernels do, where there are some.
    double run(int times, gpu *beside) {
        auto start = std::chrono::steady_clock::now();
        double rate = 0;
        for (int i = 0; i < times; ++i) {
            once();
            std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
            if (beside == nullptr || i == 0 || !beside->done()) {
                rate = static_cast<double>(bytes) * window * (i + 1) / took.count() / 1e9;
            }
        }
        return rate;
    }
};

using cuda_nc::tools::median_of;

void measure(const char *what, messages &pair, gpu &own, bool copies) {
    std::vector<double> alone, beside, quiet, loud;
    for (int batch = 0; batch < batches; ++batch) {
        quiet.push_back(pair.run(20, nullptr));
        MPI_Barrier(MPI_COMM_WORLD);
        own.start(copies);
        alone.push_back(own.milliseconds());
        MPI_Barrier(MPI_COMM_WORLD);
        // Longer than the kernels, and as often on both ranks.
        double seconds = 2.0 * kernels * alone.back() / 1e3;
        int times = static_cast<int>(seconds * quiet.back() * 1e9 / pair.bytes / window) + 2;
        MPI_Bcast(&times, 1, MPI_INT, 0, MPI_COMM_WORLD);
        own.start(copies);
        loud.push_back(pair.run(times, &own));
        beside.push_back(own.milliseconds());
        MPI_Barrier(MPI_COMM_WORLD);
    }
    double loss = median_of(beside) / median_of(alone) - 1;
    double own_rate = 2.0 * copied / (median_of(alone) * 1e-3) / 1e9;  // read and written
    for (int rank = 0; rank < 2; ++rank) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == pair.rank) {
            std::printf(
                "%-13s %-7s %-8s kernel %.3f ms alone, %.3f beside: loss %.1f %%; messages %.0f "
                "GB/s alone, %.0f beside",
                what, copies ? "copy" : "compute", rank == 0 ? "sender" : "receiver",
                median_of(alone), median_of(beside), 100 * loss, median_of(quiet), median_of(loud));
            if (copies) {
                std::printf("; taken %.1f %%, three times %.1f %%",
                            100 * median_of(loud) / own_rate, 300 * median_of(loud) / own_rate);
            }
            std::printf("\n");
            std::fflush(stdout);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

}  // namespace

int main(int argc, char **argv) {
    size_t megabytes = 64;
    int block = 64;
    CLI::App app("Messages beside kernels of the application: mpirun -np 2 beside", "beside");
    app.add_option("MEGABYTES", megabytes, "Size of a message")->capture_default_str();
    app.add_option("BLOCK", block, "Bytes of a block of the derived datatype")
        ->capture_default_str();
    CLI11_PARSE(app, argc, argv);
    MPI_Init(&argc, &argv);
    messages pair = {};
    MPI_Comm_rank(MPI_COMM_WORLD, &pair.rank);
    int devices = 0;
    check(cudaGetDeviceCount(&devices), "cudaGetDeviceCount");
    check(cudaSetDevice(pair.rank % devices), "cudaSetDevice");
    pair.bytes = megabytes << 20;
    gpu own = {};
    check(cudaDeviceGetAttribute(&own.sms, cudaDevAttrMultiProcessorCount, pair.rank % devices),
          "processors");
    check(cudaStreamCreateWithFlags(&own.stream, cudaStreamNonBlocking), "stream");
    check(cudaEventCreate(&own.begin), "event");
    check(cudaEventCreate(&own.end), "event");
    check(cudaMalloc(&own.from, copied), "cudaMalloc");
    check(cudaMalloc(&own.to, copied), "cudaMalloc");
    for (char *&data : pair.data) {
        check(cudaMalloc(&data, pair.bytes * 2), "cudaMalloc");
        check(cudaMemset(data, 1, pair.bytes * 2), "cudaMemset");
    }
    const std::string blocks = std::to_string(block) + " B blocks";
    MPI_Datatype vector;
    MPI_Type_vector(static_cast<int>(pair.bytes / block), block, 2 * block, MPI_BYTE, &vector);
    MPI_Type_commit(&vector);
    for (bool derived : {false, true}) {
        pair.type = derived ? vector : MPI_BYTE;
        pair.count = derived ? 1 : static_cast<int>(pair.bytes);
        pair.run(20, nullptr);  // warm
        for (bool copies : {true, false}) {
            measure(derived ? blocks.c_str() : "contiguous", pair, own, copies);
        }
    }
    MPI_Type_free(&vector);
    MPI_Finalize();
    return 0;
}
