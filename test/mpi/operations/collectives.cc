// Collective operations, among any number of ranks: rooted ones and those of one type for all.
#include <vector>

#include "operations/collective.hpp"

namespace mpi_test {
namespace {

void bcast(harness &t) {
    uint64_t number = 0;
    for (const sample &s : samples()) {
        int root = static_cast<int>(++number) % t.ranks();
        typed_buffer buffer(t.device(), s.type, s.count, key_of(t.rank(), number));
        if (number % 2 == 0) {
            MPI_Bcast(buffer.address(), s.count, s.type.handle(), root, MPI_COMM_WORLD);
        } else {
            MPI_Request request;
            MPI_Ibcast(buffer.address(), s.count, s.type.handle(), root, MPI_COMM_WORLD, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        buffer.expect(packed_content(buffer.map(), key_of(root, number)));
        t.expect(buffer.right(), s.type.text());
    }
}

void gather(harness &t) {
    for (const sample &s : few_samples()) {
        for (int root = 0; root < t.ranks(); ++root) {
            typed_buffer out(t.device(), s.type, s.count, key_of(t.rank(), 1));
            typed_buffer in(t.device(), s.type, s.count * t.ranks(), 7);
            MPI_Gather(out.address(), s.count, s.type.handle(), in.address(), s.count,
                       s.type.handle(), root, MPI_COMM_WORLD);
            if (t.rank() == root) {
                in.expect(all_content(t, out.map(), 1));
            }
            t.expect(in.right() && out.right(), s.type.text());
        }
    }
}

void scatter(harness &t) {
    for (const sample &s : few_samples()) {
        for (int root = 0; root < t.ranks(); ++root) {
            typed_buffer out(t.device(), s.type, s.count * t.ranks(), key_of(root, 1));
            typed_buffer in(t.device(), s.type, s.count, 7);
            MPI_Scatter(out.address(), s.count, s.type.handle(), in.address(), s.count,
                        s.type.handle(), root, MPI_COMM_WORLD);
            in.expect(part_of(out.packed(), t.rank(), t.ranks()));
            t.expect(in.right() && out.right(), s.type.text());
        }
    }
}

void allgather(harness &t) {
    for (const sample &s : few_samples()) {
        typed_buffer out(t.device(), s.type, s.count, key_of(t.rank(), 1));
        typed_buffer in(t.device(), s.type, s.count * t.ranks(), 7);
        MPI_Allgather(out.address(), s.count, s.type.handle(), in.address(), s.count,
                      s.type.handle(), MPI_COMM_WORLD);
        in.expect(all_content(t, out.map(), 1));
        t.expect(in.right() && out.right(), s.type.text());
    }
}

// Each rank's own part is where it belongs already.
void allgather_in_place(harness &t) {
    for (const sample &s : few_samples()) {
        typed_buffer all(t.device(), s.type, s.count * t.ranks(), key_of(t.rank(), 1));
        MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all.address(), s.count, s.type.handle(),
                      MPI_COMM_WORLD);
        std::vector<char> expected;
        for (int rank = 0; rank < t.ranks(); ++rank) {
            std::vector<char> part =
                part_of(packed_content(all.map(), key_of(rank, 1)), rank, t.ranks());
            expected.insert(expected.end(), part.begin(), part.end());
        }
        all.expect(expected);
        t.expect(all.right(), s.type.text());
    }
}

void alltoall(harness &t) {
    for (const sample &s : few_samples()) {
        typed_buffer out(t.device(), s.type, s.count * t.ranks(), key_of(t.rank(), 1));
        typed_buffer in(t.device(), s.type, s.count * t.ranks(), 7);
        MPI_Alltoall(out.address(), s.count, s.type.handle(), in.address(), s.count,
                     s.type.handle(), MPI_COMM_WORLD);
        std::vector<char> expected;
        for (int rank = 0; rank < t.ranks(); ++rank) {
            std::vector<char> part =
                part_of(packed_content(out.map(), key_of(rank, 1)), t.rank(), t.ranks());
            expected.insert(expected.end(), part.begin(), part.end());
        }
        in.expect(expected);
        t.expect(in.right() && out.right(), s.type.text());
    }
}

// Every rank sends to every other at once, all in flight together.
void all_pairs(harness &t) {
    const std::vector<sample> &some = few_samples();
    std::vector<std::unique_ptr<typed_buffer>> out, in;
    std::vector<MPI_Request> requests;
    for (int peer = 0; peer < t.ranks(); ++peer) {
        for (size_t i = 0; i < some.size(); ++i) {
            const sample &s = some[i];
            auto number = static_cast<uint64_t>(peer) * 10 + i;
            out.push_back(std::make_unique<typed_buffer>(t.device(), s.type, s.count,
                                                         key_of(t.rank(), number)));
            in.push_back(std::make_unique<typed_buffer>(t.device(), s.type, s.count, 7));
            requests.resize(requests.size() + 2);
            MPI_Isend(out.back()->address(), s.count, s.type.handle(), peer, static_cast<int>(i),
                      MPI_COMM_WORLD, &requests[requests.size() - 2]);
            MPI_Irecv(in.back()->address(), s.count, s.type.handle(), peer, static_cast<int>(i),
                      MPI_COMM_WORLD, &requests.back());
        }
    }
    MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
    for (int peer = 0; peer < t.ranks(); ++peer) {
        for (size_t i = 0; i < some.size(); ++i) {
            size_t at = static_cast<size_t>(peer) * some.size() + i;
            auto number = static_cast<uint64_t>(t.rank()) * 10 + i;
            in[at]->expect(packed_content(in[at]->map(), key_of(peer, number)));
            t.expect(in[at]->right() && out[at]->right(), some[i].type.text());
        }
    }
}

constexpr auto collective = subtest::kind::collective;
const registration tests[] = {{"bcast", bcast, collective},
                              {"gather", gather, collective},
                              {"scatter", scatter, collective},
                              {"allgather", allgather, collective},
                              {"allgather_in_place", allgather_in_place, collective},
                              {"alltoall", alltoall, collective},
                              {"all_pairs", all_pairs, collective}};

}  // namespace
}  // namespace mpi_test
