// The accidents. Two ranks; each function is called on both, and returns how many messages were
// wrong there.
#pragma once

#include <mpi.h>

#include <vector>

#include "accidents/kinds.hpp"

namespace gpu_test {

struct case_options {
    int rank = 0;
    int count = 100;
    size_t bytes = 1 << 20;  // of a message's memory; half of it is sent
    std::string kind = "malloc";
};

// Rank 1's context is lost in the middle. Ends by an error of MPI, or by the process's end.
int run_reset(const case_options &options);
int run_trap(const case_options &options);
// Rank 1 ends with kernels running that nobody waits for.
int run_exit(const case_options &options);
// Memory is freed and allocated again for each message.
int run_reuse(const case_options &options);
// A message at a time each way.
int run_messages(const case_options &options);
// A third user of CUDA IPC opens the memory that the messages are in, and closes it.
int run_open(const case_options &options);
// UCX moves contiguous messages of the same memory.
int run_contiguous(const case_options &options);
// Messages while another thread synchronises the device and forks.
int run_guest(const case_options &options);
// Received bytes are used at once, by a kernel, a copy engine and another GPU.
int run_landing(const case_options &options);
// Contiguous messages while a kernel fills the GPU until they have come.
int run_full(const case_options &options);
// First messages, of memory that was allocated before MPI_Init(), by allocate_early(); ...
int run_first_early(const case_options &options);
void allocate_early(int rank);
// ... and after the program has used the GPU and reset it, twice.
int run_first_reset(const case_options &options);
// NCCL is loaded, and moves bytes, before our first message or after it.
int run_nccl_before(const case_options &options);
int run_nccl_after(const case_options &options);

// Blocks of 64 bytes, each 128.
class strided {
  public:
    strided(memory &where, size_t bytes) : where_(where), size_(bytes / 128 * 128) {
        address_ = static_cast<char *>(where.allocate(size_));
        MPI_Type_vector(static_cast<int>(size_ / 128), 64, 128, MPI_BYTE, &type_);
        MPI_Type_commit(&type_);
    }
    ~strided() {
        MPI_Type_free(&type_);
        try {
            where_.release(address_);
        } catch (const std::exception &) {
            // the context is lost
        }
    }
    strided(const strided &) = delete;
    strided &operator=(const strided &) = delete;

    char *address() const { return address_; }
    void fill(char with) {
        std::vector<char> all(size_, with);
        where_.copy(address_, all.data(), size_);
    }
    bool holds(char in, char between) {
        std::vector<char> all(size_);
        where_.copy(all.data(), address_, size_);
        for (size_t i = 0; i < size_; ++i) {
            if (all[i] != (i % 128 < 64 ? in : between)) {
                return false;
            }
        }
        return true;
    }
    int send(int to, int tag) { return MPI_Send(address_, 1, type_, to, tag, MPI_COMM_WORLD); }
    int receive(int from, int tag) {
        return MPI_Recv(address_, 1, type_, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }

  private:
    memory &where_;
    const size_t size_;
    char *address_;
    MPI_Datatype type_;
};

// Message `number` between the ranks, in turns. Returns whether it was wrong; throws where MPI
// reports an error.
inline int exchange(strided &buffer, const case_options &options, int number) {
    const bool sends = number % 2 == options.rank;
    const char bytes = static_cast<char>('A' + number % 26);
    buffer.fill(sends ? bytes : '.');
    const int peer = 1 - options.rank;
    if ((sends ? buffer.send(peer, 1) : buffer.receive(peer, 1)) != MPI_SUCCESS) {
        throw std::runtime_error("MPI reports an error");
    }
    if (!sends && !buffer.holds(bytes, '.')) {
        std::printf("WRONG message %d\n", number);
        return 1;
    }
    return 0;
}

// All messages of the case, one after the other.
inline int exchange_all(strided &buffer, const case_options &options) {
    int wrong = 0;
    for (int number = 0; number < options.count; ++number) {
        wrong += exchange(buffer, options, number);
    }
    return wrong;
}

}  // namespace gpu_test
