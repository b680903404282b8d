// Two ranks exchange derived datatypes, served in turns by Open MPI's own operations, by the
// engine, and by loops that show what can be had: all in one process, on the same buffers, so that
// whatever disturbs a machine disturbs all alike.
//
//   make -f bench/mpi_pairs.mk MPICXX=mpicxx OUTPUT=mpi_pairs
//   mpirun -np 2 -x LD_PRELOAD=$CUDA_NC_HOME/lib/libcuda_nc_preload.so
//          mpi_pairs [--seconds S] [--exchanges N] [LAYOUT ...]
//
// Prints for each layout the half round trip in microseconds: the least of all exchanges, and the
// median over the turns of stock / engine within a turn. "plain": a loop over the displacements,
// compiled for the one block length; "copy": the same bytes to and from contiguous memory;
// "empty": fragments that nobody fills or reads, that is, what the transport itself costs.
#include <dlfcn.h>
#include <mpi.h>
#include <ucp/api/ucp.h>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "bench/layout_catalogue.hpp"
#include "bench/test_memory.hpp"
#include "tools/perftest/support/statistics.hpp"

namespace {

enum way { stock, engine, plain, copy, empty, num_ways };
way current = stock;                // who serves types that are made now
const catalogue_entry *laid;        // the layout at hand
std::vector<size_t> displacements;  // its blocks, where all have one length

// ---- operations of our own, for the ways behind `engine`

struct message {
    char *buffer;
    size_t size;
};

template <size_t Length, bool Packs>
void move_plain(char *buffer, size_t offset, char *packed, size_t size) {
    constexpr size_t ahead = 24;
    auto part = [&](size_t block, size_t from, size_t bytes) {
        char *place = buffer + displacements[block] + from;
        Packs ? std::memcpy(packed, place, bytes) : std::memcpy(place, packed, bytes);
        packed += bytes;
        size -= bytes;
    };
    size_t block = offset / Length;
    if (offset % Length != 0) {
        part(block, offset % Length, std::min(Length - offset % Length, size));
        ++block;
    }
    for (; size >= Length; ++block, size -= Length, packed += Length) {
        const size_t next = std::min(block + ahead, displacements.size() - 1);
        __builtin_prefetch(buffer + displacements[next]);
        char *place = buffer + displacements[block];
        Packs ? std::memcpy(packed, place, Length) : std::memcpy(place, packed, Length);
    }
    if (size != 0) {
        part(block, 0, size);
    }
}

template <bool Packs>
void move(way how, char *buffer, size_t offset, char *packed, size_t size) {
    if (how == copy) {
        Packs ? std::memcpy(packed, buffer + offset, size)
              : std::memcpy(buffer + offset, packed, size);
    } else if (how == plain && laid->spans[0].length == 8) {
        move_plain<8, Packs>(buffer, offset, packed, size);
    } else if (how == plain) {
        move_plain<64, Packs>(buffer, offset, packed, size);
    }
}

void *start(char *buffer) {
    return new message{buffer, laid->payload};
}
template <way How>
constexpr ucp_generic_dt_ops_t own_operations = {
    [](void *, const void *buffer, size_t) {
        return start(const_cast<char *>(static_cast<const char *>(buffer)));
    },
    [](void *, void *buffer, size_t) { return start(static_cast<char *>(buffer)); },
    [](void *state) { return static_cast<message *>(state)->size; },
    [](void *state, size_t offset, void *packed, size_t most) {
        auto &one = *static_cast<message *>(state);
        const size_t size = std::min(most, one.size - offset);
        move<true>(How, one.buffer, offset, static_cast<char *>(packed), size);
        return size;
    },
    [](void *state, size_t offset, const void *packed, size_t size) {
        move<false>(How, static_cast<message *>(state)->buffer, offset,
                    const_cast<char *>(static_cast<const char *>(packed)), size);
        return UCS_OK;
    },
    [](void *state) { delete static_cast<message *>(state); }};

template <class F>
F definition_in(const char *library, const char *symbol) {
    void *handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
    void *found = handle != nullptr ? dlsym(handle, symbol) : nullptr;
    if (found == nullptr) {
        std::fprintf(stderr, "mpi_pairs: %s has no %s\n", library, symbol);
        std::abort();
    }
    return reinterpret_cast<F>(found);
}

}  // namespace

