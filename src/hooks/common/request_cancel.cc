#include "hooks/common/request_cancel.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstring>

#include "hooks/common/datatype_ops.hpp"
#include "ucp/dt/cancelled_state.hpp"
#include "ucp/dt/datatype.hpp"
#include "ucp/dt/ucp_api.hpp"
#include "ucp/dt/worker_homes.hpp"

namespace cuda_nc::hooks {
namespace {

// Where the request of a receive keeps what it knows of a generic datatype, in bytes from its
// start. It begins with its status.
struct request_form {
    size_t datatype;  // 0: not known
    size_t state;
    uint64_t datatype_marks;  // lowest bits of the word there: UCP's handle, or the bare address
    size_t datatype_class;    // 0: the marks tell it
};

// Bytes of a request of each UCX instance, as UCP's API says; 0: not known yet.
std::array<std::atomic<size_t>, max_ucx_instances> request_sizes;

request_form form_of(const ucx_instance &ucx) noexcept {
    if (!ucx.is_known()) {
        return {0, 0, 0, 0};
    }
    return ucx.minor < 16 ? request_form{40, 72, UCP_DATATYPE_GENERIC, 0}
                          : request_form{72, 80, 0, 32};
}

struct receive_words {
    uint64_t datatype = 0;
    void *state = nullptr;
    uint32_t datatype_class = UCP_DATATYPE_GENERIC;
    ucs_status_t status = UCS_OK;
};

receive_words read(const char *start, const request_form &form) noexcept {
    receive_words found;
    std::memcpy(&found.status, start, sizeof(found.status));
    std::memcpy(&found.datatype, start + form.datatype, sizeof(found.datatype));
    std::memcpy(&found.state, start + form.state, sizeof(found.state));
    if (form.datatype_class != 0) {
        std::memcpy(&found.datatype_class, start + form.datatype_class,
                    sizeof(found.datatype_class));
    }
    return found;
}

// How the states of `datatype` are finished; null: it is none of ours.
void (*find_finish(uint64_t datatype))(void *) {
    const ucp_generic_dt_ops_t *operations = find_operations(datatype);
    operations = operations != nullptr ? operations : dt::find_operations(datatype);
    return operations != nullptr ? operations->finish : nullptr;
}

}  // namespace

void request_cancel(void *worker, void *request, const void *caller) {
    auto *of = static_cast<ucp_worker_h>(worker);
    const caller_ucx found = dt::ucx_of_worker(of, caller);
    if (found.ucx == nullptr) {
        return;
    }
    const dt::ucp_api &ucp = dt::ucp_of(*found.ucx);
    const request_form form = form_of(*found.ucx);
    const size_t size = request_sizes[found.ucx->index].load(std::memory_order_relaxed);
    if (!found.is_certain() || form.datatype == 0 || size < form.state + sizeof(void *) ||
        ucp.request_check_status == nullptr ||
        ucp.request_check_status(request) != UCS_INPROGRESS) {
        ucp.request_cancel(of, request);
        return;
    }
    const char *const start = static_cast<const char *>(request) - size;
    const receive_words before = read(start, form);
    void (*finish)(void *) = nullptr;
    if (before.datatype_class == UCP_DATATYPE_GENERIC &&
        (before.datatype & UCP_DATATYPE_CLASS_MASK) == form.datatype_marks &&
        before.state != nullptr && before.status != UCS_ERR_CANCELED) {
        finish = find_finish(before.datatype | UCP_DATATYPE_GENERIC);
    }
    if (finish == nullptr) {
        ucp.request_cancel(of, request);
        return;
    }
    {
        dt::cancelled_state cancelled(before.state);
        ucp.request_cancel(of, request);
        // The completion callback may have given the request back: its memory stays UCP's.
        const receive_words after = read(start, form);
        if (after.status != UCS_ERR_CANCELED || after.datatype != before.datatype ||
            after.state != before.state || cancelled.is_finished()) {
            return;
        }
    }
    finish(before.state);
}

void learn_request_size(const ucx_instance &ucx, ucp_context_h context) {
    const dt::ucp_api &ucp = dt::ucp_of(ucx);
    ucp_context_attr_t attributes = {};
    attributes.field_mask = UCP_ATTR_FIELD_REQUEST_SIZE;
    if (ucp.context_query != nullptr && ucp.context_query(context, &attributes) == UCS_OK) {
        request_sizes[ucx.index].store(attributes.request_size, std::memory_order_relaxed);
    }
}

}  // namespace cuda_nc::hooks
