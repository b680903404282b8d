/*
 * What the examples of puts between processes share: two processes that know each other's UCP
 * address, and one piece of symmetric memory that each may put into. C.
 *
 * A fork must come before any use of a GPU: peer_start() is the first call.
 */
#ifndef EXAMPLES_TWO_PROCESSES_H
#define EXAMPLES_TWO_PROCESSES_H

#include <stdint.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

#include "memory.h"

struct peer {
    int rank; /* of this process: 0 or 1 */
    pid_t child;
    int socket;
    ucp_context_h context;
    ucp_worker_h worker;
    ucp_ep_h ep; /* to the other one */
    ucp_mem_h registered;
    ucp_rkey_h key;   /* of the other one's memory, */
    uint64_t address; /* and where it begins there */
};

static inline void check(ucs_status_t status, const char *what) {
    if (status != UCS_OK) {
        fprintf(stderr, "%s: %s (%s)\n", what, ucs_status_string(status), cuda_nc_last_error());
        exit(1);
    }
}

/* Progress, too, until a word from the other one is there. */
static inline void peer_receive(struct peer *p, void *bytes, size_t length) {
    size_t got = 0;
    while (got < length) {
        ssize_t now = recv(p->socket, (char *)bytes + got, length - got, MSG_DONTWAIT);
        if (now == 0) {
            fprintf(stderr, "the other process is gone\n");
            exit(1);
        }
        got += now > 0 ? (size_t)now : 0;
        if (p->worker != NULL) {
            ucp_worker_progress(p->worker);
        }
    }
}
static inline void peer_send(struct peer *p, const void *bytes, size_t length) {
    if (send(p->socket, bytes, length, MSG_NOSIGNAL) != (ssize_t)length) {
        fprintf(stderr, "the other process is gone\n");
        exit(1);
    }
}

/* Each has reached this line. */
static inline void peer_barrier(struct peer *p) {
    char word = 0;
    peer_send(p, &word, 1);
    peer_receive(p, &word, 1);
}

static inline void peer_finish(struct peer *p, ucs_status_ptr_t request, const char *what) {
    if (request == NULL) {
        return;
    }
    check(UCS_PTR_IS_ERR(request) ? UCS_PTR_STATUS(request) : UCS_OK, what);
    ucs_status_t status;
    while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS) {
        ucp_worker_progress(p->worker);
    }
    ucp_request_free(request);
    check(status, what);
}

/* From here on there are two processes. */
static inline struct peer peer_start(void) {
    struct peer p = {0};
    int both[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, both) != 0 || (p.child = fork()) < 0) {
        perror("two processes");
        exit(1);
    }
    p.rank = p.child == 0 ? 1 : 0;
    p.socket = both[p.rank];
    close(both[1 - p.rank]);
    return p;
}

/* Sends bytes of any length, and takes the other one's. The caller frees them. */
static inline void *peer_exchange(struct peer *p, const void *bytes, size_t length) {
    uint64_t own = length, other = 0;
    peer_send(p, &own, sizeof(own));
    peer_send(p, bytes, length);
    peer_receive(p, &other, sizeof(other));
    void *theirs = malloc(other);
    if (theirs == NULL) {
        exit(1);
    }
    peer_receive(p, theirs, other);
    return theirs;
}

/* `memory` of this process is what the other one may put into. */
static inline void peer_connect(struct peer *p, void *memory, size_t length) {
    const ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES,
                                 .features = UCP_FEATURE_RMA};
    check(ucp_init(&params, NULL, &p->context), "ucp_init");
    const ucp_worker_params_t single = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                        .thread_mode = UCS_THREAD_MODE_SINGLE};
    check(ucp_worker_create(p->context, &single, &p->worker), "ucp_worker_create");

    ucp_address_t *own;
    size_t own_length;
    check(ucp_worker_get_address(p->worker, &own, &own_length), "ucp_worker_get_address");
    ucp_address_t *other = peer_exchange(p, own, own_length);
    const ucp_ep_params_t to = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS, .address = other};
    check(ucp_ep_create(p->worker, &to, &p->ep), "ucp_ep_create");
    ucp_worker_release_address(p->worker, own);
    free(other);

    const ucp_mem_map_params_t mapped = {
        .field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH,
        .address = memory,
        .length = length};
    check(ucp_mem_map(p->context, &mapped, &p->registered), "ucp_mem_map");
    void *key;
    size_t key_length;
    check(ucp_rkey_pack(p->context, p->registered, &key, &key_length), "ucp_rkey_pack");
    void *theirs = peer_exchange(p, key, key_length);
    check(ucp_ep_rkey_unpack(p->ep, theirs, &p->key), "ucp_ep_rkey_unpack");
    ucp_rkey_buffer_release(key);
    free(theirs);
    const uint64_t begin = (uintptr_t)memory;
    uint64_t *there = peer_exchange(p, &begin, sizeof(begin));
    p->address = *there;
    free(there);
}

/* The program's exit status; `wrong` of both processes count. */
static inline int peer_end(struct peer *p, long wrong) {
    const ucp_request_param_t none = {0};
    peer_barrier(p);
    ucp_rkey_destroy(p->key);
    peer_finish(p, ucp_ep_close_nbx(p->ep, &none), "ucp_ep_close_nbx");
    peer_barrier(p);
    check(ucp_mem_unmap(p->context, p->registered), "ucp_mem_unmap");
    ucp_worker_destroy(p->worker);
    ucp_cleanup(p->context);
    if (p->rank == 1) {
        exit(wrong != 0);
    }
    int status = 1;
    waitpid(p->child, &status, 0);
    return wrong != 0 || status != 0;
}

#endif