// The program's own definitions come before those of any library: types of `stock` are registered
// past the engine's hooks, and its convertor is Open MPI's.
extern "C" {
#define EXPORT __attribute__((visibility("default")))
EXPORT ucs_status_t ucp_dt_create_generic(const ucp_generic_dt_ops_t *operations, void *context,
                                          ucp_datatype_t *type_p) {
    using create_f = decltype(&ucp_dt_create_generic);
    if (current == engine) {
        auto next = reinterpret_cast<create_f>(dlsym(RTLD_NEXT, "ucp_dt_create_generic"));
        return next(operations, context, type_p);
    }
    static const auto original = definition_in<create_f>("libucp.so.0", "ucp_dt_create_generic");
    return original(current == plain   ? &own_operations<plain>
                    : current == copy  ? &own_operations<copy>
                    : current == empty ? &own_operations<empty>
                                       : operations,
                    context, type_p);
}

using move_f = int32_t (*)(void *, struct iovec *, uint32_t *, size_t *);
static move_f convertor_function(const char *symbol) {
    void *found = nullptr;
    for (const char *library : {"libopen-pal.so.80", "libopen-pal.so.40", "libmpi.so.40"}) {
        void *handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
        found = found == nullptr && handle != nullptr ? dlsym(handle, symbol) : found;
    }
    return reinterpret_cast<move_f>(found);
}
EXPORT int32_t opal_convertor_pack(void *convertor, struct iovec *parts, uint32_t *count,
                                   size_t *size) {
    static const move_f original = convertor_function("opal_convertor_pack");
    return original(convertor, parts, count, size);
}
EXPORT int32_t opal_convertor_unpack(void *convertor, struct iovec *parts, uint32_t *count,
                                     size_t *size) {
    static const move_f original = convertor_function("opal_convertor_unpack");
    return original(convertor, parts, count, size);
}
}

