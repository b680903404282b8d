// Collective operations in which each pair of ranks has a type of its own; and neighbours.
#include <vector>

#include "operations/collective.hpp"

namespace mpi_test {
namespace {

const made_type &type_between(int from, int to) {
    return samples()[static_cast<size_t>(8 + (3 * from + 5 * to) % 9)].type;
}

// Each pair of ranks has a type of its own; the parts lie one behind the other.
struct typed_parts {
    std::vector<int> counts, places;
    std::vector<MPI_Aint> far_places;
    std::vector<MPI_Datatype> types;
    type_map map;

    typed_parts(harness &t, bool sends) {
        int64_t at = 0;
        for (int i = 0; i < t.ranks(); ++i) {
            const made_type &type = sends ? type_between(t.rank(), i) : type_between(i, t.rank());
            counts.push_back(1);
            at -= type.map().true_lb();
            places.push_back(static_cast<int>(at));
            far_places.push_back(at);
            types.push_back(type.handle());
            map.add(type.map(), at);
            at += type.map().true_ub() + 16;
        }
    }
};

// What the rank receives: from each rank, that rank's part for it.
std::vector<char> typed_contributions(harness &t) {
    std::vector<char> all;
    for (int from = 0; from < t.ranks(); ++from) {
        int64_t at = 0, start = 0;
        type_map map;
        for (int to = 0; to < t.ranks(); ++to) {
            const type_map &one = type_between(from, to).map();
            start = to == t.rank() ? map.size() : start;
            at -= one.true_lb();
            map.add(one, at);
            at += one.true_ub() + 16;
        }
        std::vector<char> sent = packed_content(map, key_of(from, 1));
        all.insert(all.end(), sent.begin() + start,
                   sent.begin() + start + type_between(from, t.rank()).map().size());
    }
    return all;
}

using exchange_call = void (*)(const void *, const typed_parts &, void *, const typed_parts &);

void exchange_typed(harness &t, exchange_call call) {
    typed_parts sends(t, true), receives(t, false);
    typed_buffer out(t.device(), sends.map, key_of(t.rank(), 1)), in(t.device(), receives.map, 7);
    call(out.address(), sends, in.address(), receives);
    in.expect(typed_contributions(t));
    t.expect(out.right(), "send buffer");
    t.expect(in.right(), "receive buffer");
}

void alltoallw(harness &t) {
    exchange_typed(t, [](const void *out, const typed_parts &s, void *in, const typed_parts &r) {
        MPI_Alltoallw(out, s.counts.data(), s.places.data(), s.types.data(), in, r.counts.data(),
                      r.places.data(), r.types.data(), MPI_COMM_WORLD);
    });
}

void ialltoallw(harness &t) {
    exchange_typed(t, [](const void *out, const typed_parts &s, void *in, const typed_parts &r) {
        MPI_Request request;
        MPI_Ialltoallw(out, s.counts.data(), s.places.data(), s.types.data(), in, r.counts.data(),
                       r.places.data(), r.types.data(), MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    });
}

// All ranks are each other's neighbours, and each its own.
MPI_Comm everybody() {
    int ranks = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    std::vector<int> all;
    for (int i = 0; i < ranks; ++i) {
        all.push_back(i);
    }
    MPI_Comm graph;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, ranks, all.data(), MPI_UNWEIGHTED, ranks,
                                   all.data(), MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph);
    return graph;
}

void neighbor_alltoallw(harness &t) {
    exchange_typed(t, [](const void *out, const typed_parts &s, void *in, const typed_parts &r) {
        MPI_Comm graph = everybody();
        MPI_Neighbor_alltoallw(out, s.counts.data(), s.far_places.data(), s.types.data(), in,
                               r.counts.data(), r.far_places.data(), r.types.data(), graph);
        MPI_Comm_free(&graph);
    });
}

void neighbor_allgather(harness &t) {
    MPI_Comm graph = everybody();
    for (const sample &s : few_samples()) {
        typed_buffer out(t.device(), s.type, s.count, key_of(t.rank(), 1));
        typed_buffer in(t.device(), s.type, s.count * t.ranks(), 7);
        MPI_Neighbor_allgather(out.address(), s.count, s.type.handle(), in.address(), s.count,
                               s.type.handle(), graph);
        in.expect(all_content(t, out.map(), 1));
        t.expect(in.right() && out.right(), s.type.text());
    }
    MPI_Comm_free(&graph);
}

constexpr auto collective = subtest::kind::collective;
const registration tests[] = {{"alltoallw", alltoallw, collective},
                              {"ialltoallw", ialltoallw, collective},
                              {"neighbor_alltoallw", neighbor_alltoallw, collective},
                              {"neighbor_allgather", neighbor_allgather, collective}};

}  // namespace
}  // namespace mpi_test
