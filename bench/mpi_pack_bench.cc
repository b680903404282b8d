// MPI_Pack and MPI_Unpack of an MPI library against the host executor, in turns in one process,
// so that a noisy machine disturbs both alike. Prints the best of many turns, GB/s of payload, and
// for comparison a memcpy that reads and writes as many bytes of each side as the layout's cache
// lines hold; for random blocks of one length a plain loop that gathers them ("plain").
//
//     make libnc_perftest.la libcuda_nc_core.la
//     mpicxx -O2 -std=c++17 -I. -Isrc -o mpi_pack_bench bench/mpi_pack_bench.cc
//         src/tools/perftest/mpi/datatype.cc .libs/libnc_perftest.a .libs/libcuda_nc_core.a
//         -ldl -lpthread
//     ./mpi_pack_bench [BYTES [TURNS [NAME]]]
//
// With FRAGMENT=8192 in the environment both sides move fragments of that size, to and from a small
// ring of buffers, as UCX asks for them: Open MPI by its convertor, as its UCX layer does.
#include <dlfcn.h>
#include <mpi.h>
#include <sys/uio.h>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <random>

#include "bench/host_layouts.hpp"
#include "tools/perftest/mpi/datatype.hpp"
#include "ucs/exec/host/host_executor.hpp"

using namespace cuda_nc;