namespace {

double exchange(char *send, char *receive, MPI_Datatype type, int rank) {
    const double start = MPI_Wtime();
    if (rank == 0) {
        MPI_Send(send, 1, type, 1, 1, MPI_COMM_WORLD);
        MPI_Recv(receive, 1, type, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(receive, 1, type, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(send, 1, type, 0, 1, MPI_COMM_WORLD);
    }
    return (MPI_Wtime() - start) / 2 * 1e6;
}

unsigned char pattern(size_t i, int rank) {
    return static_cast<unsigned char>(((i + 1) * 0x9E3779B97F4A7C15ull) >> 56) ^
           static_cast<unsigned char>(rank * 85);
}

size_t wrong_bytes(const unsigned char *found, int sender) {
    size_t wrong = 0, end = 0;
    std::vector<span> sorted = laid->spans;
    std::sort(sorted.begin(), sorted.end(),
              [](const span &a, const span &b) { return a.offset < b.offset; });
    for (const span &one : sorted) {
        for (; end < one.offset; ++end) {
            wrong += found[end] != 0;  // a gap
        }
        for (; end < one.offset + one.length; ++end) {
            wrong += found[end] != pattern(end, sender);
        }
    }
    return wrong;
}

// The other ways move bytes of their own choice.
bool keeps_bytes(way how) {
    return how == stock || how == engine || how == plain;
}

void measure(const std::string &name, double seconds, int exchanges, int rank) {
    const catalogue_entry entry = make_entry(name);
    laid = &entry;
    displacements.clear();
    const size_t length = entry.spans[0].length;
    for (const span &one : entry.spans) {
        displacements.push_back(one.offset);
    }
    const bool uniform = std::all_of(entry.spans.begin(), entry.spans.end(),
                                     [&](const span &one) { return one.length == length; });
    std::vector<way> ways = {stock, engine, copy, empty};
    if (uniform && (length == 8 || length == 64)) {
        ways.push_back(plain);
    }
    auto send_memory = test_memory::make("host", entry.extent, rank);
    auto receive_memory = test_memory::make("host", entry.extent, rank);
    char *send = static_cast<char *>(send_memory->address());
    char *receive = static_cast<char *>(receive_memory->address());
    for (size_t i = 0; i < entry.extent; ++i) {
        send[i] = static_cast<char>(pattern(i, rank));
    }
    MPI_Datatype types[num_ways];
    std::vector<double> times[num_ways], turns;
    unsigned long long wrong = 0;
    for (way how : ways) {
        current = how;
        types[how] = entry.make_type();
        MPI_Type_commit(&types[how]);
        std::memset(receive, 0, entry.extent);
        exchange(send, receive, types[how], rank);  // registers the type
        if (keeps_bytes(how)) {
            wrong += wrong_bytes(reinterpret_cast<unsigned char *>(receive), 1 - rank);
        }
    }
    const double start = MPI_Wtime();
    for (int turn = 0, more = 1; more != 0; ++turn) {
        double least[num_ways];
        for (size_t i = 0; i < ways.size(); ++i) {
            const way how = ways[(i + static_cast<size_t>(turn)) % ways.size()];
            current = how;
            least[how] = 1e30;
            for (int n = 0; n < exchanges; ++n) {
                const double time = exchange(send, receive, types[how], rank);
                times[how].push_back(time);
                least[how] = std::min(least[how], time);
            }
        }
        turns.push_back(least[stock] / least[engine]);
        more = turn < 4 || MPI_Wtime() - start < seconds;
        MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    for (way how : ways) {
        current = how;
        MPI_Type_free(&types[how]);
        std::sort(times[how].begin(), times[how].end());
    }
    unsigned long long all_wrong = 0;
    MPI_Reduce(&wrong, &all_wrong, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        auto tenth = [&](way how) { return cuda_nc::tools::percentile(times[how], 10); };
        const double least = times[stock][0] / times[engine][0];
        std::printf("%-12s %8.0f %8.0f %6.2f %6.2f %6.2f %8.0f %8.0f", name.c_str(),
                    times[stock][0], times[engine][0], least, tenth(stock) / tenth(engine),
                    cuda_nc::tools::median_of(turns), times[copy][0], times[empty][0]);
        if (times[plain].empty()) {
            std::printf(" %8s", "");
        } else {
            std::printf(" %8.0f", times[plain][0]);
        }
        std::printf("  %zu turns, %llu wrong\n", turns.size(), all_wrong);
        std::fflush(stdout);
    }
}

}  // namespace

int main(int argc, char **argv) {
    int rank = 0, exchanges = 3;
    double seconds = 3;
    std::vector<std::string> names;
    CLI::App app("Derived datatypes served in turns by Open MPI, by the engine, and by plain loops",
                 "mpi_pairs");
    app.add_option("--seconds", seconds, "Time for each layout")->capture_default_str();
    app.add_option("--exchanges", exchanges, "Exchanges in a turn")->capture_default_str();
    app.add_option("LAYOUT", names, "Names of layouts (default: all)")
        ->check(CLI::IsMember(catalogue_names()));
    CLI11_PARSE(app, argc, argv);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (names.empty()) {
        names = catalogue_names();
    }
    if (rank == 0) {
        std::printf("%-12s %8s %8s %6s %6s %6s %8s %8s %8s\n", "layout", "stock", "engine", "best",
                    "tenth", "median", "copy", "empty", "plain");
    }
    for (const std::string &name : names) {
        measure(name, seconds, exchanges, rank);
    }
    MPI_Finalize();
}
