// Rank 0 puts into and gets from a window of rank 1, with the same layout on both sides: contiguous
// memory, rows of 4 KiB, and blocks of 8 B, as far apart as they are long. Every byte is checked.
//
//   mpirun -np 2 mpi_windows [--memory cuda|sim|host] [--label TEXT] [--repeats N]
//                            [--smallest BYTES] [--largest BYTES] [--only NAME]
//
// A time is that of one MPI_Put or MPI_Get and the MPI_Win_flush behind it, in an epoch of
// MPI_Win_lock_all; meanwhile rank 1 waits in a barrier. Open MPI has several components for
// windows: OMPI_MCA_osc=ucx chooses the one that calls UCX's puts and gets.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "bench/two_ranks.hpp"
#include "tools/perftest/support/statistics.hpp"

namespace {

struct options : two_ranks {
    std::string only;
    int repeats = 100;
    size_t smallest = size_t(64) << 10, largest = size_t(16) << 20;
} chosen;

long wrong_;

struct form {
    const char *name;
    size_t block;  // bytes, which are followed by a gap as long; 0: contiguous
};
constexpr form forms[] = {{"contiguous", 0}, {"rows-4KiB", 4096}, {"blocks-8B", 8}};

unsigned char pattern(size_t i, int salt) {
    return static_cast<unsigned char>(
        ((i + 1) * 0x9E3779B97F4A7C15ull + static_cast<unsigned>(salt) * 0x2545F491ull) >> 52);
}

// Memory of both ranks that a layout covers, rank 1's part of a window.
class side {
  public:
    side(const form &what, size_t bytes) : what_(what), bytes_(bytes) {
        memory_ = chosen.allocate(chosen.memory, span());
        if (what.block == 0) {
            MPI_Type_contiguous(static_cast<int>(bytes / 8), MPI_DOUBLE, &type_);
        } else {
            const int length = static_cast<int>(what.block / 8);
            MPI_Type_vector(static_cast<int>(bytes / what.block), length, 2 * length, MPI_DOUBLE,
                            &type_);
        }
        MPI_Type_commit(&type_);
    }
    ~side() { MPI_Type_free(&type_); }
    side(const side &) = delete;
    side &operator=(const side &) = delete;

    void *address() const { return memory_->address(); }
    size_t span() const { return what_.block == 0 ? bytes_ : 2 * bytes_; }
    MPI_Datatype type() const { return type_; }
    bool is_gap(size_t i) const { return what_.block != 0 && i / what_.block % 2 != 0; }
    void fill(int salt) { memory_->write(image(salt, salt)); }
    // The blocks have one pattern, and the gaps another.
    void check(int blocks, int gaps) {
        const std::vector<unsigned char> wanted = image(blocks, gaps), seen = memory_->read();
        for (size_t i = 0; i < wanted.size(); ++i) {
            wrong_ += wanted[i] != seen[i];
        }
    }

  private:
    std::vector<unsigned char> image(int blocks, int gaps) const {
        std::vector<unsigned char> all(span());
        for (size_t i = 0; i < all.size(); ++i) {
            all[i] = pattern(i, is_gap(i) ? gaps : blocks);
        }
        return all;
    }

    const form &what_;
    const size_t bytes_;
    MPI_Datatype type_ = MPI_DATATYPE_NULL;
    std::unique_ptr<test_memory> memory_;
};

double move(const side &local, bool puts, MPI_Win window) {
    const double start = MPI_Wtime();
    (puts ? MPI_Put(local.address(), 1, local.type(), 1, 0, 1, local.type(), window)
          : MPI_Get(local.address(), 1, local.type(), 1, 0, 1, local.type(), window));
    MPI_Win_flush(1, window);
    return (MPI_Wtime() - start) * 1e6;
}

// Salts: what a rank has, and what comes.
constexpr int own_salt[] = {1, 2};

void run(const form &what, bool puts, size_t bytes) {
    side memory(what, bytes);
    memory.fill(own_salt[chosen.rank]);
    MPI_Win window;
    MPI_Win_create(memory.address(), static_cast<MPI_Aint>(memory.span()), 1, MPI_INFO_NULL,
                   MPI_COMM_WORLD, &window);
    std::vector<double> times;
    MPI_Win_lock_all(0, window);
    if (chosen.rank == 0) {
        move(memory, puts, window);
        // A way that is very slow is not measured for long.
        const double first = move(memory, puts, window);
        const int repeats = std::max(3, std::min(chosen.repeats, static_cast<int>(300000 / first)));
        for (int i = 0; i < repeats + 3; ++i) {
            const double time = move(memory, puts, window);
            if (i >= 3) {
                times.push_back(time);
            }
        }
    }
    MPI_Win_unlock_all(window);
    MPI_Barrier(MPI_COMM_WORLD);
    const int origin = puts ? 0 : 1;  // where the bytes come from
    memory.check(own_salt[origin], own_salt[chosen.rank]);
    MPI_Win_free(&window);
    if (chosen.rank == 0) {
        std::printf("%s %-4s %-11s %9zu B: %10.1f us\n", chosen.label.c_str(), puts ? "put" : "get",
                    what.name, bytes, cuda_nc::tools::median_of(times));
        std::fflush(stdout);
    }
}

}  // namespace

int main(int argc, char **argv) {
    CLI::App app("Puts and gets of derived types to windows: mpirun -np 2 mpi_windows",
                 "mpi_windows");
    chosen.add_options(&app);
    app.add_option("--only", chosen.only, "Layouts whose names contain this");
    app.add_option("--repeats", chosen.repeats, "Puts or gets of each kind, at most")
        ->capture_default_str();
    app.add_option("--smallest", chosen.smallest, "Bytes of the smallest one")
        ->check(CLI::Range(size_t(4096), size_t(1) << 30))
        ->capture_default_str();
    app.add_option("--largest", chosen.largest, "Bytes of the largest one")->capture_default_str();
    CLI11_PARSE(app, argc, argv);
    chosen.start(&argc, &argv);
    for (size_t bytes = chosen.smallest / 4096 * 4096; bytes <= chosen.largest; bytes *= 16) {
        for (const form &what : forms) {
            for (bool puts : {true, false}) {
                if (std::string(what.name).find(chosen.only) != std::string::npos) {
                    run(what, puts, bytes);
                }
            }
        }
    }
    return chosen.finish(wrong_);
}
