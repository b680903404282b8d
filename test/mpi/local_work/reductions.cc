// Reductions: of predefined types, of pairs, and of a derived type with an operator of the test's.
#include <algorithm>
#include <atomic>
#include <cstring>

#include "local_work/round.hpp"

namespace mpi_test {
namespace {

using words = std::vector<uint32_t>;

words as_words(const std::vector<char> &packed) {
    words made(packed.size() / sizeof(uint32_t));
    std::memcpy(made.data(), packed.data(), made.size() * sizeof(uint32_t));
    return made;
}

std::vector<char> as_bytes(const words &all) {
    std::vector<char> made(all.size() * sizeof(uint32_t));
    std::memcpy(made.data(), all.data(), made.size());
    return made;
}

// Three words with gaps between them, behind the element's start (at it under Open MPI, whose
// MPI_Ireduce writes behind its buffers where an element begins with a gap).
constexpr int64_t spacing = 12, extent = 44, first = is_open_mpi ? 0 : 4;

made_type spaced_words() {
    made_type made = resized(
        0, extent, hindexed_block(1, {first, first + spacing, first + 2 * spacing}, basic("INT")));
    made.commit();
    return made;
}

// Rounds of which a buffer lies in host memory, where nobody may touch its gaps.
std::atomic<int> rounds_in_host{0};

// Where the library has no buffer of the program the operator writes whole elements, as those do
// that assign structs, but for what lies before the first word: MPICH's own buffers have no room
// for that.
void add_spaced(void *in, void *inout, int *length, MPI_Datatype *) {
    for (int i = 0; i < *length; ++i) {
        for (int64_t at = first; rounds_in_host == 0 && at < extent; ++at) {
            if ((at - first) % spacing >= int64_t{sizeof(uint32_t)}) {
                static_cast<char *>(inout)[i * extent + at] = 'g';
            }
        }
        for (int64_t word = 0; word < 3; ++word) {
            const int64_t at = i * extent + first + word * spacing;
            uint32_t left, right;
            std::memcpy(&left, static_cast<char *>(in) + at, sizeof(left));
            std::memcpy(&right, static_cast<char *>(inout) + at, sizeof(right));
            right += left;
            std::memcpy(static_cast<char *>(inout) + at, &right, sizeof(right));
        }
    }
}

// The words of elements [start, start + count) that ranks [0, ranks) contribute together.
std::vector<char> sum(const type_map &element, int all, int start, int count, int ranks) {
    const int64_t size = element.size();
    words total(static_cast<size_t>(count * size) / sizeof(uint32_t));
    for (int rank = 0; rank < ranks; ++rank) {
        words one =
            as_words(packed_content(repeated(element, all), 20 + static_cast<uint64_t>(rank)));
        for (size_t i = 0; i < total.size(); ++i) {
            total[i] += one[static_cast<size_t>(start * size) / sizeof(uint32_t) + i];
        }
    }
    return as_bytes(total);
}

void reduce(round &r, const made_type &type, MPI_Op op) {
    const int n = r.ranks(), me = r.rank(), root = static_cast<int>(r.all.between(0, n - 1));
    const int count = static_cast<int>(r.all.between(0, 60));
    const int what = static_cast<int>(r.all.between(0, 6));
    const bool replaces = r.one_in(3);
    numbers counts;
    int own = 0, before = 0, all = count;
    if (what == 4 || what == 5) {
        all = 0;
        for (int rank = 0; rank < n; ++rank) {
            const int one = what == 4 ? count : (rank * 7 + count) % 20;
            before = rank == me ? all : before;
            own = rank == me ? one : own;
            counts.add(one);
            all += one;
        }
    }
    const uint64_t mine = 20 + static_cast<uint64_t>(me);
    auto from = r.buffer(type, all, mine), to = r.buffer(type, all, replaces ? mine : 9);
    const bool in_host = !from->is_on_device() || !to->is_on_device();
    rounds_in_host += in_host ? 1 : 0;
    void *in = replaces ? MPI_IN_PLACE : from->address();
    auto is = [&](int ranks) { to->expect(sum(type.map(), all, 0, all, ranks)); };
    switch (what) {
        case 0:
            CALL(r, Allreduce, Iallreduce, in, to->address(), count, type.handle(), op, r.comm);
            is(n);
            break;
        case 1:
            in = me == root ? in : from->address();
            CALL(r, Reduce, Ireduce, in, to->address(), count, type.handle(), op, root, r.comm);
            if (me == root) {
                is(n);
            }
            break;
        case 2:
            CALL(r, Scan, Iscan, in, to->address(), count, type.handle(), op, r.comm);
            is(me + 1);
            break;
        case 3:
            CALL(r, Exscan, Iexscan, in, to->address(), count, type.handle(), op, r.comm);
            if (me > 0) {
                is(me);
            }
            break;
        case 4:
            CALL(r, Reduce_scatter_block, Ireduce_scatter_block, in, to->address(), count,
                 type.handle(), op, r.comm);
            break;
        case 5:
            CALL(r, Reduce_scatter, Ireduce_scatter, in, to->address(), counts, type.handle(), op,
                 r.comm);
            break;
        default:
            r.text = "Reduce_local";
            CALL_NOW(r, Reduce_local, from->address(), to->address(), count, type.handle(), op);
            words left = as_words(to->packed()), right = as_words(from->packed());
            for (size_t i = 0; i < left.size(); ++i) {
                left[i] += right[i];
            }
            to->expect(as_bytes(left));
            break;
    }
    if (what == 4 || what == 5) {
        to->expect(sum(type.map(), all, before, own, n));
    }
    r.expect(from->right(), "send buffer");
    r.expect(to->right(), replaces ? "in place: words" : "words");
    rounds_in_host -= in_host ? 1 : 0;
}

// Pairs of a double and an int, 16 bytes apart, of which 12 are theirs.
void reduce_pairs(round &r) {
    struct pair {
        double value;
        int place;
    };
    const int count = 5;
    std::vector<pair> mine(count), found(count);
    memory &where = r.place(r.other());
    auto *from = static_cast<pair *>(where.allocate(sizeof(pair) * count));
    auto *to = static_cast<pair *>(where.allocate(sizeof(pair) * count));
    for (int i = 0; i < count; ++i) {
        mine[static_cast<size_t>(i)].value = (r.rank() * 7 + i * 3) % 5;
        mine[static_cast<size_t>(i)].place = r.rank();
    }
    where.copy(from, mine.data(), sizeof(pair) * count);
    CALL(r, Allreduce, Iallreduce, from, to, count, MPI_DOUBLE_INT, MPI_MAXLOC, r.comm);
    where.copy(found.data(), to, sizeof(pair) * count);
    for (int i = 0; i < count; ++i) {
        pair best = {-1, -1};
        for (int rank = 0; rank < r.ranks(); ++rank) {
            const double value = (rank * 7 + i * 3) % 5;
            best = value > best.value ? pair{value, rank} : best;
        }
        const pair &is = found[static_cast<size_t>(i)];
        r.expect(is.value == best.value && is.place == best.place, "pairs");
    }
    where.release(from);
    where.release(to);
}

}  // namespace

void random_reduction(round &r) {
    r.only_host = is_open_mpi;  // it reduces with the CPU, which is not served
    if (r.one_in(6)) {
        reduce_pairs(r);
    } else if (r.one_in(2)) {
        reduce(r, basic("INT"), MPI_SUM);
    } else {
        MPI_Op op;
        MPI_Op_create(add_spaced, 1, &op);
        reduce(r, spaced_words(), op);
        MPI_Op_free(&op);
    }
}

}  // namespace mpi_test
