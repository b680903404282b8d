// What benchmarks of two MPI ranks share: options, start, buffers, end.
#pragma once

#include <mpi.h>

#include <CLI/CLI.hpp>

#include <cstdio>
#include <memory>
#include <string>

#include "bench/test_memory.hpp"

struct two_ranks {
    std::string memory = "cuda", label = "mpi";
    int rank = 0;  // since start()

    void add_options(CLI::App *app) {
        app->add_option("--memory", memory, "Where the buffers lie: host, cuda or sim")
            ->check(CLI::IsMember({"host", "cuda", "sim"}))
            ->capture_default_str();
        app->add_option("--label", label, "Text for the result lines")->capture_default_str();
    }

    // Ends a job of another number of ranks.
    void start(int *argc_p, char ***argv_p) {
        MPI_Init(argc_p, argv_p);
        int size;
        MPI_Comm_size(MPI_COMM_WORLD, &size);
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        if (size != 2) {
            MPI_Abort(MPI_COMM_WORLD, 2);
        }
    }

    // Ends the job where there is no such memory.
    std::unique_ptr<test_memory> allocate(const std::string &kind, size_t size) const {
        std::unique_ptr<test_memory> made = test_memory::make(kind, size, rank);
        if (made == nullptr) {
            std::fprintf(stderr, "no %s memory\n", kind.c_str());
            MPI_Abort(MPI_COMM_WORLD, 2);
        }
        return made;
    }

    // Rank 0 tells how many bytes both found wrong. Returns the exit status.
    int finish(long wrong_here) const {
        long wrong = 0;
        MPI_Reduce(&wrong_here, &wrong, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
        if (rank == 0) {
            std::printf("%s wrong bytes: %ld\n", label.c_str(), wrong);
        }
        MPI_Finalize();
        return wrong != 0;
    }
};
