// Two ranks exchange random nested datatypes of every MPI constructor; the type map of each, made
// by the MPI standard's definitions, says which bytes must arrive and that all others stay.
//
//   mpirun -np 2 random_types COUNT [MEMORY]     MEMORY: host, sim, cuda, or e.g. sim,host
//
// CUDA_NC_TEST_SEED chooses the types. Prints one line of failure for each of the first ten wrong.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "support/memory.hpp"
#include "support/random_type.hpp"

namespace mpi_test {
namespace {

enum class mode { derived_to_derived, derived_to_bytes, bytes_to_derived };

// A buffer of the span of a type map, with bytes around it that nothing may touch.
class span_buffer {
  public:
    static constexpr int64_t margin = 64;

    span_buffer(memory &where, const type_map &map)
        : where_(where), lower_(map.true_lb()), size_(map.true_ub() - map.true_lb() + 2 * margin) {
        address_ = static_cast<char *>(where_.allocate(static_cast<size_t>(size_)));
    }
    ~span_buffer() { where_.release(address_); }
    span_buffer(const span_buffer &) = delete;
    span_buffer &operator=(const span_buffer &) = delete;

    // What MPI gets: the address of displacement 0.
    void *origin() { return address_ + margin - lower_; }
    int64_t to_origin() const { return margin - lower_; }
    std::vector<char> read() {
        std::vector<char> bytes(static_cast<size_t>(size_));
        where_.copy(bytes.data(), address_, bytes.size());
        return bytes;
    }
    void write(const std::vector<char> &bytes) {
        where_.copy(address_, bytes.data(), bytes.size());
    }
    std::vector<char> fill(random_stream random) {
        std::vector<char> bytes(static_cast<size_t>(size_));
        random.fill(bytes.data(), bytes.size());
        write(bytes);
        return bytes;
    }

  private:
    memory &where_;
    char *address_;
    int64_t lower_, size_;
};

bool exchange(memory &chosen, int rank, uint64_t seed, uint64_t number, std::string *text) {
    random_stream random{seed, number};
    random_type_limits limits;
    if (random.one_in(20)) {
        limits.bytes = 512 << 10;
        limits.span = 4 << 20;
    }
    made_type type = random_type(random, limits);
    const int count = static_cast<int>(random.between(0, 7));
    const type_map map = repeated(type.map(), count);
    mode how = static_cast<mode>(random.between(0, 2));
#if OMPI_MAJOR_VERSION < 5
    if (map.overlaps()) {
        return true;  // Open MPI 4.1 takes some of these for contiguous and never asks for packing
    }
#endif
    if (map.overlaps()) {
        how = mode::derived_to_bytes;  // such a type may be sent, not received
    }
    *text = type.text() + " x " + std::to_string(count);
    // UCX itself moves contiguous bytes, and cannot know simulated memory.
    host_memory host;
    memory &where =
        map.is_contiguous() || type.map().is_contiguous() ? static_cast<memory &>(host) : chosen;
    const int peer = 1 - rank, size = static_cast<int>(map.size());
    span_buffer out(where, map), in(where, map);
    std::vector<char> sent =
        out.fill(random_stream{seed, number, 100u + static_cast<unsigned>(rank)});
    std::vector<char> before = in.fill(random_stream{seed, number, 200u});
    // The peer's bytes, as this rank can compute them.
    std::vector<char> theirs(sent.size());
    random_stream{seed, number, 100u + static_cast<unsigned>(peer)}.fill(theirs.data(),
                                                                         theirs.size());
    std::vector<char> expected_packed = map.pack(theirs.data() + out.to_origin());
    std::vector<char> mine_packed = map.pack(sent.data() + out.to_origin());
    std::vector<char> got(expected_packed.size() + 1);

    MPI_Request requests[2];
    if (how == mode::derived_to_bytes) {
        MPI_Irecv(got.data(), size, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &requests[0]);
    } else {
        MPI_Irecv(in.origin(), count, type.handle(), peer, 1, MPI_COMM_WORLD, &requests[0]);
    }
    if (how == mode::bytes_to_derived) {
        MPI_Isend(mine_packed.data(), size, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &requests[1]);
    } else {
        MPI_Isend(out.origin(), count, type.handle(), peer, 1, MPI_COMM_WORLD, &requests[1]);
    }
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);

    if (how == mode::derived_to_bytes) {
        if (map.has_padding()) {
            return true;
        }
        got.resize(expected_packed.size());
        return got == expected_packed && in.read() == before;
    }
    std::vector<char> found = in.read(), expected = before;
    map.unpack(expected.data() + in.to_origin(), expected_packed.data(), map.size());
    map.forgive_padding(expected.data() + in.to_origin(), found.data() + in.to_origin());
    return found == expected;
}

int run(int argc, char **argv) {
    int rank = 0, ranks = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc < 2 || ranks != 2) {
        std::fprintf(stderr, "usage: mpirun -np 2 random_types COUNT [MEMORY]\n");
        return 2;
    }
    const char *chosen = std::getenv("CUDA_NC_TEST_SEED");
    const uint64_t seed = chosen != nullptr ? std::strtoull(chosen, nullptr, 10) : 20261121;
    const uint64_t count = std::strtoull(argv[1], nullptr, 10);
    std::unique_ptr<memory> where = open_memory(argc > 2 ? argv[2] : "host", rank);
    uint64_t wrong = 0;
    for (uint64_t number = 0; number < count; ++number) {
        std::string text;
        if (!exchange(*where, rank, seed, number, &text) && ++wrong <= 10) {
            std::printf("rank %d, seed %llu, type %llu is wrong: %.400s\n", rank,
                        static_cast<unsigned long long>(seed),
                        static_cast<unsigned long long>(number), text.c_str());
        }
    }
    unsigned long long mine = wrong, all = 0;
    MPI_Allreduce(&mine, &all, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) {
        std::printf("%llu types, seed %llu, %llu wrong\n", static_cast<unsigned long long>(count),
                    static_cast<unsigned long long>(seed), all);
    }
    return all != 0;
}

}  // namespace
}  // namespace mpi_test

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int status = 1;
    try {
        status = mpi_test::run(argc, argv);
    } catch (const std::exception &error) {
        std::fprintf(stderr, "random_types: %s\n", error.what());
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
    MPI_Finalize();
    return status;
}
