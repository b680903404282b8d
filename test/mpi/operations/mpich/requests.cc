// What users may do with MPI's requests, and errors that they ask to be told of, with buffers in
// GPU memory: as with any MPI.
//
// requests SUBTEST: freed | status | status_by_threads | status_beside_wait | failed_send |
//                   failed_receive | cancelled_thread
#include <mpi.h>
#include <pthread.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "support/memory.hpp"

using namespace mpi_test;

namespace {

constexpr int length = 1 << 20, tag = 4;
int rank, failures;
std::unique_ptr<memory> gpu;

void expect(bool right, const char *what) {
    if (!right) {
        std::printf("FAIL: rank %d: %s\n", rank, what);
        ++failures;
    }
}

std::vector<int> values(int first, int number = length) {
    std::vector<int> made(static_cast<size_t>(number));
    for (int &one : made) {
        one = first++;
    }
    return made;
}

class gpu_ints {
  public:
    gpu_ints(int first, int number = length) : bytes_(sizeof(int) * static_cast<size_t>(number)) {
        start_ = gpu->allocate(bytes_);
        gpu->copy(start_, values(first, number).data(), bytes_);
    }
    ~gpu_ints() { gpu->release(start_); }
    void *start() const { return start_; }
    std::vector<int> read() const {
        std::vector<int> made(bytes_ / sizeof(int));
        gpu->copy(made.data(), start_, bytes_);
        return made;
    }

