#include <algorithm>
#include <vector>

#include "guards/guards.hpp"

namespace mpi_test {
namespace {

constexpr int block = 8, tag = 5, never_sent = 77;

class strided_buffer {
  public:
    strided_buffer(memory &where, int blocks)
        : where_(where), size_(static_cast<size_t>(blocks) * 2 * block) {
        address_ = static_cast<char *>(where.allocate(size_));
        MPI_Type_vector(blocks, block, 2 * block, MPI_BYTE, &type_);
        MPI_Type_commit(&type_);
    }
    ~strided_buffer() {
        MPI_Type_free(&type_);
        where_.release(address_);
    }
    strided_buffer(const strided_buffer &) = delete;
    strided_buffer &operator=(const strided_buffer &) = delete;

    void *address() const { return address_; }
    MPI_Datatype type() const { return type_; }
    void fill(char with) { where_.copy(address_, std::vector<char>(size_, with).data(), size_); }
    // Whether the blocks hold `in`, and the gaps `between`.
    bool holds(char in, char between) const {
        std::vector<char> seen(size_);
        where_.copy(seen.data(), address_, size_);
        for (size_t i = 0; i < size_; ++i) {
            if (seen[i] != (i % (2 * block) < block ? in : between)) {
                return false;
            }
        }
        return true;
    }

  private:
    memory &where_;
    const size_t size_;
    char *address_;
    MPI_Datatype type_;
};

// One message at a time from rank 0 to rank 1. Tells the median of what they take. Returns how many
// were wrong there.
int send(strided_buffer &buffer, const guard_options &options, int number, const char *name) {
    int wrong = 0;
    std::vector<double> seconds;
    for (int i = 0; i < number; ++i) {
        const char bytes = static_cast<char>('A' + i % 26);
        buffer.fill(options.rank == 0 ? bytes : '.');
        MPI_Barrier(MPI_COMM_WORLD);
        const double begin = MPI_Wtime();
        if (options.rank == 0) {
            MPI_Send(buffer.address(), 1, buffer.type(), 1, tag, MPI_COMM_WORLD);
        } else {
            MPI_Recv(buffer.address(), 1, buffer.type(), 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        seconds.push_back(MPI_Wtime() - begin);
        if (options.rank == 1 && !buffer.holds(bytes, '.')) {
            std::printf("WRONG message %d %s\n", i, name);
            ++wrong;
        }
    }
    std::nth_element(seconds.begin(), seconds.begin() + number / 2, seconds.end());
    tell(options, name, seconds[static_cast<size_t>(number) / 2] * 1e6);
    return wrong;
}

void cancel(strided_buffer &buffer, const guard_options &options, int number) {
    const int source = options.any ? MPI_ANY_SOURCE : 1 - options.rank;
    for (int i = 0; i < number; ++i) {
        MPI_Request request;
        MPI_Irecv(buffer.address(), 1, buffer.type(), source, never_sent, MPI_COMM_WORLD, &request);
        MPI_Cancel(&request);
        MPI_Status status;
        MPI_Wait(&request, &status);
        int cancelled = 0;
        MPI_Test_cancelled(&status, &cancelled);
        if (cancelled == 0) {
            std::printf("WRONG receive %d was not cancelled\n", i);
        }
    }
}

}  // namespace

int run_cancels(memory &where, const guard_options &options) {
    constexpr int messages = 200;
    strided_buffer buffer(where, options.blocks);
    int wrong = send(buffer, options, messages, "us-before");
    cancel(buffer, options, options.count / 10);  // pools reach their size
    growth grown;
    cancel(buffer, options, options.count);
    tell(options, "bytes-per-cancel", grown.bytes() / options.count);
    return wrong + send(buffer, options, messages, "us-after");
}

}  // namespace mpi_test
