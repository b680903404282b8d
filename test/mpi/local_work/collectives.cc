// Collectives that move bytes: each rank has its own type and memory for each side.
#include <algorithm>

#include "local_work/round.hpp"

namespace mpi_test {
namespace {

using bytes = std::vector<char>;

uint64_t key(int rank) {
    return 50 + static_cast<uint64_t>(rank);
}

void append(bytes *to, const bytes &from) {
    to->insert(to->end(), from.begin(), from.end());
}

// Block i of a side: `count` elements, `place` elements from the buffer's start; they lie apart, in
// descending order.
struct blocks {
    numbers counts, places, far_places;  // far: in bytes
    std::vector<MPI_Datatype> types;
    type_map map;

    blocks(const made_type &type, const std::vector<int> &each) {
        std::vector<int> at(each.size());
        int next = 0;
        for (size_t i = each.size(); i-- > 0; next += each[i] + 1) {
            at[i] = next;
        }
        for (size_t i = 0; i < each.size(); ++i) {
            counts.add(each[i]);
            places.add(at[i]);
            far_places.add(at[i] * type.map().extent());
            types.push_back(type.handle());
            map.add(repeated(type.map(), each[i]), at[i] * type.map().extent());
        }
    }
};

// What rank `from` has for each rank, packed: the same wherever it lies.
bytes block_between(round &r, int from, int to, int64_t length) {
    bytes made(static_cast<size_t>(length));
    random_stream{key(from), key(to), r.type().map().runs().size()}.fill(made.data(), made.size());
    return made;
}

int count_between(round &r, int from, int to) {
    random_stream random{key(from), key(to), static_cast<uint64_t>(r.type().map().size())};
    return static_cast<int>(random.between(0, 4));
}

void broadcast(round &r) {
    const int root = static_cast<int>(r.all.between(0, r.ranks() - 1));
    const made_type &type = r.either();
    auto buffer = r.buffer(type, 4, key(r.rank()));
    bytes sent = r.rank() == root ? buffer->packed() : bytes(static_cast<size_t>(buffer->size()));
    CALL(r, Bcast, Ibcast, buffer->address(), 4, type.handle(), root, r.comm);
    MPI_Bcast(sent.data(), static_cast<int>(sent.size()), MPI_BYTE, root, r.comm);
    buffer->expect(sent);
    r.expect(buffer->right(), "bytes");
}

std::vector<bytes> sent_blocks(round &r, int from, const std::vector<int> &counts) {
    std::vector<bytes> made;
    for (int to = 0; to < static_cast<int>(counts.size()); ++to) {
        made.push_back(
            block_between(r, from, to, counts[static_cast<size_t>(to)] * r.type().map().size()));
    }
    return made;
}

bytes joined(const std::vector<bytes> &all) {
    bytes made;
    for (const bytes &one : all) {
        append(&made, one);
    }
    return made;
}

// One block of equal size from each rank to each, or to or from one rank.
void uniform(round &r) {
    r.avoid_negative_extents();
    const int count = static_cast<int>(r.all.between(0, 4)), n = r.ranks(), me = r.rank();
    const int root = static_cast<int>(r.all.between(0, n - 1));
    const int64_t size = count * r.type().map().size();
    const made_type &sent = r.either(), &received = r.either();
    const std::vector<int> each(static_cast<size_t>(n), count);
    auto from = r.buffer(sent, count * n, 7), to = r.buffer(received, count * n, 8);
    auto one_from = r.buffer(sent, count, 7), one_to = r.buffer(received, count, 8);
    from->store(joined(sent_blocks(r, me, each)));
    one_from->store(block_between(r, me, 0, size));
    bytes gathered, exchanged, scattered = block_between(r, root, me, size);
    for (int rank = 0; rank < n; ++rank) {
        append(&gathered, block_between(r, rank, 0, size));
        append(&exchanged, block_between(r, rank, me, size));
    }
    const bool replaces = r.one_in(3);
    auto own_block_ready = [&](typed_buffer &in) {  // as MPI_IN_PLACE wants it
        bytes whole = in.packed();
        bytes mine = block_between(r, me, 0, size);
        std::copy(mine.begin(), mine.end(), whole.begin() + me * size);
        in.store(whole);
    };
    switch (r.all.between(0, 3)) {
        case 0:
            if (replaces && me == root) {
                own_block_ready(*to);
            }
            CALL(r, Gather, Igather, replaces && me == root ? MPI_IN_PLACE : one_from->address(),
                 count, sent.handle(), to->address(), count, received.handle(), root, r.comm);
            if (me == root) {
                to->expect(gathered);
            }
            break;
        case 1:
            CALL(r, Scatter, Iscatter, from->address(), count, sent.handle(),
                 replaces && me == root ? MPI_IN_PLACE : one_to->address(), count,
                 received.handle(), root, r.comm);
            if (!replaces || me != root) {
                one_to->expect(scattered);
            }
            break;
        case 2:
            if (replaces) {
                own_block_ready(*to);
            }
            CALL(r, Allgather, Iallgather, replaces ? MPI_IN_PLACE : one_from->address(), count,
                 sent.handle(), to->address(), count, received.handle(), r.comm);
            to->expect(gathered);
            break;
        default:
            if (replaces) {
                to->store(joined(sent_blocks(r, me, each)));
            }
            CALL(r, Alltoall, Ialltoall, replaces ? MPI_IN_PLACE : from->address(), count,
                 sent.handle(), to->address(), count, received.handle(), r.comm);
            to->expect(exchanged);
            break;
    }
    r.expect(from->right() && one_from->right(), "send buffer");
    r.expect(to->right() && one_to->right(), replaces ? "in place: bytes" : "bytes");
}

void varying(round &r) {
    if (!r.waits()) {
        r.avoid_negative_extents();
    }
    const int n = r.ranks(), me = r.rank(), root = static_cast<int>(r.all.between(0, n - 1));
    const made_type &sent = r.either(), &received = r.either();
    const int64_t element = r.type().map().size();
    std::vector<int> sends, receives, gathers;
    bytes exchanged, gathered;
    for (int rank = 0; rank < n; ++rank) {
        sends.push_back(count_between(r, me, rank));
        receives.push_back(count_between(r, rank, me));
        gathers.push_back(count_between(r, rank, 0));
        append(&exchanged, block_between(r, rank, me, receives.back() * element));
        append(&gathered, block_between(r, rank, 0, gathers.back() * element));
    }
    const blocks out(sent, sends), in(received, receives), all(received, gathers);
    typed_buffer from(r.place(sent), out.map, 7), to(r.place(received), in.map, 8),
        whole(r.place(received), all.map, 8);
    const int mine = gathers[static_cast<size_t>(me)];
    auto one_from = r.buffer(sent, mine, 7),
         one_to = r.buffer(received, count_between(r, root, me), 8);
    from.store(joined(sent_blocks(r, me, sends)));
    one_from->store(block_between(r, me, 0, mine * element));
    switch (r.all.between(0, 4)) {
        case 0:
            CALL(r, Gatherv, Igatherv, one_from->address(), mine, sent.handle(), whole.address(),
                 all.counts, all.places, received.handle(), root, r.comm);
            if (me == root) {
                whole.expect(gathered);
            }
            break;
        case 1:
            CALL(r, Scatterv, Iscatterv, from.address(), out.counts, out.places, sent.handle(),
                 one_to->address(), count_between(r, root, me), received.handle(), root, r.comm);
            one_to->expect(block_between(r, root, me, count_between(r, root, me) * element));
            break;
        case 2:
            if (r.one_in(3)) {
                bytes before = whole.packed(), own = block_between(r, me, 0, mine * element);
                int64_t at = 0;
                for (int rank = 0; rank < me; ++rank) {
                    at += gathers[static_cast<size_t>(rank)] * element;
                }
                std::copy(own.begin(), own.end(), before.begin() + at);
                whole.store(before);
                CALL(r, Allgatherv, Iallgatherv, MPI_IN_PLACE, 0, MPI_BYTE, whole.address(),
                     all.counts, all.places, received.handle(), r.comm);
            } else {
                CALL(r, Allgatherv, Iallgatherv, one_from->address(), mine, sent.handle(),
                     whole.address(), all.counts, all.places, received.handle(), r.comm);
            }
            whole.expect(gathered);
            break;
        case 3:
            CALL(r, Alltoallv, Ialltoallv, from.address(), out.counts, out.places, sent.handle(),
                 to.address(), in.counts, in.places, received.handle(), r.comm);
            to.expect(exchanged);
            break;
        default:
            CALL(r, Alltoallw, Ialltoallw, from.address(), out.counts, out.far_places,
                 out.types.data(), to.address(), in.counts, in.far_places, in.types.data(), r.comm);
            to.expect(exchanged);
            break;
    }
    r.expect(from.right() && one_from->right(), "send buffer");
    r.expect(to.right() && one_to->right() && whole.right(), "bytes");
}

// As many blocks from each rank to each as the other way round, so that it can be in place.
void varying_in_place(round &r) {
    r.avoid_negative_extents();
    const int n = r.ranks(), me = r.rank();
    const made_type &type = r.either();
    const int64_t element = r.type().map().size();
    std::vector<int> counts;
    bytes exchanged;
    for (int rank = 0; rank < n; ++rank) {
        counts.push_back(count_between(r, std::min(rank, me), std::max(rank, me)));
        append(&exchanged, block_between(r, rank, me, counts.back() * element));
    }
    const blocks both(type, counts);
    typed_buffer buffer(r.place(type), both.map, 8);
    buffer.store(joined(sent_blocks(r, me, counts)));
    if (r.one_in(2)) {
        CALL(r, Alltoallv, Ialltoallv, MPI_IN_PLACE, both.counts, both.places, type.handle(),
             buffer.address(), both.counts, both.places, type.handle(), r.comm);
    } else {
        CALL(r, Alltoallw, Ialltoallw, MPI_IN_PLACE, both.counts, both.far_places,
             both.types.data(), buffer.address(), both.counts, both.far_places, both.types.data(),
             r.comm);
    }
    buffer.expect(exchanged);
    r.expect(buffer.right(), "in place: bytes");
}

// Every rank is a neighbour of each, itself included.
void neighbours(round &r) {
    const int n = r.ranks(), me = r.rank();
    const made_type &sent = r.either(), &received = r.either();
    const int64_t element = r.type().map().size();
    std::vector<int> everybody, sends, receives, ones(static_cast<size_t>(n), 2);
    bytes exchanged, gathered, pairs;
    for (int rank = 0; rank < n; ++rank) {
        everybody.push_back(rank);
        sends.push_back(count_between(r, me, rank));
        receives.push_back(count_between(r, rank, me));
        append(&exchanged, block_between(r, rank, me, receives.back() * element));
        append(&gathered, block_between(r, rank, 0, 2 * element));
        append(&pairs, block_between(r, rank, me, 2 * element));
    }
    MPI_Comm graph;
    MPI_Dist_graph_create_adjacent(r.comm, n, everybody.data(), MPI_UNWEIGHTED, n, everybody.data(),
                                   MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph);
    const blocks out(sent, sends), in(received, receives), two(received, ones);
    typed_buffer from(r.place(sent), out.map, 7), to(r.place(received), in.map, 8),
        apart(r.place(received), two.map, 8);
    auto one = r.buffer(sent, 2, 7), even = r.buffer(sent, 2 * n, 7);
    auto close = r.buffer(received, 2 * n, 8);
    from.store(joined(sent_blocks(r, me, sends)));
    one->store(block_between(r, me, 0, 2 * element));
    even->store(joined(sent_blocks(r, me, ones)));
    switch (r.all.between(0, 4)) {
        case 0:
            CALL(r, Neighbor_allgather, Ineighbor_allgather, one->address(), 2, sent.handle(),
                 close->address(), 2, received.handle(), graph);
            close->expect(gathered);
            break;
        case 1:
            CALL(r, Neighbor_allgatherv, Ineighbor_allgatherv, one->address(), 2, sent.handle(),
                 apart.address(), two.counts, two.places, received.handle(), graph);
            apart.expect(gathered);
            break;
        case 2:
            CALL(r, Neighbor_alltoall, Ineighbor_alltoall, even->address(), 2, sent.handle(),
                 close->address(), 2, received.handle(), graph);
            close->expect(pairs);
            break;
        case 3:
            CALL(r, Neighbor_alltoallv, Ineighbor_alltoallv, from.address(), out.counts, out.places,
                 sent.handle(), to.address(), in.counts, in.places, received.handle(), graph);
            to.expect(exchanged);
            break;
        default:
            CALL(r, Neighbor_alltoallw, Ineighbor_alltoallw, from.address(), out.counts,
                 out.far_places, out.types.data(), to.address(), in.counts, in.far_places,
                 in.types.data(), graph);
            to.expect(exchanged);
            break;
    }
    MPI_Comm_free(&graph);
    r.expect(from.right() && one->right() && even->right(), "send buffer");
    r.expect(to.right() && apart.right() && close->right(), "bytes");
}

// A grid of ranks in a row: the first and the last lack a neighbour, or, across it, each is its
// own.
void grid(round &r) {
    const int n = r.ranks(), me = r.rank(), sizes[] = {n, 1}, closed[] = {0, r.one_in(2)};
    const made_type &sent = r.either(), &received = r.either();
    const int64_t size = 3 * r.type().map().size();
    MPI_Comm cartesian;
    MPI_Cart_create(r.comm, 2, sizes, closed, 0, &cartesian);
    auto from = r.buffer(sent, 3, 7), to = r.buffer(received, 4 * 3, 8);
    from->store(block_between(r, me, 0, size));
    bytes expected = to->packed();
    const int sources[] = {me - 1, me + 1, closed[1] ? me : n, closed[1] ? me : n};
    for (int i = 0; i < 4; ++i) {
        if (sources[i] >= 0 && sources[i] < n) {
            bytes came = block_between(r, sources[i], 0, size);
            std::copy(came.begin(), came.end(), expected.begin() + i * size);
        }
    }
    CALL(r, Neighbor_allgather, Ineighbor_allgather, from->address(), 3, sent.handle(),
         to->address(), 3, received.handle(), cartesian);
    MPI_Comm_free(&cartesian);
    to->expect(expected);
    r.expect(from->right() && to->right(), "on a grid: bytes");
}

// Even ranks and odd ones.
void between_groups(round &r) {
    r.avoid_negative_extents();
    const int n = r.ranks(), me = r.rank(), odd = me % 2;
    MPI_Comm half, between;
    MPI_Comm_split(r.comm, odd, 0, &half);
    MPI_Intercomm_create(half, 0, r.comm, 1 - odd, 9, &between);
    const made_type &sent = r.either(), &received = r.either();
    const int64_t size = 2 * r.type().map().size();
    const int others = (n + odd) / 2, root = odd == 0 ? (me == 0 ? MPI_ROOT : MPI_PROC_NULL) : 0;
    auto from = r.buffer(sent, 2, 7), to = r.buffer(received, 2 * others, 8);
    auto one = r.buffer(sent, 2, 7);
    from->store(block_between(r, me, 0, size));
    bytes theirs;
    for (int rank = 1 - odd; rank < n; rank += 2) {
        append(&theirs, block_between(r, rank, 0, size));
    }
    switch (r.all.between(0, 2)) {
        case 0:
            CALL(r, Allgather, Iallgather, from->address(), 2, sent.handle(), to->address(), 2,
                 received.handle(), between);
            to->expect(theirs);
            break;
        case 1:
            CALL(r, Gather, Igather, from->address(), 2, sent.handle(), to->address(), 2,
                 received.handle(), root, between);
            if (me == 0) {
                to->expect(theirs);
            }
            break;
        default:
            if (me == 0) {
                one->store(block_between(r, 0, 1, size));
            }
            CALL(r, Bcast, Ibcast, one->address(), 2, sent.handle(), root, between);
            if (odd != 0) {
                one->expect(block_between(r, 0, 1, size));
            }
            break;
    }
    MPI_Comm_free(&between);
    MPI_Comm_free(&half);
    r.expect(from->right() && to->right() && one->right(), "between two groups: bytes");
}

// What has no room in a rank's own block is refused, and nothing is written. A nonblocking call
// begins nevertheless, and says so when it ends. Open MPI refuses at once, and some of its calls
// write what has room.
void too_long(round &r) {
    const errors_return during;
    const bool later = r.mine.one_in(2);
    MPI_Request request = MPI_REQUEST_NULL;
    made_type type = vector(40, 1, 2, basic("INT"));
    made_type other = vector(40, 1, r.mine.one_in(2) ? 2 : 3, basic("INT"));
    type.commit();
    other.commit();
    const bool to_gpu = r.mine.one_in(2);
    memory &host = r.t.host();
    typed_buffer from(to_gpu && r.mine.one_in(2) ? host : r.t.device(), type, 3, 3);
    typed_buffer to(to_gpu ? r.t.device() : host, other, 2, 4);
    const int sends = 3, receives = 2, place = 0;
    int error = MPI_SUCCESS, kind = MPI_SUCCESS;
    MPI_Datatype handle = type.handle(), into = other.handle();
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_SELF, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    const auto call = [&](auto now, auto not_now, auto... arguments) {
        error = later ? not_now(arguments..., comm, &request) : now(arguments..., comm);
    };
    switch (r.mine.between(0, 3)) {
        case 0:
            r.text = "Gatherv without room";
            call(MPI_Gatherv, MPI_Igatherv, from.address(), sends, handle, to.address(), &receives,
                 &place, into, 0);
            break;
        case 1:
            r.text = "Scatterv without room";
            call(MPI_Scatterv, MPI_Iscatterv, from.address(), &sends, &place, handle, to.address(),
                 receives, into, 0);
            break;
        case 2:
            r.text = "Alltoallv without room";
            call(MPI_Alltoallv, MPI_Ialltoallv, from.address(), &sends, &place, handle,
                 to.address(), &receives, &place, into);
            break;
        default:
            r.text = "Alltoallw without room";
            call(MPI_Alltoallw, MPI_Ialltoallw, from.address(), &sends, &place, &handle,
                 to.address(), &receives, &place, &into);
            break;
    }
    if (later && !is_open_mpi) {
        r.expect(error == MPI_SUCCESS, "begun");
        error = MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Error_class(error, &kind);
    MPI_Comm_free(&comm);
    r.expect(kind == MPI_ERR_TRUNCATE, "refused");
    if (is_open_mpi) {
        to.expect_anything();
    }
    r.expect(from.right() && to.right(), "untouched");
}

// One rank's own block has no room: the others get what it sends them, and do not wait for it. Not
// for Open MPI, where they wait for ever.
void too_long_among_others(round &r) {
    const int n = r.ranks(), me = r.rank();
    made_type type = vector(40, 1, 2, basic("INT"));
    type.commit();
    typed_buffer from(r.t.device(), type, 2 * n + 3, 3), to(r.t.device(), type, 2 * n, 4);
    const auto own = static_cast<size_t>(me);
    std::vector<int> twos(static_cast<size_t>(n), 2), places, sends = twos, sent;
    for (int rank = 0; rank < n; ++rank) {
        places.push_back(2 * rank);
    }
    sent = places;
    sends[own] = me == 0 ? 3 : 2;
    sent[own] = 2 * n;
    MPI_Comm comm;
    MPI_Comm_dup(r.comm, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    const int error = MPI_Alltoallv(from.address(), sends.data(), sent.data(), type.handle(),
                                    to.address(), twos.data(), places.data(), type.handle(), comm);
    int kind = MPI_SUCCESS;
    MPI_Error_class(error, &kind);
    MPI_Comm_free(&comm);
    r.text = "Alltoallv, one rank without room";
    r.expect(kind == (me == 0 ? MPI_ERR_TRUNCATE : MPI_SUCCESS), "refused there alone");
    r.expect(from.right(), "untouched");
}

}  // namespace

void random_broadcast(round &r) {
    const int root = static_cast<int>(r.all.between(0, r.ranks() - 1));
    const int blocks = static_cast<int>(r.all.between(1, 3000)), width = r.one_in(2) ? 1 : 30;
    // Each rank has its own stride.
    made_type type =
        hvector(blocks, width, 8 * static_cast<int>(r.mine.between(31, 40)), basic("DOUBLE"));
    type.commit();
    const int count = 3;
    typed_buffer buffer(r.t.device(), type, count, key(r.rank()));
    std::vector<char> sent =
        r.rank() == root ? buffer.packed() : std::vector<char>(static_cast<size_t>(buffer.size()));
    CALL(r, Bcast, Ibcast, buffer.address(), count, type.handle(), root, r.comm);
    MPI_Bcast(sent.data(), static_cast<int>(sent.size()), MPI_BYTE, root, r.comm);
    buffer.expect(sent);
    r.expect(buffer.right(), "long ones: bytes");
}

void random_collective(round &r) {
    if (r.t.device().is_device() && r.mine.one_in(10)) {
        too_long(r);  // MPICH itself writes what has room
    }
    int on_gpus = r.t.device().is_device(), all_are = 0;
    MPI_Allreduce(&on_gpus, &all_are, 1, MPI_INT, MPI_MIN, r.comm);
    if (all_are != 0 && !is_open_mpi && r.all.one_in(10)) {
        too_long_among_others(r);
    }
    switch (r.all.between(0, 9)) {
        case 0:
            return broadcast(r);
        case 1:
            // Open MPI's nonblocking ones write to a buffer that is still being sent. Where a rank
            // has no blocks at all, it and the others take different tags from then on.
            return is_open_mpi && !r.waits() ? varying(r) : varying_in_place(r);
        case 2:
            return neighbours(r);
        case 3:
            return grid(r);
        case 4:
            return r.ranks() > 1 ? between_groups(r) : broadcast(r);
        case 5:
        case 6:
            return varying(r);
        default:
            return uniform(r);
    }
}

}  // namespace mpi_test
