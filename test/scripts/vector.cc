// Two ranks: a column of a matrix is sent and every byte of the receiver's matrix is checked.
#include <mpi.h>

#include <cstdio>
#include <vector>

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const int n = 1000;
    MPI_Datatype column;
    MPI_Type_vector(n, 1, n, MPI_DOUBLE, &column);
    MPI_Type_commit(&column);
    std::vector<double> matrix(static_cast<size_t>(n) * n, -1.0);
    int wrong = 0;
    if (rank == 0) {
        for (int i = 0; i < n; ++i) {
            matrix[static_cast<size_t>(i) * n] = i;
        }
        MPI_Send(matrix.data(), 1, column, 1, 0, MPI_COMM_WORLD);
    } else if (rank == 1) {
        MPI_Recv(matrix.data(), 1, column, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < n; ++i) {
            for (int j = 0; j < n; ++j) {
                wrong += matrix[static_cast<size_t>(i) * n + j] != (j == 0 ? i : -1.0);
            }
        }
        std::puts(wrong == 0 ? "RIGHT" : "WRONG");
    }
    MPI_Type_free(&column);
    MPI_Finalize();
    return wrong != 0;
}
