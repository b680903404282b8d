/*
 * A paged key-value cache between two processes: pages of a sequence, scattered over the cache of
 * one GPU, go to pages that are scattered otherwise over the cache of another. One put for all.
 *
 *     ./paged_cache [host|cuda|sim]
 */
#include <cuda_nc/cuda_nc.h>

#include "two_processes.h"

enum { PAGE = 4096, CACHE_PAGES = 2000, SEQUENCE_PAGES = 600, BYTES = PAGE * CACHE_PAGES };

/* Which page of the cache holds page i of the sequence. */
static int64_t page_of(int rank, int i) {
    return rank == 0 ? i * 7 % CACHE_PAGES : (i * 11 + 5) % CACHE_PAGES;
}

static cuda_nc_layout_t sequence_layout(int rank) {
    int64_t pages[SEQUENCE_PAGES];
    cuda_nc_layout_t layout;
    for (int i = 0; i < SEQUENCE_PAGES; ++i) {
        pages[i] = page_of(rank, i);
    }
    check(cuda_nc_layout_create_indexed(SEQUENCE_PAGES, NULL, pages, PAGE, &layout), "pages");
    return layout;
}

static unsigned char byte_of(int rank, size_t place) {
    return (unsigned char)(place * 31 / 7 + (size_t)rank * 100);
}

/* Rank 1: the pages of the sequence are rank 0's, all others are as they were. */
static long count_wrong(const unsigned char *cache) {
    static int page_in[CACHE_PAGES]; /* page of the sequence, plus one; 0: none */
    for (int i = 0; i < SEQUENCE_PAGES; ++i) {
        page_in[page_of(1, i)] = i + 1;
    }
    long wrong = 0;
    for (size_t place = 0; place < BYTES; ++place) {
        const int page = page_in[place / PAGE] - 1;
        const unsigned char wanted =
            page < 0 ? byte_of(1, place)
                     : byte_of(0, (size_t)page_of(0, page) * PAGE + place % PAGE);
        wrong += cache[place] != wanted;
    }
    return wrong;
}

int main(int argc, char **argv) {
    const struct memory *memory = memory_named(argc > 1 ? argv[1] : "host");
    struct peer p = peer_start();
    memory->choose_gpu(p.rank);
    void *cache = memory_allocate(memory, BYTES);
    unsigned char *on_host = memory_allocate(memory_named("host"), BYTES);
    for (size_t i = 0; i < BYTES; ++i) {
        on_host[i] = byte_of(p.rank, i);
    }
    memory->copy(cache, on_host, BYTES);
    peer_connect(&p, cache, BYTES);

    peer_barrier(&p);
    if (p.rank == 0) { /* the one that has computed the sequence */
        cuda_nc_layout_t here = sequence_layout(0), there = sequence_layout(1);
        const ucp_request_param_t param = {0};
        peer_finish(&p, cuda_nc_put_nbx(p.ep, cache, here, p.address, p.key, there, &param),
                    "cuda_nc_put_nbx");
        peer_finish(&p, ucp_ep_flush_nbx(p.ep, &param), "ucp_ep_flush_nbx");
        cuda_nc_layout_destroy(here);
        cuda_nc_layout_destroy(there);
    }
    peer_barrier(&p);

    long wrong = 0;
    if (p.rank == 1) {
        memory->copy(on_host, cache, BYTES);
        wrong = count_wrong(on_host);
        printf("paged_cache: %s memory, %d of %d pages of %d bytes: %ld wrong bytes\n",
               memory->name, SEQUENCE_PAGES, CACHE_PAGES, PAGE, wrong);
        fflush(stdout);
    }
    const int status = peer_end(&p, wrong);
    memory->release(cache);
    free(on_host);
    return status;
}