namespace {

// Processor time of this thread: other jobs on the machine disturb it less than wall time.
double now() {
    timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

template <class F>
double seconds(F call) {
    const double start = now();
    call();
    return now() - start;
}

// Open MPI's convertor, found at run time.
class stock_convertor {
  public:
    stock_convertor() {
        look_up("opal_convertor_create", &create_);
        look_up("opal_convertor_prepare_for_send", &prepare_send_);
        look_up("opal_convertor_prepare_for_recv", &prepare_receive_);
        look_up("opal_convertor_pack", &pack_);
        look_up("opal_convertor_unpack", &unpack_);
        const uint32_t *arch = nullptr;
        look_up("opal_local_arch", &arch);
        convertor_ = create_(static_cast<int32_t>(*arch), 0);
    }
    void prepare(bool packs, MPI_Datatype type, char *buffer) {
        (packs ? prepare_send_ : prepare_receive_)(convertor_, type, 1, buffer);
    }
    void move(bool packs, char *packed, uint64_t length) {
        iovec part = {packed, length};
        uint32_t parts = 1;
        size_t moved = length;
        (packs ? pack_ : unpack_)(convertor_, &part, &parts, &moved);
        if (moved != length) {
            std::fprintf(stderr, "%zu bytes moved instead of %zu\n", moved, size_t(length));
            std::exit(1);
        }
    }

  private:
    template <class F>
    void look_up(const char *symbol, F *found_p) {
        *found_p = reinterpret_cast<F>(dlsym(RTLD_DEFAULT, symbol));
        if (*found_p == nullptr) {
            std::fprintf(stderr, "this MPI has no %s\n", symbol);
            std::exit(1);
        }
    }
    using prepare_f = int32_t (*)(void *, const void *, size_t, const void *);
    using move_f = int32_t (*)(void *, iovec *, uint32_t *, size_t *);
    void *(*create_)(int32_t, int32_t) = nullptr;
    prepare_f prepare_send_ = nullptr, prepare_receive_ = nullptr;
    move_f pack_ = nullptr, unpack_ = nullptr;
    void *convertor_ = nullptr;
};

// What can be had for blocks of one length at random places: a plain loop over their displacements,
// each fetched some iterations ahead, to the same ring of fragments.
template <unsigned Length>
void plain_gather(const std::vector<int64_t> &places, const char *buffer, char *packed,
                  uint64_t ring) {
    constexpr size_t ahead = 24;
    uint64_t place = 0;
    for (size_t i = 0; i < places.size(); ++i) {
        if (i + ahead < places.size()) {
            __builtin_prefetch(buffer + places[i + ahead]);
            __builtin_prefetch(buffer + places[i + ahead] + Length - 1);
        }
        std::memcpy(packed + place, buffer + places[i], Length);
        place = place + Length == ring ? 0 : place + Length;
    }
}

using gather_f = void (*)(const std::vector<int64_t> &, const char *, char *, uint64_t);
// Null but for layouts named random_LENGTH; else *places_p gets their blocks' displacements.
gather_f find_plain_gather(const bench::host_layout &one, std::vector<int64_t> *places_p) {
    const bool random = one.name.find("random_") == 0 && one.name.find('_', 7) == std::string::npos;
    if (!random) {
        return nullptr;
    }
    layout_cursor cursor(*one.what, 0);
    uint64_t length = 0;
    for (block next = cursor.next(UINT64_MAX); next.length != 0; next = cursor.next(UINT64_MAX)) {
        places_p->push_back(next.displacement);
        length = next.length;
    }
    return length == 8     ? plain_gather<8>
           : length == 16  ? plain_gather<16>
           : length == 64  ? plain_gather<64>
           : length == 256 ? plain_gather<256>
                           : nullptr;
}

struct best {
    double value = 1e30;
    void operator()(double time) { value = std::min(value, time); }
};

}  // namespace

int main(int argc, char **argv) {
    uint64_t total = 16 << 20;
    int turns = 15;
    std::string part;
    CLI::App app("MPI_Pack and MPI_Unpack against the host executor", "mpi_pack_bench");
    app.add_option("BYTES", total, "Packed bytes of each layout")->capture_default_str();
    app.add_option("TURNS", turns, "Turns, of which the best counts")->capture_default_str();
    app.add_option("NAME", part, "Only layouts with this in their names");
    CLI11_PARSE(app, argc, argv);
    MPI_Init(&argc, &argv);
    const char *text = std::getenv("FRAGMENT");
    const uint64_t fragment = text != nullptr ? std::strtoull(text, nullptr, 0) : UINT64_MAX;
    stock_convertor convertor;
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int version_length;
    MPI_Get_library_version(version, &version_length);
    std::printf("# %.40s; host executor %s; %llu bytes; best of %d; GB/s\n", version,
                exec::host_simd_name(), static_cast<unsigned long long>(total), turns);
    std::printf("%-20s %8s %8s %6s %8s %8s %6s %8s %6s %6s %8s\n", "layout", "MPI", "ours", "ratio",
                "MPI un", "ours un", "ratio", "lines", "ours/", "un/", "plain");
    for (const bench::host_layout &one : bench::make_host_layouts(total)) {
        if (one.name.find(part) == std::string::npos) {
            continue;
        }
        const layout &moved = *one.what;
        const layout_view &view = moved.view();
        MPI_Datatype type = tools::make_datatype(moved);
        MPI_Type_commit(&type);
        const uint64_t size = view.packed_size;
        const uint64_t span = static_cast<uint64_t>(moved.upper_bound());
        const bench::memory buffer_memory = bench::allocate(span),
                            buffer2_memory = bench::allocate(span),
                            packed_memory = bench::allocate(size),
                            packed2_memory = bench::allocate(size),
                            scratch_memory = bench::allocate(size);
        char *const buffer = buffer_memory.get(), *const buffer2 = buffer2_memory.get();
        char *const packed = packed_memory.get(), *const packed2 = packed2_memory.get();
        char *const scratch = scratch_memory.get();
        const uint64_t touched = std::min(bench::touched_lines(moved), span);
        // Where the system put a buffer is worth a third of the speed: both sides use both.
        char *theirs = packed, *own = packed2;
        best mpi_pack, our_pack, mpi_unpack, our_unpack, copy, plain;
        std::vector<int64_t> places;
        const gather_f gather = find_plain_gather(one, &places);
        // Packed bytes of a fragment: UCX's buffers are few, and stay in cache.
        exec::host_cursor cursor;
        const uint64_t ring = fragment == UINT64_MAX ? size : std::min(size, 64 * fragment);
        auto ours = [&](auto call) {
            for (uint64_t offset = 0; offset < size;) {
                const uint64_t length = std::min<uint64_t>(fragment, size - offset);
                call(offset, offset % ring, length);
                offset += length;
            }
        };
        auto stock = [&](bool packs, char *laid) {
            convertor.prepare(packs, type, laid);
            ours([&](uint64_t, uint64_t place, uint64_t length) {
                convertor.move(packs, theirs + place, length);
            });
        };
        auto run = [&](int what) {
            int position = 0;
            const int int_size = static_cast<int>(size);
            switch (what) {
                case 0:
                    return mpi_pack(seconds([&] {
                        if (fragment != UINT64_MAX) {
                            return stock(true, buffer);
                        }
                        MPI_Pack(buffer, 1, type, theirs, int_size, &position, MPI_COMM_SELF);
                    }));
                case 1:
                    cursor.begin();
                    return our_pack(seconds([&] {
                        ours([&](uint64_t offset, uint64_t place, uint64_t length) {
                            cursor.pack(view, buffer, offset, own + place, length);
                        });
                    }));
                case 2:
                    return mpi_unpack(seconds([&] {
                        if (fragment != UINT64_MAX) {
                            return stock(false, buffer2);
                        }
                        MPI_Unpack(theirs, int_size, &position, buffer2, 1, type, MPI_COMM_SELF);
                    }));
                case 3:
                    cursor.begin();
                    return our_unpack(seconds([&] {
                        ours([&](uint64_t offset, uint64_t place, uint64_t length) {
                            cursor.unpack(view, buffer2, offset, own + place, length);
                        });
                    }));
                case 4:
                    return plain(seconds([&] {
                        if (gather != nullptr) {
                            gather(places, buffer, scratch, ring);
                        }
                    }));
                default:
                    return copy(
                        seconds([&] { bench::copy_lines(scratch, buffer, touched, size); }));
            }
        };
        std::vector<int> order = {0, 1, 2, 3, 4, 5};
        std::mt19937 random(1);
        for (int turn = 0; turn < turns; ++turn) {
            std::shuffle(order.begin(), order.end(), random);  // none profits from what came before
            for (int what : order) {
                run(what);
            }
            if (turn == 0 && std::memcmp(packed, packed2, size) != 0) {
                std::printf("%s: bytes differ\n", one.name.c_str());
            }
            std::swap(theirs, own);
        }
        const double gb = static_cast<double>(size) / 1e9;
        std::printf("%-20s %8.2f %8.2f %6.2f %8.2f %8.2f %6.2f %8.2f %6.2f %6.2f", one.name.c_str(),
                    gb / mpi_pack.value, gb / our_pack.value, mpi_pack.value / our_pack.value,
                    gb / mpi_unpack.value, gb / our_unpack.value,
                    mpi_unpack.value / our_unpack.value, gb / copy.value,
                    copy.value / our_pack.value, copy.value / our_unpack.value);
        if (gather != nullptr) {
            std::printf(" %8.2f", gb / plain.value);
        }
        std::puts("");
        std::fflush(stdout);
        MPI_Type_free(&type);
    }
    MPI_Finalize();
}
