// What the first GPU messages of a process cost: the time of each of the first messages between two
// ranks, from the send to the receiver's answer, and of the first message of other layouts.
//
//   mpirun -np 2 first_message [--memory host|cuda|sim] [--label TEXT] [--bytes N] [--contiguous]
//
// CUDA's context and the connection exist before the clock starts: the buffers were allocated and
// an empty message was exchanged. Uses MPI alone.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "bench/two_ranks.hpp"

namespace {

struct options : two_ranks {
    size_t bytes = 64 << 10;
    bool contiguous = false;
} chosen;

// Half of the bytes that `span` bytes have, laid out so.
MPI_Datatype layout(const std::string &name, size_t bytes) {
    const int number = static_cast<int>(bytes);
    MPI_Datatype type = MPI_DATATYPE_NULL;
    if (name == "contiguous") {
        MPI_Type_contiguous(number, MPI_BYTE, &type);
    } else if (name == "indexed") {
        std::vector<int> lengths, places;
        for (int at = 0; at < number; at += 64) {
            lengths.push_back(64);
            places.push_back(2 * at + at / 64 % 3 * 8);
        }
        MPI_Type_indexed(static_cast<int>(lengths.size()), lengths.data(), places.data(), MPI_BYTE,
                         &type);
    } else if (name == "transpose") {
        const int side = 64, columns = number / 8 / side;
        MPI_Datatype column;
        MPI_Type_vector(side, 1, columns, MPI_DOUBLE, &column);
        MPI_Datatype resized;
        MPI_Type_create_resized(column, 0, sizeof(double), &resized);
        MPI_Type_contiguous(columns, resized, &type);
        MPI_Type_free(&column);
        MPI_Type_free(&resized);
    } else {
        const int block = std::stoi(name);
        MPI_Type_vector(number / block, block, 2 * block, MPI_BYTE, &type);
    }
    MPI_Type_commit(&type);
    return type;
}

double exchange(test_memory &buffer, MPI_Datatype type) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    if (chosen.rank == 0) {
        MPI_Send(buffer.address(), 1, type, 1, 1, MPI_COMM_WORLD);
        MPI_Recv(nullptr, 0, MPI_BYTE, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(buffer.address(), 1, type, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(nullptr, 0, MPI_BYTE, 0, 2, MPI_COMM_WORLD);
    }
    return (MPI_Wtime() - start) * 1e6;
}

}  // namespace

int main(int argc, char **argv) {
    CLI::App app("What the first GPU messages cost: mpirun -np 2 first_message", "first_message");
    chosen.add_options(&app);
    app.add_option("--bytes", chosen.bytes, "Bytes of a message, a multiple of 4096")
        ->capture_default_str();
    app.add_flag("--contiguous", chosen.contiguous, "Contiguous messages alone");
    CLI11_PARSE(app, argc, argv);
    chosen.start(&argc, &argv);
    const size_t span = 4 * chosen.bytes;
    std::unique_ptr<test_memory> buffer = chosen.allocate(chosen.memory, span);
    const std::vector<std::string> names =
        chosen.contiguous ? std::vector<std::string>{"contiguous"}
                          : std::vector<std::string>{"64", "8", "4096", "indexed", "transpose"};
    for (const std::string &name : names) {
        MPI_Datatype type = layout(name, chosen.bytes);
        std::string times;
        for (int i = 0; i < 5; ++i) {
            char text[32];
            std::snprintf(text, sizeof(text), " %9.1f", exchange(*buffer, type));
            times += text;
        }
        std::vector<double> later;
        for (int i = 0; i < 20; ++i) {
            later.push_back(exchange(*buffer, type));
        }
        std::sort(later.begin(), later.end());
        if (chosen.rank == 0) {
            std::printf("%-12s %-10s first five, us:%s  later: %9.1f\n", chosen.label.c_str(),
                        name.c_str(), times.c_str(), later[later.size() / 2]);
            std::fflush(stdout);
        }
        MPI_Type_free(&type);
    }
    buffer.reset();
    MPI_Finalize();
    return 0;
}
