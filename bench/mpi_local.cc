// What two ranks wait for calls that an MPI library makes of copies, or of messages and copies:
// packing, messages that replace what they send, collectives. The elements are blocks of 64 bytes,
// 128 apart. Every byte is checked.
//
//   mpirun -np 2 mpi_local [--memory cuda|sim|host] [--label TEXT] [--repeats N] [--bytes N]
//
// A time is the median over the repeats of what the slower rank needed. `bytes` is what a rank
// packs, replaces, broadcasts, reduces, or has for each rank.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench/two_ranks.hpp"
#include "tools/perftest/support/statistics.hpp"

namespace {

constexpr size_t block = 64, stride = 128;

struct options : two_ranks {
    int repeats = 20;
    int bytes = 16 << 20;
} chosen;

using image = std::vector<unsigned char>;

unsigned char pattern(size_t i, int from) {
    return static_cast<unsigned char>((i + 1) * 0x9E3779B97F4A7C15ull >> 56) ^
           static_cast<unsigned char>(77 * from + 1);
}

constexpr unsigned char gap = 0xa5;

// `units` times the bytes of a call, in blocks; those of unit u come from rank of[u], as its unit
// `its[u]`; -1: they are as they were before.
struct content {
    std::vector<int> of, its;
};

size_t span() {
    return static_cast<size_t>(chosen.bytes) / block * stride;
}

image scattered(const content &what) {
    image made(what.of.size() * span(), gap);
    for (size_t u = 0; u < what.of.size(); ++u) {
        for (size_t at = 0; at < span() && what.of[u] >= 0; ++at) {
            if (at % stride < block) {
                const size_t packed = at / stride * block + at % stride;
                made[u * span() + at] = pattern(
                    packed + static_cast<size_t>(what.its[u]) * static_cast<size_t>(chosen.bytes),
                    what.of[u]);
            }
        }
    }
    return made;
}

long differing(const image &found, const image &expected) {
    long wrong = 0;
    for (size_t i = 0; i < found.size(); ++i) {
        wrong += found[i] != expected[i];
    }
    return wrong;
}

// Runs `call` and says what it takes; `expected` is what must lie in `result` afterwards.
long measure(const char *name, const std::function<void()> &prepare,
             const std::function<void()> &call, test_memory &result, const image &expected) {
    std::vector<double> times;
    for (int i = 0; i < chosen.repeats + 2; ++i) {
        prepare();
        MPI_Barrier(MPI_COMM_WORLD);
        const double start = MPI_Wtime();
        call();
        const double mine = (MPI_Wtime() - start) * 1e6;
        double slower = 0;
        MPI_Allreduce(&mine, &slower, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        if (i >= 2) {
            times.push_back(slower);
        }
    }
    if (chosen.rank == 0) {
        std::printf("%s %-16s %9d B: %10.1f us\n", chosen.label.c_str(), name, chosen.bytes,
                    cuda_nc::tools::median_of(times));
        std::fflush(stdout);
    }
    return differing(result.read(), expected);
}

long measure_all() {
    const int me = chosen.rank, other = 1 - me, bytes = chosen.bytes;
    MPI_Datatype type, unit;
    MPI_Type_vector(bytes / static_cast<int>(block), block, stride, MPI_BYTE, &type);
    MPI_Type_create_resized(type, 0, static_cast<MPI_Aint>(span()), &unit);
    MPI_Type_commit(&unit);
    const content two_of_mine = {{me, me}, {0, 1}}, nothing = {{-1, -1}, {0, 0}};
    auto from = chosen.allocate(chosen.memory, 2 * span());
    auto to = chosen.allocate(chosen.memory, 2 * span());
    auto packed = chosen.allocate(chosen.memory, static_cast<size_t>(bytes));
    const image source = scattered(two_of_mine), empty = scattered(nothing);
    from->write(source);
    auto clear = [&] { to->write(empty); };
    long wrong = 0;

    image packed_bytes(static_cast<size_t>(bytes));
    for (size_t i = 0; i < packed_bytes.size(); ++i) {
        packed_bytes[i] = pattern(i, me);
    }
    wrong += measure(
        "Pack", [] {},
        [&] {
            int at = 0;
            MPI_Pack(from->address(), 1, unit, packed->address(), bytes, &at, MPI_COMM_WORLD);
        },
        *packed, packed_bytes);
    wrong += measure(
        "Unpack", clear,
        [&] {
            int at = 0;
            MPI_Unpack(packed->address(), bytes, &at, to->address(), 1, unit, MPI_COMM_WORLD);
        },
        *to, scattered({{me, -1}, {0, 0}}));
    wrong += measure(
        "Sendrecv_replace", [&] { to->write(source); },
        [&] {
            MPI_Sendrecv_replace(to->address(), 1, unit, other, 1, other, 1, MPI_COMM_WORLD,
                                 MPI_STATUS_IGNORE);
        },
        *to, scattered({{other, me}, {0, 1}}));
    wrong += measure(
        "Bcast", [&] { to->write(me == 0 ? source : empty); },
        [&] { MPI_Bcast(to->address(), 1, unit, 0, MPI_COMM_WORLD); }, *to,
        me == 0 ? source : scattered({{0, -1}, {0, 0}}));
    wrong += measure(
        "Gather", clear,
        [&] { MPI_Gather(from->address(), 1, unit, to->address(), 1, unit, 0, MPI_COMM_WORLD); },
        *to, me == 0 ? scattered({{0, 1}, {0, 0}}) : empty);
    const int counts[] = {1, 1}, places[] = {0, 1};
    wrong += measure(
        "Gatherv", clear,
        [&] {
            MPI_Gatherv(from->address(), 1, unit, to->address(), counts, places, unit, 0,
                        MPI_COMM_WORLD);
        },
        *to, me == 0 ? scattered({{0, 1}, {0, 0}}) : empty);
    wrong += measure(
        "Allgather", clear,
        [&] { MPI_Allgather(from->address(), 1, unit, to->address(), 1, unit, MPI_COMM_WORLD); },
        *to, scattered({{0, 1}, {0, 0}}));
    wrong += measure(
        "Alltoall", clear,
        [&] { MPI_Alltoall(from->address(), 1, unit, to->address(), 1, unit, MPI_COMM_WORLD); },
        *to, scattered({{0, 1}, {me, me}}));
    wrong += measure(
        "Alltoallv", clear,
        [&] {
            MPI_Alltoallv(from->address(), counts, places, unit, to->address(), counts, places,
                          unit, MPI_COMM_WORLD);
        },
        *to, scattered({{0, 1}, {me, me}}));

    // Of words without gaps: what an operator of a derived type does is the program's.
    const size_t words = static_cast<size_t>(bytes) / sizeof(int32_t);
    image ones(2 * span(), gap), sums = ones;
    for (size_t i = 0; i < words; ++i) {
        const auto value = static_cast<int32_t>(i % 1000), sum = 2 * value;
        std::memcpy(&ones[i * sizeof(value)], &value, sizeof(value));
        std::memcpy(&sums[i * sizeof(sum)], &sum, sizeof(sum));
    }
    from->write(ones);
    wrong += measure(
        "Allreduce", clear,
        [&] {
            MPI_Allreduce(from->address(), to->address(), static_cast<int>(words), MPI_INT32_T,
                          MPI_SUM, MPI_COMM_WORLD);
        },
        *to, sums);
    MPI_Type_free(&unit);
    MPI_Type_free(&type);
    return wrong;
}

}  // namespace

int main(int argc, char **argv) {
    CLI::App app("Calls that are copies, or messages and copies: mpirun -np 2 mpi_local",
                 "mpi_local");
    chosen.add_options(&app);
    app.add_option("--repeats", chosen.repeats, "Calls that are timed")
        ->check(CLI::Range(1, 1000000))
        ->capture_default_str();
    app.add_option("--bytes", chosen.bytes, "Bytes of a call, a multiple of 64")
        ->check(CLI::Range(static_cast<int>(block), 1 << 29))
        ->capture_default_str();
    CLI11_PARSE(app, argc, argv);
    chosen.bytes = chosen.bytes / static_cast<int>(block) * static_cast<int>(block);
    chosen.start(&argc, &argv);
    return chosen.finish(measure_all());
}
