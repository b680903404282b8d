// MPI_THREAD_MULTIPLE: four threads of each rank, each with its tag, over types of their own and
// over shared ones.
#include <atomic>
#include <thread>
#include <vector>

#include "operations/exchange.hpp"

namespace mpi_test {
namespace {

constexpr int num_threads = 4;

void exchange_with(harness &t, const made_type &type, int tag, uint64_t number,
                   std::atomic<int> &wrong) {
    typed_buffer out(t.device(), type, 1, key_of(t.rank(), number)), in(t.device(), type, 1, 7);
    MPI_Request requests[2];
    MPI_Irecv(in.address(), 1, type.handle(), t.peer(), tag, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out.address(), 1, type.handle(), t.peer(), tag, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    in.expect(packed_content(in.map(), key_of(t.peer(), number)));
    wrong += in.right() && out.right() ? 0 : 1;
}

void four_threads(harness &t) {
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int tag = 0; tag < num_threads; ++tag) {
        threads.emplace_back([&t, &wrong, tag] {
            for (int i = 0; i < 24; ++i) {
                auto number = static_cast<uint64_t>(1000 * tag + i);
                made_type own = sample_type((tag + i) % num_shapes, i % 4 == 0 ? 100000 : 500);
                exchange_with(t, own, tag, number, wrong);
                const std::vector<sample> &shared = few_samples();
                exchange_with(t, shared[number % shared.size()].type, tag, number, wrong);
            }
        });
    }
    for (std::thread &thread : threads) {
        thread.join();
    }
    t.expect(wrong == 0, std::to_string(wrong) + " messages of threads");
}

void packing_threads(harness &t) {
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int number = 0; number < num_threads; ++number) {
        threads.emplace_back([&t, &wrong, number] {
            for (const sample &s : samples()) {
                typed_buffer from(t.device(), s.type, s.count, key_of(number, 1));
                typed_buffer to(t.device(), s.type, s.count, 7);
                std::vector<char> packed(static_cast<size_t>(from.size()) + 1);
                int position = 0;
                auto size = static_cast<int>(from.size());
                MPI_Pack(from.address(), s.count, s.type.handle(), packed.data(), size, &position,
                         MPI_COMM_WORLD);
                position = 0;
                MPI_Unpack(packed.data(), size, &position, to.address(), s.count, s.type.handle(),
                           MPI_COMM_WORLD);
                to.expect(from.packed());
                wrong += to.right() ? 0 : 1;
            }
        });
    }
    for (std::thread &thread : threads) {
        thread.join();
    }
    t.expect(wrong == 0, std::to_string(wrong) + " buffers of threads");
}

const registration tests[] = {{"four_threads", four_threads, subtest::kind::threads},
                              {"packing_threads", packing_threads, subtest::kind::threads}};

}  // namespace
}  // namespace mpi_test
