// A kernel of the application keeps every multiprocessor until bytes have come: contiguous messages
// must not need one. A message of blocks does, and is not sent here.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <thread>

#include "accidents/cases.hpp"
#include "accidents/driver.hpp"

namespace gpu_test {
namespace {

// Runs until the word at `flag` is not 0, and for so many nanoseconds at most.
constexpr const char *source = R"(
.version 6.0
.target sm_60
.address_size 64
.visible .entry hold(.param .u64 flag, .param .u64 nanoseconds)
{
    .reg .pred %p;
    .reg .u32 %word;
    .reg .u64 %flag, %limit, %begin, %now;
    ld.param.u64 %flag, [flag];
    ld.param.u64 %limit, [nanoseconds];
    mov.u64 %begin, %globaltimer;
again:
    ld.volatile.global.u32 %word, [%flag];
    setp.ne.u32 %p, %word, 0;
    @%p bra done;
    mov.u64 %now, %globaltimer;
    sub.u64 %now, %now, %begin;
    setp.lt.u64 %p, %now, %limit;
    @%p bra again;
done:
    ret;
}
)";

constexpr uint64_t longest_hold = 10'000'000'000;  // ns

class holding_kernel {
  public:
    explicit holding_kernel(int rank) {
        const CUdevice device = enter_gpu(rank);
        DRIVER_CALL(cuDeviceGetAttribute, &multiprocessors_,
                    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
        DRIVER_CALL(cuDeviceGetAttribute, &threads_,
                    CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, device);
        CUmodule module;
        DRIVER_CALL(cuModuleLoadData, &module, source);
        DRIVER_CALL(cuModuleGetFunction, &hold_, module, "hold");
        DRIVER_CALL(cuStreamCreate, &stream_, CU_STREAM_NON_BLOCKING);
        DRIVER_CALL(cuMemHostAlloc, reinterpret_cast<void **>(&flag_), sizeof(*flag_), 0u);
    }
    void launch() {
        __atomic_store_n(flag_, 0u, __ATOMIC_SEQ_CST);
        auto flag = reinterpret_cast<uint64_t>(flag_);
        uint64_t limit = longest_hold;
        void *arguments[] = {&flag, &limit};
        constexpr int block = 512;
        const int blocks = multiprocessors_ * (threads_ / block);
        DRIVER_CALL(cuLaunchKernel, hold_, static_cast<unsigned>(blocks), 1, 1, block, 1, 1, 0,
                    stream_, arguments, nullptr);
    }
    bool runs() const { return DRIVER_FUNCTION(cuStreamQuery)(stream_) == CUDA_ERROR_NOT_READY; }
    void end() {
        __atomic_store_n(flag_, 1u, __ATOMIC_SEQ_CST);
        DRIVER_CALL(cuStreamSynchronize, stream_);
    }

  private:
    int multiprocessors_ = 0, threads_ = 0;
    CUfunction hold_ = nullptr;
    CUstream stream_ = nullptr;
    uint32_t *flag_ = nullptr;
};

// To and fro: short ones by MPI_Send too, which is eager.
void exchange(char *from, char *to, int bytes, bool blocking, int peer) {
    MPI_Request requests[2];
    MPI_Irecv(to, bytes, MPI_BYTE, peer, bytes, MPI_COMM_WORLD, &requests[0]);
    if (blocking) {
        MPI_Send(from, bytes, MPI_BYTE, peer, bytes, MPI_COMM_WORLD);
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    } else {
        MPI_Isend(from, bytes, MPI_BYTE, peer, bytes, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
}

}  // namespace

int run_full(const case_options &options) {
    constexpr int longest = 4 << 20;
    constexpr int sizes[] = {1, 64, 4096, 65536, 1 << 20, longest};
    const int peer = 1 - options.rank;
    std::unique_ptr<memory> where = open_kind("malloc", options.rank);
    auto *from = static_cast<char *>(where->allocate(longest));
    auto *to = static_cast<char *>(where->allocate(longest));
    holding_kernel kernel(options.rank);
    double worst = 0;  // seconds
    int wrong = 0;
    for (int round = 0; round < options.count && wrong == 0; ++round) {
        std::vector<char> bytes(longest, static_cast<char>('A' + (round * 2 + options.rank) % 50));
        where->copy(from, bytes.data(), longest);
        // First use of each way may load code, which waits for kernels. Later rounds find the mover
        // on the GPU, or gone.
        for (int i = 0; i < (round == 0 ? 50 : round % 2 * 10); ++i) {
            for (int size : sizes) {
                exchange(from, to, size, false, peer);
                exchange(from, to, size, true, peer);
            }
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(round % 4 < 2 ? 3 : 0));
        MPI_Barrier(MPI_COMM_WORLD);
        kernel.launch();
        const auto begin = std::chrono::steady_clock::now();
        for (int size : sizes) {
            for (int i = 0; i < 5; ++i) {
                exchange(from, to, size, false, peer);
                exchange(from, to, size, true, peer);
            }
        }
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
        worst = std::max(worst, took.count());
        if (!kernel.runs()) {
            std::printf("WRONG messages waited for a kernel that waited for them\n");
            ++wrong;
        }
        kernel.end();
        where->copy(bytes.data(), to, longest);
        const char expected = static_cast<char>('A' + (round * 2 + peer) % 50);
        for (char one : bytes) {
            if (one != expected) {
                std::printf("WRONG bytes in round %d\n", round);
                ++wrong;
                break;
            }
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    std::printf("rank %d: the longest round beside a kernel that fills the GPU: %.1f ms\n",
                options.rank, worst * 1e3);
    where->release(from);
    where->release(to);
    return wrong;
}

}  // namespace gpu_test
