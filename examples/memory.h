/*
 * Where an example keeps its data: host memory, a CUDA GPU's (built with CUDA=DIR), or that of the
 * plugin's simulated GPU (built with SIM=1, run with UCX_CUDA_NC_GPU=sim). C and C++.
 */
#ifndef EXAMPLES_MEMORY_H
#define EXAMPLES_MEMORY_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef WITH_CUDA
#include <cuda_runtime.h>
#endif
#ifdef WITH_SIM
#include <cuda_nc/cuda_nc.h>
#endif

struct memory {
    const char *name;
    void (*choose_gpu)(int rank);     /* ranks take turns over the GPUs */
    void *(*allocate)(size_t length); /* NULL where there is none */
    void (*release)(void *address);
    /* Either side may be host memory. The bytes are there on return. */
    void (*copy)(void *destination, const void *source, size_t length);
};

static inline void memory_choose_none(int rank) {
    (void)rank;
}
static inline void memory_copy_host(void *destination, const void *source, size_t length) {
    memcpy(destination, source, length);
}

#ifdef WITH_CUDA
static inline void memory_check_cuda(cudaError_t error, const char *what) {
    if (error != cudaSuccess) {
        fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
        exit(1);
    }
}
static inline void memory_choose_cuda(int rank) {
    int gpus = 0;
    memory_check_cuda(cudaGetDeviceCount(&gpus), "cudaGetDeviceCount");
    memory_check_cuda(cudaSetDevice(rank % gpus), "cudaSetDevice");
}
static inline void *memory_allocate_cuda(size_t length) {
    void *address = NULL;
    return cudaMalloc(&address, length) == cudaSuccess ? address : NULL;
}
static inline void memory_release_cuda(void *address) {
    cudaFree(address);
}
static inline void memory_copy_cuda(void *destination, const void *source, size_t length) {
    memory_check_cuda(cudaMemcpy(destination, source, length, cudaMemcpyDefault), "cudaMemcpy");
    /* MPI and UCX read on other streams, and cudaMemcpy to a GPU may return early. */
    memory_check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}
#endif

/* By the program's argument; ends the program where it names none that was built in. */
static inline const struct memory *memory_named(const char *name) {
    static const struct memory all[] = {
        {"host", memory_choose_none, malloc, free, memory_copy_host},
#ifdef WITH_CUDA
        {"cuda", memory_choose_cuda, memory_allocate_cuda, memory_release_cuda, memory_copy_cuda},
#endif
#ifdef WITH_SIM
        {"sim", memory_choose_none, cuda_nc_sim_malloc, cuda_nc_sim_free, cuda_nc_sim_memcpy},
#endif
    };
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); ++i) {
        if (strcmp(all[i].name, name) == 0) {
            return &all[i];
        }
    }
    fprintf(stderr, "no memory is called '%s' in this build; there are:", name);
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); ++i) {
        fprintf(stderr, " %s", all[i].name);
    }
    fprintf(stderr, "\n");
    exit(2);
}

/* Ends the program where there is no memory. */
static inline void *memory_allocate(const struct memory *memory, size_t length) {
    void *address = memory->allocate(length);
    if (address == NULL) {
        fprintf(stderr, "no %zu bytes of %s memory\n", length, memory->name);
        exit(1);
    }
    return address;
}

#endif
