// Contiguous memory on one side: receives that are shorter or longer than what arrives, that never
// match, and collectives between two ranks whose one side is contiguous.
#include <algorithm>
#include <vector>

#include "operations/sides.hpp"

namespace mpi_test {
namespace {

constexpr auto sides = subtest::kind::sides;

// Elements of the receiving side that are fewer than arrive; 0: there are none.
int fewer(const one_sided_message &m) {
    const int count = m.count(1 - m.sender);
    return count == 1 ? 0 : (count + 1) / 2;
}

// MPI_ERR_TRUNCATE, and not a byte outside the receive's type map.
void sides_truncation(harness &t) {
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for_each_side(t, [&](const one_sided_message &m) {
        do_not_count(t, m);
        const int count = fewer(m);
        for (int tag = 0; count != 0 && tag < 2; ++tag) {  // expected, and unexpected
            if (t.rank() == m.sender) {
                side mine = m.make_side(t, key_of(t.rank(), 1));
                MPI_Barrier(MPI_COMM_WORLD);
                MPI_Send(mine.buffer.address(), mine.count, mine.type, t.peer(), tag,
                         MPI_COMM_WORLD);
                t.expect(mine.buffer.right(), m.text);
                continue;
            }
            const type_map element = m.is_plain(t.rank()) ? m.form->map() : m.typed->type.map();
            typed_buffer in(t.device(), repeated(element, count), 7);
            MPI_Request request = MPI_REQUEST_NULL;
            MPI_Status status;
            int error = MPI_SUCCESS, what = MPI_SUCCESS;
            if (tag == 0) {
                MPI_Irecv(in.address(), count, m.type(t.rank()), m.sender, tag, MPI_COMM_WORLD,
                          &request);
            }
            MPI_Barrier(MPI_COMM_WORLD);
            error = tag == 0 ? MPI_Wait(&request, &status)
                             : MPI_Recv(in.address(), count, m.type(t.rank()), m.sender, tag,
                                        MPI_COMM_WORLD, &status);
            MPI_Error_class(error, &what);
            in.expect_anything();
            t.expect(what == MPI_ERR_TRUNCATE, "error of " + m.text);
            t.expect(in.right(), "bytes around " + m.text);
        }
    });
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

// The rest of the buffer stays, and the status tells how much has come.
void sides_longer(harness &t) {
    for_each_side(t, [&](const one_sided_message &m) {
        if (t.rank() == m.sender) {
            side mine = m.make_side(t, key_of(t.rank(), 1));
            MPI_Send(mine.buffer.address(), mine.count, mine.type, t.peer(), 1, MPI_COMM_WORLD);
            t.expect(mine.buffer.right(), m.text);
            return;
        }
        const int count = 2 * m.count(t.rank()) + 1;
        const type_map element = m.is_plain(t.rank()) ? m.form->map() : m.typed->type.map();
        typed_buffer in(t.device(), repeated(element, count), 7);
        MPI_Status status;
        MPI_Recv(in.address(), count, m.type(t.rank()), m.sender, 1, MPI_COMM_WORLD, &status);
        in.expect(m.content(key_of(m.sender, 1)));
        int elements = -1;
        MPI_Get_count(&status, m.type(t.rank()), &elements);
        t.expect(in.right() && elements == m.count(t.rank()), m.text);
    });
}

void sides_cancelled(harness &t) {
    for_each_side(t, [&](const one_sided_message &m) {
        side mine = m.make_side(t, t.rank() == m.sender ? key_of(t.rank(), 1) : 7);
        if (t.rank() == m.sender) {
            MPI_Barrier(MPI_COMM_WORLD);
            MPI_Send(mine.buffer.address(), mine.count, mine.type, t.peer(), 1, MPI_COMM_WORLD);
        } else {
            side never = m.make_side(t, 8);
            MPI_Request request;
            MPI_Irecv(never.buffer.address(), never.count, never.type, m.sender, 1, MPI_COMM_WORLD,
                      &request);
            MPI_Cancel(&request);
            MPI_Status status;
            MPI_Wait(&request, &status);
            int cancelled = 0;
            MPI_Test_cancelled(&status, &cancelled);
            MPI_Barrier(MPI_COMM_WORLD);
            MPI_Recv(mine.buffer.address(), mine.count, mine.type, m.sender, 1, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
            mine.buffer.expect(m.content(key_of(m.sender, 1)));
            t.expect(cancelled != 0 && never.buffer.right(), "the cancelled one: " + m.text);
        }
        t.expect(mine.buffer.right(), m.text);
    });
}

void sides_empty(harness &t) {
    for_few_sides(t, [&](const one_sided_message &m) {
        do_not_count(t, m);
        side mine = m.make_side(t, 5);
        if (t.rank() == m.sender) {
            MPI_Send(mine.buffer.address(), 0, mine.type, t.peer(), 1, MPI_COMM_WORLD);
        } else {
            MPI_Status status;
            MPI_Recv(mine.buffer.address(), mine.count, mine.type, t.peer(), 1, MPI_COMM_WORLD,
                     &status);
            int bytes = -1;
            MPI_Get_count(&status, MPI_BYTE, &bytes);
            t.expect(bytes == 0, "size of an empty message");
        }
        t.expect(mine.buffer.right(), "an empty message: " + m.text);
    });
}

// ---- collectives: with MPI_IN_PLACE, or without a part for itself, nothing but the message moves

// MPICH moves some of these through host memory, as the manual says.
void do_not_count_on_mpich([[maybe_unused]] harness &t,
                           [[maybe_unused]] const one_sided_message &m) {
#ifdef MPICH_VERSION
    do_not_count(t, m);
#endif
}

// Open MPI's MPI_Gather may go through memory of its own, which it copies with the CPU.
bool gathers_by_counts([[maybe_unused]] const one_sided_message &m) {
#ifdef MPICH_VERSION
    return m.tag / 4 % 2 != 0;
#else
    return true;
#endif
}

void sides_gather(harness &t) {
    for_each_side(t, [&](const one_sided_message &m) {
        do_not_count_on_mpich(t, m);
        const int root = 1 - m.sender;
        const bool varying = gathers_by_counts(m);
        if (t.rank() == m.sender) {
            side mine = m.make_side(t, key_of(t.rank(), 1));
            if (varying) {
                MPI_Gatherv(mine.buffer.address(), mine.count, mine.type, nullptr, nullptr, nullptr,
                            MPI_BYTE, root, MPI_COMM_WORLD);
            } else {
                MPI_Gather(mine.buffer.address(), mine.count, mine.type, nullptr, 0, MPI_BYTE, root,
                           MPI_COMM_WORLD);
            }
            t.expect(mine.buffer.right(), m.text);
            return;
        }
        const type_map element = m.is_plain(root) ? m.form->map() : m.typed->type.map();
        const int count = m.count(root);
        typed_buffer in(t.device(), repeated(element, 2 * count), 7);
        std::vector<char> both = in.packed(), come = m.content(key_of(m.sender, 1));
        std::copy(come.begin(), come.end(), both.begin() + m.sender * m.bytes);
        if (varying) {
            const int counts[] = {count, count}, places[] = {0, count};
            MPI_Gatherv(MPI_IN_PLACE, 0, MPI_BYTE, in.address(), counts, places, m.type(root), root,
                        MPI_COMM_WORLD);
        } else {
            MPI_Gather(MPI_IN_PLACE, 0, MPI_BYTE, in.address(), count, m.type(root), root,
                       MPI_COMM_WORLD);
        }
        in.expect(both);
        t.expect(in.right(), m.text);
    });
}

void sides_scatter(harness &t) {
    for_each_side(t, [&](const one_sided_message &m) {
        do_not_count_on_mpich(t, m);
        const bool varying = m.tag / 4 % 2 != 0;
        const int count = m.count(m.sender);
        const type_map element = m.is_plain(m.sender) ? m.form->map() : m.typed->type.map();
        const type_map all = repeated(element, 2 * count);
        if (t.rank() == m.sender) {
            typed_buffer out(t.device(), all, key_of(t.rank(), 1));
            if (varying) {
                const int counts[] = {count, count}, places[] = {0, count};
                MPI_Scatterv(out.address(), counts, places, m.type(m.sender), MPI_IN_PLACE, 0,
                             MPI_BYTE, m.sender, MPI_COMM_WORLD);
            } else {
                MPI_Scatter(out.address(), count, m.type(m.sender), MPI_IN_PLACE, 0, MPI_BYTE,
                            m.sender, MPI_COMM_WORLD);
            }
            t.expect(out.right(), m.text);
            return;
        }
        side mine = m.make_side(t, 7);
        if (varying) {
            MPI_Scatterv(nullptr, nullptr, nullptr, MPI_BYTE, mine.buffer.address(), mine.count,
                         mine.type, m.sender, MPI_COMM_WORLD);
        } else {
            MPI_Scatter(nullptr, 0, MPI_BYTE, mine.buffer.address(), mine.count, mine.type,
                        m.sender, MPI_COMM_WORLD);
        }
        const std::vector<char> sent = packed_content(all, key_of(m.sender, 1));
        mine.buffer.expect(
            {sent.begin() + t.rank() * m.bytes, sent.begin() + (t.rank() + 1) * m.bytes});
        t.expect(mine.buffer.right(), m.text);
    });
}

void alltoallw(harness &t, bool neighbours) {
    MPI_Comm graph = MPI_COMM_NULL;
    const int peer = t.peer();
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &peer, MPI_UNWEIGHTED, 1, &peer,
                                   MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph);
    for_each_side(t, [&](const one_sided_message &m) {
        const bool sends = t.rank() == m.sender;
        side mine = m.make_side(t, sends ? key_of(m.sender, 1) : 7);
        const size_t at = neighbours ? 0 : static_cast<size_t>(peer);
        int out[2] = {}, in[2] = {};
        const int places[2] = {};
        const MPI_Aint far_places[2] = {};
        MPI_Datatype types[2] = {MPI_BYTE, MPI_BYTE};
        types[at] = mine.type;
        (sends ? out : in)[at] = mine.count;
        void *buffer = mine.buffer.address(), *none = nullptr;
        if (neighbours) {
            MPI_Neighbor_alltoallw(sends ? buffer : none, out, far_places, types,
                                   sends ? none : buffer, in, far_places, types, graph);
        } else {
            MPI_Alltoallw(sends ? buffer : none, out, places, types, sends ? none : buffer, in,
                          places, types, MPI_COMM_WORLD);
        }
        if (!sends) {
            mine.buffer.expect(m.content(key_of(m.sender, 1)));
        }
        t.expect(mine.buffer.right(), m.text);
    });
    MPI_Comm_free(&graph);
}

void sides_alltoallw(harness &t) {
    alltoallw(t, false);
}

void sides_neighbor_alltoallw(harness &t) {
    alltoallw(t, true);
}

const registration tests[] = {{"sides_truncation", sides_truncation, sides},
                              {"sides_longer", sides_longer, sides},
                              {"sides_cancelled", sides_cancelled, sides},
                              {"sides_empty", sides_empty, sides},
                              {"sides_gather", sides_gather, sides},
                              {"sides_scatter", sides_scatter, sides},
                              {"sides_alltoallw", sides_alltoallw, sides},
                              {"sides_neighbor_alltoallw", sides_neighbor_alltoallw, sides}};

}  // namespace
}  // namespace mpi_test
