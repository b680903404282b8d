// Two ranks exchange messages whose two sides are laid out differently: contiguous memory on one
// side, a vector or a transpose on the other, host memory on one side. Vector to vector and
// contiguous to contiguous are the measures. Every byte is checked.
//
//   mpirun -np 2 mpi_sides [--memory cuda|sim|host] [--label TEXT] [--repeats N] [--largest BYTES]
//                          [--only NAME]
//
// On a simulated GPU the pairs that send from contiguous GPU memory are left out.
//
// A time is half of a round trip in which the sides change places: each rank sends with the first
// layout of its name and receives with the second.
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
    size_t largest = size_t(64) << 20;
} chosen;

long wrong_;

// Elements of 8 bytes.
enum class shape { contiguous, vector, transpose, packed };

unsigned char pattern(size_t i, int salt) {
    return static_cast<unsigned char>((i + 1) * 0x9E3779B97F4A7C15ull >> 56) ^
           static_cast<unsigned char>(salt * 77 + 1);
}

struct side {
    shape form;
    size_t bytes;
    MPI_Datatype type = MPI_DATATYPE_NULL;
    int count = 1;
    std::unique_ptr<test_memory> memory;

    side(shape form_, size_t bytes_, const std::string &where) : form(form_), bytes(bytes_) {
        const int elements = static_cast<int>(bytes / 8);
        if (form == shape::contiguous) {
            MPI_Type_dup(MPI_DOUBLE, &type);
            count = elements;
        } else if (form == shape::packed) {
            MPI_Type_dup(MPI_PACKED, &type);
            count = static_cast<int>(bytes);
        } else if (form == shape::vector) {  // rows of 64 bytes, as far apart
            MPI_Type_vector(elements / 8, 8, 16, MPI_DOUBLE, &type);
        } else {
            MPI_Datatype column, next;
            MPI_Type_vector(rows(), 1, columns(), MPI_DOUBLE, &column);
            MPI_Type_create_resized(column, 0, sizeof(double), &next);
            MPI_Type_contiguous(columns(), next, &type);
            MPI_Type_free(&column);
            MPI_Type_free(&next);
        }
        MPI_Type_commit(&type);
        memory = chosen.allocate(where, span());
    }
    ~side() { MPI_Type_free(&type); }
    side(const side &) = delete;
    side &operator=(const side &) = delete;

    int rows() const { return 128; }
    int columns() const { return static_cast<int>(bytes / 8) / rows(); }
    size_t span() const { return form == shape::vector ? 2 * bytes : bytes; }
    // Where byte `i` of the message lies.
    size_t place(size_t i) const {
        const size_t element = i / 8, byte = i % 8;
        switch (form) {
            case shape::vector:
                return i / 64 * 128 + i % 64;
            case shape::transpose: {
                const auto many = static_cast<size_t>(rows());
                return (element % many * static_cast<size_t>(columns()) + element / many) * 8 +
                       byte;
            }
            default:
                return i;
        }
    }
    void fill(int salt) {
        std::vector<unsigned char> image(span(), 0x5a);
        for (size_t i = 0; i < bytes; ++i) {
            image[place(i)] = pattern(i, salt);
        }
        memory->write(image);
    }
    void clear() { memory->write(std::vector<unsigned char>(span(), 0xa5)); }
    void check(int salt) const {
        std::vector<unsigned char> wanted(span(), 0xa5), seen = memory->read();
        for (size_t i = 0; i < bytes; ++i) {
            wanted[place(i)] = pattern(i, salt);
        }
        for (size_t i = 0; i < wanted.size(); ++i) {
            wrong_ += wanted[i] != seen[i];
        }
    }
};

double round_trip(side &send, side &receive) {
    const double start = MPI_Wtime();
    for (int turn = 0; turn < 2; ++turn) {
        if (turn == chosen.rank) {
            MPI_Send(send.memory->address(), send.count, send.type, 1 - chosen.rank, 1,
                     MPI_COMM_WORLD);
        } else {
            MPI_Recv(receive.memory->address(), receive.count, receive.type, 1 - chosen.rank, 1,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    }
    return (MPI_Wtime() - start) / 2 * 1e6;
}

struct pair {
    const char *name;
    shape from, to;
    bool host_from, host_to;
};

const pair pairs[] = {
    {"vector-vector", shape::vector, shape::vector, false, false},
    {"contig-contig", shape::contiguous, shape::contiguous, false, false},
    {"vector-contig", shape::vector, shape::contiguous, false, false},
    {"contig-vector", shape::contiguous, shape::vector, false, false},
    {"vector-packed", shape::vector, shape::packed, false, false},
    {"transpose-contig", shape::transpose, shape::contiguous, false, false},
    {"contig-transpose", shape::contiguous, shape::transpose, false, false},
    {"transpose-vector", shape::transpose, shape::vector, false, false},
    {"vector-hostvector", shape::vector, shape::vector, false, true},
    {"vector-hostcontig", shape::vector, shape::contiguous, false, true},
    {"hostvector-vector", shape::vector, shape::vector, true, false},
    {"hostcontig-vector", shape::contiguous, shape::vector, true, false},
};

void run(const pair &what, size_t bytes) {
    side send(what.from, bytes, what.host_from ? "host" : chosen.memory);
    side receive(what.to, bytes, what.host_to ? "host" : chosen.memory);
    send.fill(chosen.rank);
    receive.clear();
    MPI_Barrier(MPI_COMM_WORLD);
    round_trip(send, receive);
    receive.check(1 - chosen.rank);
    receive.clear();
    MPI_Barrier(MPI_COMM_WORLD);
    // A way that is very slow is not measured for long.
    const double first = round_trip(send, receive);
    int repeats = std::max(3, std::min(chosen.repeats, static_cast<int>(300000 / first)));
    MPI_Bcast(&repeats, 1, MPI_INT, 0, MPI_COMM_WORLD);
    std::vector<double> times;
    for (int i = 0; i < repeats + 3; ++i) {
        const double time = round_trip(send, receive);
        if (i >= 3) {
            times.push_back(time);
        }
    }
    receive.check(1 - chosen.rank);
    if (chosen.rank == 0) {
        std::printf("%s %-18s %9zu B: %10.1f us\n", chosen.label.c_str(), what.name, bytes,
                    cuda_nc::tools::median_of(times));
        std::fflush(stdout);
    }
}

}  // namespace

int main(int argc, char **argv) {
    CLI::App app("Messages with differently laid out sides: mpirun -np 2 mpi_sides", "mpi_sides");
    chosen.add_options(&app);
    app.add_option("--only", chosen.only, "Pairs whose names contain this");
    app.add_option("--repeats", chosen.repeats, "Round trips of each pair, at most")
        ->capture_default_str();
    app.add_option("--largest", chosen.largest, "Bytes of the largest message")
        ->capture_default_str();
    CLI11_PARSE(app, argc, argv);
    chosen.start(&argc, &argv);
    for (size_t bytes = size_t(64) << 10; bytes <= chosen.largest;
         bytes *= bytes == 64 << 10 ? 16 : 8) {
        for (const pair &what : pairs) {
            // UCX itself reads what is contiguous, and does not know a simulated GPU's memory.
            const bool left_out =
                chosen.memory == "sim" && what.from == shape::contiguous && !what.host_from;
            if (!left_out && std::string(what.name).find(chosen.only) != std::string::npos) {
                run(what, bytes);
            }
        }
    }
    return chosen.finish(wrong_);
}
