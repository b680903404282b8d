// Collective operations in which each rank's part has its own size and place.
#include <vector>

#include "operations/collective.hpp"

namespace mpi_test {
namespace {

// Elements of rank i's part; every third rank has none.
int part_count(int i, int base) {
    return i % 3 == 2 ? 0 : base + i;
}

// Where each rank's part lies in one buffer, in elements; one element lies between two parts.
struct parts {
    std::vector<int> counts, places;
    type_map map;  // of all parts in one buffer

    parts(const made_type &type, int ranks, int base) {
        int at = 0;
        for (int i = ranks - 1; i >= 0; --i) {  // the last rank's part comes first
            counts.insert(counts.begin(), part_count(i, base));
            places.insert(places.begin(), at);
            at += counts.front() + 1;
        }
        for (int i = 0; i < ranks; ++i) {
            map.add(repeated(type.map(), counts[static_cast<size_t>(i)]),
                    places[static_cast<size_t>(i)] * type.map().extent());
        }
    }
    int count(int rank) const { return counts[static_cast<size_t>(rank)]; }
};

// What all ranks together contribute to the one buffer.
std::vector<char> contributions(harness &t, const made_type &type, const parts &p) {
    std::vector<char> all;
    for (int rank = 0; rank < t.ranks(); ++rank) {
        std::vector<char> one =
            packed_content(repeated(type.map(), p.count(rank)), key_of(rank, 1));
        all.insert(all.end(), one.begin(), one.end());
    }
    return all;
}

void gatherv(harness &t) {
    for (const sample &s : few_samples()) {
        parts p(s.type, t.ranks(), s.count);
        typed_buffer out(t.device(), s.type, p.count(t.rank()), key_of(t.rank(), 1));
        typed_buffer in(t.device(), p.map, 7);
        int root = t.ranks() - 1;
        MPI_Gatherv(out.address(), p.count(t.rank()), s.type.handle(), in.address(),
                    p.counts.data(), p.places.data(), s.type.handle(), root, MPI_COMM_WORLD);
        if (t.rank() == root) {
            in.expect(contributions(t, s.type, p));
        }
        t.expect(in.right() && out.right(), s.type.text());
    }
}

void scatterv(harness &t) {
    for (const sample &s : few_samples()) {
        parts p(s.type, t.ranks(), s.count);
        typed_buffer out(t.device(), p.map, 5);
        typed_buffer in(t.device(), s.type, p.count(t.rank()), 7);
        MPI_Scatterv(out.address(), p.counts.data(), p.places.data(), s.type.handle(), in.address(),
                     p.count(t.rank()), s.type.handle(), 0, MPI_COMM_WORLD);
        std::vector<char> all = out.packed();
        int64_t start = 0;
        for (int rank = 0; rank < t.rank(); ++rank) {
            start += s.type.map().size() * p.count(rank);
        }
        in.expect({all.begin() + start, all.begin() + start + in.size()});
        t.expect(in.right() && out.right(), s.type.text());
    }
}

void allgatherv(harness &t) {
    for (const sample &s : few_samples()) {
        parts p(s.type, t.ranks(), s.count);
        typed_buffer out(t.device(), s.type, p.count(t.rank()), key_of(t.rank(), 1));
        typed_buffer in(t.device(), p.map, 7);
        MPI_Allgatherv(out.address(), p.count(t.rank()), s.type.handle(), in.address(),
                       p.counts.data(), p.places.data(), s.type.handle(), MPI_COMM_WORLD);
        in.expect(contributions(t, s.type, p));
        t.expect(in.right() && out.right(), s.type.text());
    }
}

// Each rank sends the same number of elements to all ranks; the number differs by sender.
void alltoallv(harness &t) {
    for (const sample &s : few_samples()) {
        parts from(s.type, t.ranks(), s.count);
        std::vector<int> counts(static_cast<size_t>(t.ranks()), from.count(t.rank())), places;
        for (int i = 0; i < t.ranks(); ++i) {
            places.push_back(i * from.count(t.rank()));
        }
        typed_buffer out(t.device(), s.type, t.ranks() * from.count(t.rank()), key_of(t.rank(), 1));
        typed_buffer in(t.device(), from.map, 7);
        MPI_Alltoallv(out.address(), counts.data(), places.data(), s.type.handle(), in.address(),
                      from.counts.data(), from.places.data(), s.type.handle(), MPI_COMM_WORLD);
        std::vector<char> expected;
        for (int rank = 0; rank < t.ranks(); ++rank) {
            std::vector<char> part =
                part_of(packed_content(repeated(s.type.map(), t.ranks() * from.count(rank)),
                                       key_of(rank, 1)),
                        t.rank(), t.ranks());
            expected.insert(expected.end(), part.begin(), part.end());
        }
        in.expect(expected);
        t.expect(in.right() && out.right(), s.type.text());
    }
}

constexpr auto collective = subtest::kind::collective;
const registration tests[] = {{"gatherv", gatherv, collective},
                              {"scatterv", scatterv, collective},
                              {"allgatherv", allgatherv, collective},
                              {"alltoallv", alltoallv, collective}};

}  // namespace
}  // namespace mpi_test
