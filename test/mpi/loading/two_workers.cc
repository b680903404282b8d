// A program of UCX alone, without MPI: two workers of one process, and a generic datatype of the
// program's own, which must stay its own. Prints RIGHT, or WRONG and why.
#include <ucp/api/ucp.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

void must(ucs_status_t status, const char *what) {
    if (status != UCS_OK) {
        std::printf("WRONG %s: %s\n", what, ucs_status_string(status));
        std::exit(1);
    }
}

// The program's datatype: packed bytes are the buffer's, each plus one.
int started = 0, finished = 0;

struct state {
    char *buffer;
    size_t count;
};

void *start(void *buffer, size_t count) {
    ++started;
    return new state{static_cast<char *>(buffer), count};
}
void *start_pack(void *, const void *buffer, size_t count) {
    return start(const_cast<void *>(buffer), count);
}
void *start_unpack(void *, void *buffer, size_t count) {
    return start(buffer, count);
}
size_t packed_size(void *s) {
    return static_cast<state *>(s)->count;
}
size_t pack(void *s, size_t offset, void *destination, size_t most) {
    const state &from = *static_cast<state *>(s);
    size_t length = most < from.count - offset ? most : from.count - offset;
    for (size_t i = 0; i < length; ++i) {
        static_cast<char *>(destination)[i] = static_cast<char>(from.buffer[offset + i] + 1);
    }
    return length;
}
ucs_status_t unpack(void *s, size_t offset, const void *source, size_t length) {
    std::memcpy(static_cast<state *>(s)->buffer + offset, source, length);
    return UCS_OK;
}
void finish(void *s) {
    ++finished;
    delete static_cast<state *>(s);
}

ucp_worker_h make_worker(ucp_context_h context) {
    ucp_worker_params_t params = {};
    ucp_worker_h worker;
    must(ucp_worker_create(context, &params, &worker), "ucp_worker_create");
    return worker;
}

void wait(void *request, ucp_worker_h a, ucp_worker_h b) {
    if (!UCS_PTR_IS_PTR(request)) {
        must(UCS_PTR_STATUS(request), "request");
        return;
    }
    while (ucp_request_check_status(request) == UCS_INPROGRESS) {
        ucp_worker_progress(a);
        ucp_worker_progress(b);
    }
    must(ucp_request_check_status(request), "request");
    ucp_request_free(request);
}

}  // namespace

int main() {
    ucp_params_t params = {};
    params.field_mask = UCP_PARAM_FIELD_FEATURES;
    params.features = UCP_FEATURE_TAG;
    ucp_context_h context;
    must(ucp_init(&params, nullptr, &context), "ucp_init");
    ucp_worker_h sender = make_worker(context), receiver = make_worker(context);
    ucp_address_t *address;
    size_t address_length;
    must(ucp_worker_get_address(receiver, &address, &address_length), "ucp_worker_get_address");
    ucp_ep_params_t ep_params = {};
    ep_params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
    ep_params.address = address;
    ucp_ep_h ep;
    must(ucp_ep_create(sender, &ep_params, &ep), "ucp_ep_create");

    ucp_generic_dt_ops_t ops = {start_pack, start_unpack, packed_size, pack, unpack, finish};
    ucp_datatype_t own;
    must(ucp_dt_create_generic(&ops, nullptr, &own), "ucp_dt_create_generic");
    int messages = 0;
    for (size_t size : {size_t{10}, size_t{3000}, size_t{200000}, size_t{3000000}}) {
        std::vector<char> out(size, 5), in(size, 0);
        ucp_request_param_t how = {};
        how.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE;
        how.datatype = own;
        void *receive = ucp_tag_recv_nbx(receiver, in.data(), size, 1, ~0ull, &how);
        void *send = ucp_tag_send_nbx(ep, out.data(), size, 1, &how);
        wait(send, sender, receiver);
        wait(receive, sender, receiver);
        if (in != std::vector<char>(size, 6)) {
            std::printf("WRONG bytes of %zu\n", size);
            return 1;
        }
        ++messages;
    }
    ucp_dt_destroy(own);
    if (started != 2 * messages || finished != started) {
        std::printf("WRONG %d states started, %d finished\n", started, finished);
        return 1;
    }
    ucp_request_param_t flags = {};
    wait(ucp_ep_close_nbx(ep, &flags), sender, receiver);
    ucp_worker_release_address(receiver, address);
    ucp_worker_destroy(sender);
    ucp_worker_destroy(receiver);
    ucp_cleanup(context);
    std::puts("RIGHT");
    return 0;
}
