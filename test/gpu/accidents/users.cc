// Other users of CUDA IPC beside ours: UCX, which moves contiguous messages, and NCCL.
#include <cstdio>

#include "accidents/cases.hpp"

namespace gpu_test {
namespace {

// As nccl.h has them.
struct nccl_id {
    char bytes[128];
};
using nccl_comm = void *;
constexpr int nccl_int8 = 0;

template <typename function>
function find_nccl(const char *name) {
    static void *library = dlopen("libnccl.so.2", RTLD_NOW);
    void *found = library != nullptr ? dlsym(library, name) : nullptr;
    if (found == nullptr) {
        throw skipped("no libnccl.so.2 is here");
    }
    return reinterpret_cast<function>(found);
}

void must(int result, const char *what) {
    if (result != 0) {
        throw std::runtime_error(std::string(what) + " failed: " + std::to_string(result));
    }
}

// Rank 0's bytes go to rank 1.
int move_by_nccl(memory &where, const case_options &options) {
    nccl_id id = {};
    if (options.rank == 0) {
        must(find_nccl<int (*)(nccl_id *)>("ncclGetUniqueId")(&id), "ncclGetUniqueId");
    }
    MPI_Bcast(&id, sizeof(id), MPI_BYTE, 0, MPI_COMM_WORLD);
    nccl_comm comm = nullptr;
    must(find_nccl<int (*)(nccl_comm *, int, nccl_id, int)>("ncclCommInitRank")(&comm, 2, id,
                                                                                options.rank),
         "ncclCommInitRank");
    strided buffer(where, options.bytes);
    int wrong = 0;
    for (int number = 0; number < options.count; ++number) {
        const char byte = static_cast<char>('a' + number % 26);
        buffer.fill(options.rank == 0 ? byte : '.');
        const size_t bytes = options.bytes / 128 * 128;
        if (options.rank == 0) {
            must(find_nccl<int (*)(const void *, size_t, int, int, nccl_comm, CUstream)>(
                     "ncclSend")(buffer.address(), bytes, nccl_int8, 1, comm, nullptr),
                 "ncclSend");
        } else {
            must(find_nccl<int (*)(void *, size_t, int, int, nccl_comm, CUstream)>("ncclRecv")(
                     buffer.address(), bytes, nccl_int8, 0, comm, nullptr),
                 "ncclRecv");
        }
        DRIVER_CALL(cuStreamSynchronize, nullptr);
        if (!buffer.holds(byte, byte)) {
            std::printf("WRONG bytes of NCCL, number %d\n", number);
            ++wrong;
        }
        wrong += exchange(buffer, options, number);
    }
    must(find_nccl<int (*)(nccl_comm)>("ncclCommDestroy")(comm), "ncclCommDestroy");
    return wrong;
}

}  // namespace

int run_contiguous(const case_options &options) {
    auto where = open_kind("malloc", options.rank);
    int wrong = 0;
    for (int number = 0; number < options.count; ++number) {
        strided buffer(*where, options.bytes);  // freed and allocated again each time
        wrong += exchange(buffer, options, number);
        const char byte = static_cast<char>('a' + number % 26);
        buffer.fill(options.rank == 0 ? byte : '.');
        const int size = static_cast<int>(options.bytes / 128 * 128);
        if (options.rank == 0) {
            MPI_Send(buffer.address(), size, MPI_BYTE, 1, 4, MPI_COMM_WORLD);
        } else {
            MPI_Recv(buffer.address(), size, MPI_BYTE, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            if (!buffer.holds(byte, byte)) {
                std::printf("WRONG contiguous message %d\n", number);
                ++wrong;
            }
        }
        wrong += exchange(buffer, options, number + 1);
    }
    return wrong;
}

int run_nccl_before(const case_options &options) {
    auto where = open_kind("malloc", options.rank);
    return move_by_nccl(*where, options) + run_messages(options);
}

int run_nccl_after(const case_options &options) {
    auto where = open_kind("malloc", options.rank);
    return run_messages(options) + move_by_nccl(*where, options);
}

}  // namespace gpu_test
