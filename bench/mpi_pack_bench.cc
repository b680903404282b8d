// MPI_Pack and MPI_Unpack of an MPI library against the host executor, in turns in one process,
// so that a noisy machine disturbs both alike. Prints the best of many turns, GB/s of payload, and
// for comparison a memcpy that reads and writes as many bytes of each side as the layout's cache
// lines hold.
//
//     make libcuda_nc_core.la
//     mpicxx -O2 -std=c++17 -Isrc bench/mpi_pack_bench.cc .libs/libcuda_nc_core.a -ldl -lpthread
//     ./a.out [bytes of each layout [turns [part of a layout's name]]]
//
// With FRAGMENT=8192 in the environment the executor moves fragments of that size.
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "bench_layout.hpp"
#include "ucs/exec/host/host_executor.hpp"

using namespace cuda_nc;

namespace {

MPI_Datatype make_type(const bench::bench_case &one) {
    MPI_Datatype type;
    if (one.list.size() == 1) {
        const uint64_t length = one.list[0].length;
        if (length % 8 == 0) {
            MPI_Type_contiguous(static_cast<int>(length / 8), MPI_DOUBLE, &type);
        } else if (length % 4 == 0) {
            MPI_Type_contiguous(static_cast<int>(length / 4), MPI_FLOAT, &type);
        } else {
            MPI_Type_contiguous(static_cast<int>(length), MPI_CHAR, &type);
        }
    } else {
        std::vector<int> lengths;
        std::vector<MPI_Aint> displacements;
        uint64_t all = 8;
        for (const bench::piece &p : one.list) {
            all |= p.length;
        }
        const bool doubles = all % 8 == 0;
        for (const bench::piece &p : one.list) {
            lengths.push_back(static_cast<int>(doubles ? p.length / 8 : p.length));
            displacements.push_back(p.displacement);
        }
        MPI_Type_create_hindexed(static_cast<int>(lengths.size()), lengths.data(),
                                 displacements.data(), doubles ? MPI_DOUBLE : MPI_CHAR, &type);
    }
    for (const layout_dim &dim : one.dims) {
        MPI_Datatype outer;
        MPI_Type_create_hvector(static_cast<int>(dim.count), 1, dim.stride, type, &outer);
        MPI_Type_free(&type);
        type = outer;
    }
    MPI_Type_commit(&type);
    return type;
}

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

struct best {
    double value = 1e30;
    void operator()(double time) { value = std::min(value, time); }
};

}  // namespace

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    const uint64_t total = argc > 1 ? std::strtoull(argv[1], nullptr, 0) : 16 << 20;
    const int turns = argc > 2 ? std::atoi(argv[2]) : 15;
    const char *text = std::getenv("FRAGMENT");
    const uint64_t fragment = text != nullptr ? std::strtoull(text, nullptr, 0) : UINT64_MAX;
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int version_length;
    MPI_Get_library_version(version, &version_length);
    std::printf("# %.40s; host executor %s; %llu bytes; best of %d; GB/s\n", version,
                exec::host_simd_name(), static_cast<unsigned long long>(total), turns);
    std::printf("%-20s %8s %8s %6s %8s %8s %6s %8s %6s\n", "layout", "MPI", "ours", "ratio",
                "MPI un", "ours un", "ratio", "lines", "ours/");
    for (const bench::bench_case &one : bench::bench_cases(total)) {
        if (argc > 3 && one.name.find(argv[3]) == std::string::npos) {
            continue;
        }
        const layout_ref folded = bench::fold(one);
        const layout_view &view = folded->view();
        MPI_Datatype type = make_type(one);
        const uint64_t size = view.packed_size;
        const uint64_t span = static_cast<uint64_t>(folded->upper_bound());
        const bench::memory buffer_memory = bench::allocate(span),
                            buffer2_memory = bench::allocate(span),
                            packed_memory = bench::allocate(size),
                            packed2_memory = bench::allocate(size),
                            scratch_memory = bench::allocate(size);
        char *const buffer = buffer_memory.get(), *const buffer2 = buffer2_memory.get();
        char *const packed = packed_memory.get(), *const packed2 = packed2_memory.get();
        char *const scratch = scratch_memory.get();
        const uint64_t touched = std::min(bench::touched_bytes(*folded), span);
        // Where the system put a buffer is worth a third of the speed: both sides use both.
        char *theirs = packed, *own = packed2;
        best mpi_pack, our_pack, mpi_unpack, our_unpack, copy;
        auto ours = [&](auto call) {
            for (uint64_t offset = 0; offset < size;) {
                const uint64_t length = std::min<uint64_t>(fragment, size - offset);
                call(offset, length);
                offset += length;
            }
        };
        auto run = [&](int what) {
            int position = 0;
            const int int_size = static_cast<int>(size);
            switch (what) {
                case 0:
                    return mpi_pack(seconds([&] {
                        MPI_Pack(buffer, 1, type, theirs, int_size, &position, MPI_COMM_SELF);
                    }));
                case 1:
                    return our_pack(seconds([&] {
                        ours([&](uint64_t offset, uint64_t length) {
                            exec::host_pack(view, buffer, offset, own + offset, length);
                        });
                    }));
                case 2:
                    return mpi_unpack(seconds([&] {
                        MPI_Unpack(theirs, int_size, &position, buffer2, 1, type, MPI_COMM_SELF);
                    }));
                case 3:
                    return our_unpack(seconds([&] {
                        ours([&](uint64_t offset, uint64_t length) {
                            exec::host_unpack(view, buffer2, offset, own + offset, length);
                        });
                    }));
                default:
                    return copy(
                        seconds([&] { bench::copy_lines(scratch, buffer, touched, size); }));
            }
        };
        std::vector<int> order = {0, 1, 2, 3, 4};
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
        std::printf("%-20s %8.2f %8.2f %6.2f %8.2f %8.2f %6.2f %8.2f %6.2f\n", one.name.c_str(),
                    gb / mpi_pack.value, gb / our_pack.value, mpi_pack.value / our_pack.value,
                    gb / mpi_unpack.value, gb / our_unpack.value,
                    mpi_unpack.value / our_unpack.value, gb / copy.value,
                    copy.value / our_pack.value);
        std::fflush(stdout);
        MPI_Type_free(&type);
    }
    MPI_Finalize();
}