  private:
    size_t bytes_;
    void *start_;
};

// A request that is freed is still a message.
void freed() {
    gpu_ints from(1), to(2), other(3);
    std::vector<int> got(length);
    MPI_Request request;
    MPI_Isend(from.start(), length, MPI_INT, rank, tag, MPI_COMM_WORLD, &request);
    MPI_Request_free(&request);
    expect(request == MPI_REQUEST_NULL, "the request is null");
    for (int i = 0; i < 3; ++i) {  // take the memory that the send may have given back
        MPI_Isend(other.start(), length, MPI_INT, rank, tag + 1, MPI_COMM_WORLD, &request);
        MPI_Recv(got.data(), length, MPI_INT, rank, tag + 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Recv(got.data(), length, MPI_INT, rank, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    expect(got == values(1), "freed send");
    MPI_Irecv(to.start(), length, MPI_INT, rank, tag, MPI_COMM_WORLD, &request);
    MPI_Request_free(&request);
    MPI_Send(got.data(), length, MPI_INT, rank, tag, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, got.data(), 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    expect(to.read() == values(1), "freed receive");
    // one that never matches does not keep MPI_Finalize
    MPI_Irecv(to.start(), length, MPI_INT, rank, tag + 7, MPI_COMM_WORLD, &request);
    MPI_Request_free(&request);
}

void status() {
    gpu_ints from(rank), to(0);
    MPI_Request request;
    int flag = 0;
    MPI_Iallreduce(from.start(), to.start(), length, MPI_INT, MPI_MAX, MPI_COMM_WORLD, &request);
    while (flag == 0) {
        MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE);
    }
    int size;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    expect(to.read() == values(size - 1), "Iallreduce");
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect(request == MPI_REQUEST_NULL, "the request is null");
}

// Of one request at once.
void status_by_threads() {
    for (int i = 0; i < 20; ++i) {
        gpu_ints from(rank + i), to(0);
        MPI_Request request;
        std::vector<std::thread> threads;
        MPI_Iallreduce(from.start(), to.start(), length, MPI_INT, MPI_MIN, MPI_COMM_WORLD,
                       &request);
        auto ask = [request] {
            int flag = 0;
            while (flag == 0) {
                MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE);
            }
        };
        for (int thread = 0; thread < 3; ++thread) {
            threads.emplace_back(ask);
        }
        ask();
        expect(to.read() == values(i), "Iallreduce");
        for (std::thread &thread : threads) {
            thread.join();
        }
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        expect(request == MPI_REQUEST_NULL, "the request is null");
    }
}

// Of a request that another thread waits for, with one that needs what the asking thread does next.
void status_beside_wait() {
    int size;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const int peer = size - 1 - rank;
    for (int i = 0; i < 20; ++i) {
        gpu_ints from(rank + i), to(0);
        int got = 0;
        MPI_Request requests[2];
        MPI_Iallreduce(from.start(), to.start(), length, MPI_INT, MPI_MIN, MPI_COMM_WORLD,
                       &requests[0]);
        MPI_Irecv(&got, 1, MPI_INT, peer, tag, MPI_COMM_WORLD, &requests[1]);
        std::thread asks([request = requests[0], i, peer] {
            int flag = 0;
            while (flag == 0) {
                MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE);
            }
            MPI_Send(&i, 1, MPI_INT, peer, tag, MPI_COMM_WORLD);
        });
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        expect(got == i && to.read() == values(i), "Iallreduce");
        asks.join();
    }
}

// No rank has this number: the receive must not be left behind.
void failed_send() {
    gpu_ints to(5);
    const std::vector<int> sent = values(9);
    std::vector<int> got(length);
    MPI_Request request;
    int error = MPI_Isendrecv(sent.data(), length, MPI_INT, 99, tag, to.start(), length, MPI_INT,
                              rank, tag, MPI_COMM_WORLD, &request);
    expect(error != MPI_SUCCESS, "an error");
    MPI_Irecv(got.data(), length, MPI_INT, rank, tag, MPI_COMM_WORLD, &request);
    MPI_Send(sent.data(), length, MPI_INT, rank, tag, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect(got == sent, "the next message");
    expect(to.read() == values(5), "the buffer of the call that failed");
}

// The other rank sends too much, and is slow to receive.
void failed_receive() {
    const int peer = 1 - rank;
    std::vector<int> got(length);
    if (rank == 0) {
        gpu_ints buffer(5);
        MPI_Request request;
        MPI_Isendrecv_replace(buffer.start(), length, MPI_INT, peer, tag, peer, tag, MPI_COMM_WORLD,
                              &request);
        expect(MPI_Wait(&request, MPI_STATUS_IGNORE) != MPI_SUCCESS, "an error");
        // takes the memory that the send may have given back
        const std::vector<int> other = values(-9);
        expect(other.back() == length - 10, "values");
    } else {
        const std::vector<int> sent = values(9, 2 * length);
        MPI_Request request;
        MPI_Isend(sent.data(), 2 * length, MPI_INT, peer, tag, MPI_COMM_WORLD, &request);
        const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(500);
        int flag = 0;
        while (std::chrono::steady_clock::now() < end) {
            MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE);
        }
        MPI_Recv(got.data(), length, MPI_INT, peer, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        expect(got == values(5), "what was sent by the call that failed");
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

// A tool's MPI_Recv (tool.c) is where this thread ends.
void cancelled_thread() {
    pthread_t thread;
    void *result = nullptr;
    pthread_create(
        &thread, nullptr,
        [](void *) -> void * {
            int word = 0;
            pthread_cancel(pthread_self());
            MPI_Recv(&word, 1, MPI_INT, rank, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            return nullptr;
        },
        nullptr);
    pthread_join(thread, &result);
    expect(result == PTHREAD_CANCELED, "the thread ended in MPI_Recv");
}

}  // namespace

int main(int argc, char **argv) {
    const std::string wanted = argc > 1 ? argv[1] : "";
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    gpu = open_memory("sim", rank);
    const struct {
        const char *name;
        void (*run)();
    } subtests[] = {{"freed", freed},
                    {"status", status},
                    {"status_by_threads", status_by_threads},
                    {"status_beside_wait", status_beside_wait},
                    {"failed_send", failed_send},
                    {"failed_receive", failed_receive},
                    {"cancelled_thread", cancelled_thread}};
    for (const auto &one : subtests) {
        if (wanted == one.name) {
            one.run();
            std::printf("%s %s\n", failures == 0 ? "PASS" : "FAIL", one.name);
        }
    }
    MPI_Finalize();
    return failures != 0;
}
