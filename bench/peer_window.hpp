// The other rank's memory by a context of UCP: what benchmarks of two ranks that call UCP share.
#pragma once

#include <mpi.h>
#include <ucp/api/ucp.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <vector>

// Ends the job where a call of UCP fails. Two ranks.
class peer_window {
  public:
    // `here`: own memory that is sent from; `there`: own memory that the other rank puts to and
    // gets from; `length` bytes each. `features`: UCP_FEATURE_*.
    peer_window(int rank, void *here, void *there, size_t length, uint64_t features) : rank_(rank) {
        ucp_params_t params = {};
        params.field_mask = UCP_PARAM_FIELD_FEATURES;
        params.features = features;
        check(ucp_init(&params, nullptr, &context_), "ucp_init");
        ucp_worker_params_t single = {};
        single.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
        single.thread_mode = UCS_THREAD_MODE_SINGLE;
        check(ucp_worker_create(context_, &single, &worker), "ucp_worker_create");
        ucp_address_t *own = nullptr;
        size_t own_length = 0;
        check(ucp_worker_get_address(worker, &own, &own_length), "ucp_worker_get_address");
        const std::vector<char> other = exchange(own, own_length);
        ucp_worker_release_address(worker, own);
        ucp_ep_params_t to = {};
        to.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
        to.address = reinterpret_cast<const ucp_address_t *>(other.data());
        check(ucp_ep_create(worker, &to, &ep), "ucp_ep_create");
        source = map(here, length);
        target_ = map(there, length);
        void *packed = nullptr;
        size_t packed_length = 0;
        check(ucp_rkey_pack(context_, target_, &packed, &packed_length), "ucp_rkey_pack");
        const std::vector<char> theirs = exchange(packed, packed_length);
        ucp_rkey_buffer_release(packed);
        check(ucp_ep_rkey_unpack(ep, theirs.data(), &key), "ucp_ep_rkey_unpack");
        const std::vector<char> begin = exchange(&there, sizeof(there));
        std::copy(begin.begin(), begin.end(), reinterpret_cast<char *>(&address));
        param.op_attr_mask = UCP_OP_ATTR_FIELD_MEMH;
        param.memh = source;
    }
    ~peer_window() {
        MPI_Barrier(MPI_COMM_WORLD);
        ucp_rkey_destroy(key);
        const ucp_request_param_t none = {};
        finish(ucp_ep_close_nbx(ep, &none));
        MPI_Barrier(MPI_COMM_WORLD);
        ucp_mem_unmap(context_, source);
        ucp_mem_unmap(context_, target_);
        ucp_worker_destroy(worker);
        ucp_cleanup(context_);
    }
    peer_window(const peer_window &) = delete;
    peer_window &operator=(const peer_window &) = delete;

    // Calls progress until the request has ended, and releases it.
    ucs_status_t wait_for(ucs_status_ptr_t request) {
        if (!UCS_PTR_IS_PTR(request)) {
            return UCS_PTR_STATUS(request);
        }
        ucs_status_t status = UCS_INPROGRESS;
        while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS) {
            progress();
        }
        ucp_request_free(request);
        return status;
    }
    void finish(ucs_status_ptr_t request) { check(wait_for(request), "an operation"); }
    void flush() {
        const ucp_request_param_t none = {};
        finish(ucp_ep_flush_nbx(ep, &none));
    }
    void progress() { ucp_worker_progress(worker); }

    // Until both ranks are here; meanwhile the other one's operations go on.
    void meet() {
        MPI_Request all = MPI_REQUEST_NULL;
        MPI_Ibarrier(MPI_COMM_WORLD, &all);
        for (int done = 0; done == 0;) {
            progress();
            MPI_Test(&all, &done, MPI_STATUS_IGNORE);
        }
    }

    // Ends the job after an error.
    static void check(ucs_status_t status, const char *what) {
        if (status != UCS_OK) {
            std::fprintf(stderr, "%s: %s (%s)\n", what, ucs_status_string(status),
                         explain != nullptr ? explain() : "");
            MPI_Abort(MPI_COMM_WORLD, 2);
        }
    }
    // More about an error, where somebody knows it.
    static inline const char *(*explain)() = nullptr;

    ucp_worker_h worker = nullptr;
    ucp_ep_h ep = nullptr;
    ucp_rkey_h key = nullptr;
    ucp_mem_h source = nullptr;
    uint64_t address = 0;            // of the other rank's `there`
    ucp_request_param_t param = {};  // for own memory `here`

  private:
    std::vector<char> exchange(const void *bytes, size_t length) const {
        unsigned long own = length, other = 0;
        MPI_Sendrecv(&own, 1, MPI_UNSIGNED_LONG, 1 - rank_, 0, &other, 1, MPI_UNSIGNED_LONG,
                     1 - rank_, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        std::vector<char> theirs(other);
        MPI_Sendrecv(bytes, static_cast<int>(own), MPI_BYTE, 1 - rank_, 1, theirs.data(),
                     static_cast<int>(other), MPI_BYTE, 1 - rank_, 1, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        return theirs;
    }
    ucp_mem_h map(void *memory, size_t length) const {
        ucp_mem_map_params_t params = {};
        params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
        params.address = memory;
        params.length = length;
        ucp_mem_h mapped = nullptr;
        check(ucp_mem_map(context_, &params, &mapped), "ucp_mem_map");
        return mapped;
    }

    int rank_;
    ucp_context_h context_ = nullptr;
    ucp_mem_h target_ = nullptr;
};

// Byte `i` of the random-looking content that `salt` names.
inline unsigned char pattern(size_t i, int salt) {
    return static_cast<unsigned char>(((i + 1) * 0x9E3779B97F4A7C15ull >> 56) ^
                                      static_cast<unsigned>(salt * 77 + 1));
}

inline std::vector<unsigned char> image(size_t size, int salt) {
    std::vector<unsigned char> bytes(size);
    for (size_t i = 0; i < size; ++i) {
        bytes[i] = pattern(i, salt);
    }
    return bytes;
}

// The salt of what a rank's target has at first; its source has that of the rank itself.
inline int target_of(int rank) {
    return rank + 2;
}
