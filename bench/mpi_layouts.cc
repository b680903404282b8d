// Two ranks exchange derived datatypes, as any MPI program would. Every byte is compared.
//
//   mpirun -np 2 mpi_layouts --layout NAME [--memory host|cuda|sim] [--label TEXT]
//                            [--output FILE] [--quick] [--bytes N]
//   mpi_layouts --list
//
// Appends one JSON line: the half round trip in microseconds (median, best, and the 10th and the
// 90th percentile as spread_low_us and spread_high_us), payload bytes, and how many bytes were
// wrong on both sides, gaps included. Uses MPI and CLI11's headers alone; finds the CUDA driver at
// run time.
#include <mpi.h>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "bench/layout_catalogue.hpp"
#include "bench/test_memory.hpp"
#include "tools/perftest/support/statistics.hpp"

namespace {

struct options {
    std::string layout, memory = "host", label = "mpi", output;
    size_t bytes = 0;
    bool quick = false, list = false;

    double seconds() const { return quick ? 0.4 : 2.0; }  // of timing
};

unsigned char pattern(size_t index, unsigned salt) {
    size_t mixed = (index + 1) * 0x9E3779B97F4A7C15ull + salt * 0xD1B54A32D192ED03ull;
    return static_cast<unsigned char>(mixed >> 56);
}

std::vector<unsigned char> filled(size_t size, unsigned salt) {
    std::vector<unsigned char> bytes(size);
    for (size_t i = 0; i < size; ++i) {
        bytes[i] = pattern(i, salt);
    }
    return bytes;
}

// Wrong bytes of `found`: covered ones must be the sender's, all others the receiver's own.
size_t wrong_bytes(const std::vector<unsigned char> &found, const catalogue_entry &entry,
                   unsigned sender_salt, unsigned own_salt) {
    std::vector<unsigned char> expected = filled(found.size(), own_salt);
    for (const span &one : entry.spans) {
        for (size_t i = one.offset; i < one.offset + one.length; ++i) {
            expected[i] = pattern(i, sender_salt);
        }
    }
    size_t wrong = 0;
    for (size_t i = 0; i < found.size(); ++i) {
        wrong += found[i] != expected[i];
    }
    return wrong;
}

// Bytes that arrive contiguous must be in the order of the type map.
size_t wrong_order(const std::vector<unsigned char> &packed, const catalogue_entry &entry,
                   unsigned sender_salt) {
    size_t wrong = 0, at = 0;
    for (const span &one : entry.spans) {
        for (size_t i = one.offset; i < one.offset + one.length; ++i, ++at) {
            wrong += packed[at] != pattern(i, sender_salt);
        }
    }
    return wrong;
}

double exchange(test_memory &send, test_memory &receive, MPI_Datatype type, int rank) {
    double start = MPI_Wtime();
    if (rank == 0) {
        MPI_Send(send.address(), 1, type, 1, 1, MPI_COMM_WORLD);
        MPI_Recv(receive.address(), 1, type, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(receive.address(), 1, type, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(send.address(), 1, type, 0, 1, MPI_COMM_WORLD);
    }
    return (MPI_Wtime() - start) / 2;
}

size_t check_order(test_memory &send, const catalogue_entry &entry, MPI_Datatype type, int rank) {
    std::vector<unsigned char> packed(entry.payload);
    int size = static_cast<int>(entry.payload);
    MPI_Request request;
    MPI_Irecv(packed.data(), size, MPI_BYTE, 1 - rank, 2, MPI_COMM_WORLD, &request);
    MPI_Send(send.address(), 1, type, 1 - rank, 2, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    return wrong_order(packed, entry, 1 - static_cast<unsigned>(rank));
}

int run(const options &chosen) {
    int rank = 0, size = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const catalogue_entry entry = make_entry(chosen.layout, chosen.bytes);
    if (size != 2 || entry.spans.empty()) {
        if (rank == 0) {
            std::fprintf(stderr, size != 2 ? "mpi_layouts needs two ranks\n"
                                           : "mpi_layouts: no layout has this name; see --list\n");
        }
        return 2;
    }
    auto send = test_memory::make(chosen.memory, entry.extent, rank);
    auto receive = test_memory::make(chosen.memory, entry.extent, rank);
    if (!send || !receive) {
        std::fprintf(stderr, "rank %d: no %s memory of %zu bytes\n", rank, chosen.memory.c_str(),
                     entry.extent);
        return 2;
    }
    MPI_Datatype type = entry.make_type();
    MPI_Type_commit(&type);
    const unsigned own = 2 + static_cast<unsigned>(rank), peer = 1 - static_cast<unsigned>(rank);
    send->write(filled(entry.extent, static_cast<unsigned>(rank)));
    receive->write(filled(entry.extent, own));

    MPI_Barrier(MPI_COMM_WORLD);
    double first = exchange(*send, *receive, type, rank);
    unsigned long long wrong = wrong_bytes(receive->read(), entry, peer, own);
    wrong += check_order(*send, entry, type, rank);

    receive->write(filled(entry.extent, own));
    std::vector<double> times;
    int repeats = static_cast<int>(
        std::max(3.0, std::min(300.0, chosen.seconds() / 2 / std::max(first, 1e-6))));
    MPI_Bcast(&repeats, 1, MPI_INT, 0, MPI_COMM_WORLD);
    for (int i = 0; i < repeats; ++i) {
        times.push_back(exchange(*send, *receive, type, rank) * 1e6);
    }
    wrong += wrong_bytes(receive->read(), entry, peer, own);
    unsigned long long all_wrong = 0;
    MPI_Reduce(&wrong, &all_wrong, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Type_free(&type);

    if (rank == 0) {
        const cuda_nc::tools::summary us = cuda_nc::tools::summarise(std::move(times));
        char line[512];
        std::snprintf(line, sizeof(line),
                      "{\"label\": \"%s\", \"memory\": \"%s\", \"layout\": \"%s\", \"bytes\": %zu, "
                      "\"microseconds\": %.2f, \"best\": %.2f, \"spread_low_us\": %.2f, "
                      "\"spread_high_us\": %.2f, \"repeats\": %d, \"wrong_bytes\": %llu}\n",
                      chosen.label.c_str(), chosen.memory.c_str(), chosen.layout.c_str(),
                      entry.payload, us.median, us.least, us.p10, us.p90, repeats, all_wrong);
        std::fputs(line, stdout);
        if (!chosen.output.empty()) {
            std::ofstream(chosen.output, std::ios::app) << line;
        }
    }
    return 0;
}

}  // namespace

int main(int argc, char **argv) {
    options chosen;
    CLI::App app("Two ranks exchange a derived datatype: mpirun -np 2 mpi_layouts --layout NAME",
                 "mpi_layouts");
    app.add_option("--layout", chosen.layout, "Name of a layout, see --list");
    app.add_option("--memory", chosen.memory, "Where the buffers lie: host, cuda or sim")
        ->check(CLI::IsMember({"host", "cuda", "sim"}))
        ->capture_default_str();
    app.add_option("--label", chosen.label, "Text for the result line")->capture_default_str();
    app.add_option("--output", chosen.output, "Append the result line to this file");
    app.add_option("--bytes", chosen.bytes,
                   "About so many payload bytes; 0: as many as in the demo")
        ->transform(CLI::AsSizeValue(false))
        ->capture_default_str();
    app.add_flag("--quick", chosen.quick, "Fewer repeats");
    app.add_flag("--list", chosen.list, "Print the names of the layouts");
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError &wrong) {
        return app.exit(wrong) == 0 ? 0 : 2;
    }
    if (chosen.list) {
        for (const std::string &name : catalogue_names()) {
            std::puts(name.c_str());
        }
        return 0;
    }
    MPI_Init(&argc, &argv);
    int status = run(chosen);
    MPI_Finalize();
    return status;
}
