/*
 * A library that uses MPI: rank 0 sends a vector to rank 1, between host memory, and between memory
 * of the simulated GPU where the product is loaded. Prints RIGHT, or what is wrong.
 */
#include <dlfcn.h>
#include <mpi.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { blocks = 5000, length = 8, stride = 24, bytes = blocks * stride };

static void *find(const char *symbol) {
    void *handle = dlopen("libcuda_nc.so.0", RTLD_NOW | RTLD_NOLOAD);
    return handle != NULL ? dlsym(handle, symbol) : NULL;
}

static int rank;

static int exchange(char *buffer, void (*copy)(void *, const void *, size_t)) {
    static char host[bytes];
    MPI_Datatype vector;
    int i;
    MPI_Type_vector(blocks, length, stride, MPI_BYTE, &vector);
    MPI_Type_commit(&vector);
    for (i = 0; i < bytes; ++i) {
        host[i] = rank == 0 ? (char)(i * 13) : 0;
    }
    copy(buffer, host, bytes);
    if (rank == 0) {
        MPI_Send(buffer, 1, vector, 1, 1, MPI_COMM_WORLD);
    } else {
        MPI_Recv(buffer, 1, vector, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Type_free(&vector);
    copy(host, buffer, bytes);
    for (i = 0; i < bytes; ++i) {
        if (host[i] != (rank == 0 || i % stride < length ? (char)(i * 13) : 0)) {
            printf("WRONG byte %d of MPI's vector\n", i);
            return 1;
        }
    }
    return 0;
}

static void copy_on_host(void *to, const void *from, size_t size) {
    memcpy(to, from, size);
}

int mpi_open(void) {
    int status = MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return status;
}

int mpi_run(void) {
    static char buffer[bytes];
    void *(*gpu_malloc)(size_t) = find("cuda_nc_sim_malloc");
    void (*gpu_copy)(void *, const void *, size_t) = find("cuda_nc_sim_memcpy");
    int result = exchange(buffer, copy_on_host);
    if (result == 0 && gpu_malloc != NULL) {
        result = exchange(gpu_malloc(bytes), gpu_copy);
    }
    if (result == 0) {
        printf("RIGHT mpi\n");
    }
    return result;
}

int mpi_close(void) {
    return MPI_Finalize();
}
