/*
 * Columns of a matrix, by MPI_Type_vector.
 *
 *     mpirun -np 2 ./mpi_vector [host|cuda|sim]
 *
 * The ranks form a ring. Each has a matrix whose first WIDTH columns are a copy of the last WIDTH
 * columns of its left neighbour. MPI's errors end the job, which is MPI's default.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "memory.h"

enum { ROWS = 4096, COLUMNS = 512, WIDTH = 8 }; /* elements */
enum { EXCHANGES = 20 };

/* What `rank` has in a place of its matrix before any exchange. */
static double initial(int rank, int row, int column) {
    return ((double)rank * ROWS + row) * COLUMNS + column;
}

static void fill(double *matrix, int rank) {
    for (int row = 0; row < ROWS; ++row) {
        for (int column = 0; column < COLUMNS; ++column) {
            matrix[row * COLUMNS + column] = initial(rank, row, column);
        }
    }
}

/* Places that are wrong after the exchange: ghost columns hold the neighbour's, others are as
 * before. */
static long count_wrong(const double *matrix, int rank, int left) {
    long wrong = 0;
    for (int row = 0; row < ROWS; ++row) {
        for (int column = 0; column < COLUMNS; ++column) {
            double expected = column < WIDTH ? initial(left, row, COLUMNS - WIDTH + column)
                                             : initial(rank, row, column);
            wrong += matrix[row * COLUMNS + column] != expected;
        }
    }
    return wrong;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const int left = (rank + ranks - 1) % ranks, right = (rank + 1) % ranks;

    const struct memory *memory = memory_named(argc > 1 ? argv[1] : "host");
    memory->choose_gpu(rank);
    const size_t bytes = sizeof(double) * ROWS * COLUMNS;
    double *matrix = memory_allocate(memory, bytes);
    double *on_host = memory_allocate(memory_named("host"), bytes);
    fill(on_host, rank);
    memory->copy(matrix, on_host, bytes);

    /* WIDTH neighbouring elements of each row. The buffer's address says which columns. */
    MPI_Datatype columns;
    MPI_Type_vector(ROWS, WIDTH, COLUMNS, MPI_DOUBLE, &columns);
    MPI_Type_commit(&columns);

    double fastest = 1e9;
    for (int i = 0; i < EXCHANGES; ++i) { /* the first one sets up connections and memory */
        MPI_Barrier(MPI_COMM_WORLD);
        double start = MPI_Wtime();
        MPI_Sendrecv(matrix + COLUMNS - WIDTH, 1, columns, right, 0, matrix, 1, columns, left, 0,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        double seconds = MPI_Wtime() - start;
        fastest = seconds < fastest ? seconds : fastest;
    }

    memory->copy(on_host, matrix, bytes);
    long wrong = count_wrong(on_host, rank, left);
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &fastest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (rank == 0) {
        printf(
            "mpi_vector: %d ranks, %s memory, %d rows of %zu bytes: %.1f us, %ld wrong elements\n",
            ranks, memory->name, ROWS, WIDTH * sizeof(double), fastest * 1e6, wrong);
    }

    MPI_Type_free(&columns);
    memory->release(matrix);
    free(on_host);
    MPI_Finalize();
    return wrong != 0;
}
