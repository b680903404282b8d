/*
 * How an OpenSHMEM library can do shmem_double_iput on GPU memory: a strided put over UCP into the
 * other process's symmetric memory, by one call of the C API.
 *
 *     ./shmem_put [host|cuda|sim]
 */
#include <cuda_nc/cuda_nc.h>

#include "two_processes.h"

enum { ELEMENTS = 100000, TARGET_STRIDE = 3, SOURCE_STRIDE = 2 }; /* strides in elements */
enum { SYMMETRIC = ELEMENTS * TARGET_STRIDE, BYTES = SYMMETRIC * (int)sizeof(double) };

/* Element i of `source` becomes element i * target_stride of the other process's symmetric array.
 * Returns when `source` may be used again; a quiet makes the put complete. */
static void double_iput(struct peer *p, uint64_t target, const double *source,
                        ptrdiff_t target_stride, ptrdiff_t source_stride, size_t number) {
    const int64_t element = sizeof(double), count = (int64_t)number;
    cuda_nc_layout_t from, to;
    check(cuda_nc_layout_create_vector(count, element, source_stride * element, &from), "source");
    check(cuda_nc_layout_create_vector(count, element, target_stride * element, &to), "target");
    const ucp_request_param_t param = {0};
    peer_finish(p, cuda_nc_put_nbx(p->ep, source, from, target, p->key, to, &param),
                "cuda_nc_put_nbx");
    cuda_nc_layout_destroy(from);
    cuda_nc_layout_destroy(to);
}

static void quiet(struct peer *p) {
    const ucp_request_param_t param = {0};
    peer_finish(p, ucp_worker_flush_nbx(p->worker, &param), "ucp_worker_flush_nbx");
}

int main(int argc, char **argv) {
    const struct memory *memory = memory_named(argc > 1 ? argv[1] : "host");
    struct peer p = peer_start();
    memory->choose_gpu(p.rank);
    double *symmetric = memory_allocate(memory, BYTES), *own = memory_allocate(memory, BYTES);
    double *on_host = memory_allocate(memory_named("host"), BYTES);
    for (int i = 0; i < SYMMETRIC; ++i) {
        on_host[i] = -1;
    }
    memory->copy(symmetric, on_host, BYTES);
    for (int i = 0; i < SYMMETRIC; ++i) {
        on_host[i] = p.rank * 1e6 + i;
    }
    memory->copy(own, on_host, BYTES);
    peer_connect(&p, symmetric, BYTES);

    peer_barrier(&p);
    double_iput(&p, p.address, own, TARGET_STRIDE, SOURCE_STRIDE, ELEMENTS);
    quiet(&p);
    peer_barrier(&p);

    memory->copy(on_host, symmetric, BYTES);
    long wrong = 0;
    for (int i = 0; i < SYMMETRIC; ++i) {
        const double sent = (1 - p.rank) * 1e6 + i / TARGET_STRIDE * SOURCE_STRIDE;
        wrong += on_host[i] != (i % TARGET_STRIDE == 0 ? sent : -1);
    }
    printf("shmem_put: rank %d, %s memory, %d elements, stride %d to %d: %ld wrong elements\n",
           p.rank, memory->name, ELEMENTS, SOURCE_STRIDE, TARGET_STRIDE, wrong);
    fflush(stdout);
    const int status = peer_end(&p, wrong);
    memory->release(symmetric);
    memory->release(own);
    free(on_host);
    return status;
}
