/*
 * The C API in a program that uses UCP without MPI: a strided layout as a ucp_datatype_t.
 *
 *     ./ucp_layout [host|cuda|sim]
 *
 * Two workers of one process: one sends four columns of a matrix, the other receives them into
 * another matrix with longer rows.
 */
#include <cuda_nc/cuda_nc.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucp/api/ucp.h>

#include "memory.h"

enum { ROWS = 10000, LENGTH = 16, SEND_PITCH = 64, RECV_PITCH = 96, OFFSET = 24 }; /* bytes */

static void check(ucs_status_t status, const char *what) {
    if (status != UCS_OK) {
        fprintf(stderr, "%s: %s\n", what, ucs_status_string(status));
        exit(1);
    }
}

/* LENGTH bytes of a row, OFFSET bytes from its beginning. UCP's count repeats it, a row apart. */
static ucp_datatype_t make_layout(ptrdiff_t pitch) {
    const cuda_nc_block_t block = {.displacement = OFFSET, .length = LENGTH};
    ucp_datatype_t datatype;
    check(cuda_nc_dt_create(&block, 1, pitch, &datatype), "cuda_nc_dt_create");
    return datatype;
}

static ucp_worker_h make_worker(ucp_context_h context) {
    const ucp_worker_params_t params = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                        .thread_mode = UCS_THREAD_MODE_SINGLE};
    ucp_worker_h worker;
    check(ucp_worker_create(context, &params, &worker), "ucp_worker_create");
    return worker;
}

static ucp_ep_h connect_to(ucp_worker_h from, ucp_worker_h to) {
    ucp_address_t *address;
    size_t length;
    check(ucp_worker_get_address(to, &address, &length), "ucp_worker_get_address");
    const ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS,
                                    .address = address};
    ucp_ep_h ep;
    check(ucp_ep_create(from, &params, &ep), "ucp_ep_create");
    ucp_worker_release_address(to, address);
    return ep;
}

/* Drives both workers until the request has ended. UCP gives NULL for one that ended at once. */
static void finish(ucs_status_ptr_t request, ucp_worker_h sender, ucp_worker_h receiver,
                   const char *what) {
    if (request == NULL) {
        return;
    }
    check(UCS_PTR_IS_ERR(request) ? UCS_PTR_STATUS(request) : UCS_OK, what);
    ucs_status_t status;
    while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS) {
        ucp_worker_progress(sender);
        ucp_worker_progress(receiver);
    }
    ucp_request_free(request);
    check(status, what);
}

/* A place of the sender's matrix holds this. */
static unsigned char sent_byte(size_t index) {
    return (unsigned char)(index * 31 % 251);
}

static long count_wrong(const unsigned char *received) {
    long wrong = 0;
    for (size_t i = 0; i < (size_t)ROWS * RECV_PITCH; ++i) {
        size_t row = i / RECV_PITCH, column = i % RECV_PITCH;
        int is_layout = column >= OFFSET && column < OFFSET + LENGTH;
        wrong += received[i] != (is_layout ? sent_byte(row * SEND_PITCH + column) : 0xee);
    }
    return wrong;
}

int main(int argc, char **argv) {
    const struct memory *memory = memory_named(argc > 1 ? argv[1] : "host");
    memory->choose_gpu(0);
    const size_t send_bytes = (size_t)ROWS * SEND_PITCH, recv_bytes = (size_t)ROWS * RECV_PITCH;
    unsigned char *on_host = memory_allocate(memory_named("host"), recv_bytes);
    void *source = memory_allocate(memory, send_bytes);
    void *destination = memory_allocate(memory, recv_bytes);
    for (size_t i = 0; i < send_bytes; ++i) {
        on_host[i] = sent_byte(i);
    }
    memory->copy(source, on_host, send_bytes);
    memset(on_host, 0xee, recv_bytes);
    memory->copy(destination, on_host, recv_bytes);

    const ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES,
                                 .features = UCP_FEATURE_TAG};
    ucp_context_h context;
    check(ucp_init(&params, NULL, &context), "ucp_init");
    ucp_worker_h sender = make_worker(context), receiver = make_worker(context);
    ucp_ep_h ep = connect_to(sender, receiver);

    ucp_datatype_t send_layout = make_layout(SEND_PITCH), recv_layout = make_layout(RECV_PITCH);
    ucp_request_param_t how = {.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE, .datatype = recv_layout};
    ucs_status_ptr_t recv = ucp_tag_recv_nbx(receiver, destination, ROWS, 1, ~(ucp_tag_t)0, &how);
    how.datatype = send_layout;
    ucs_status_ptr_t send = ucp_tag_send_nbx(ep, source, ROWS, 1, &how);
    finish(send, sender, receiver, "ucp_tag_send_nbx");
    finish(recv, sender, receiver, "ucp_tag_recv_nbx");

    memory->copy(on_host, destination, recv_bytes);
    long wrong = count_wrong(on_host);
    printf(
        "ucp_layout: %s memory, %d blocks of %d bytes, rows of %d to rows of %d bytes: %ld wrong "
        "bytes\n",
        memory->name, ROWS, LENGTH, SEND_PITCH, RECV_PITCH, wrong);

    cuda_nc_dt_destroy(send_layout);
    cuda_nc_dt_destroy(recv_layout);
    const ucp_request_param_t no_options = {0};
    finish(ucp_ep_close_nbx(ep, &no_options), sender, receiver, "ucp_ep_close_nbx");
    ucp_worker_destroy(sender);
    ucp_worker_destroy(receiver);
    ucp_cleanup(context);
    memory->release(source);
    memory->release(destination);
    free(on_host);
    return wrong != 0;
}
