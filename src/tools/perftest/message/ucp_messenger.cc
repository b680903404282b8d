#include "tools/perftest/message/ucp_messenger.hpp"

#include <sched.h>

#include <exception>
#include <utility>

#include <fmt/core.h>

#include "cuda_nc/cuda_nc.h"
#include "tools/perftest/support/run_error.hpp"
#include "ucs/base/status.hpp"

namespace cuda_nc::tools {
namespace {

void check(ucs_status_t status, const char *what) {
    if (status != UCS_OK) {
        throw run_error(fmt::format("{} failed: {}", what, status_text(status)));
    }
}

struct ucp_type final : message_type {
    ~ucp_type() override {
        if (made) {
            cuda_nc_dt_destroy(datatype);
        }
    }
    ucp_datatype_t datatype = 0;
    size_t count = 0;
    bool made = false;
};

// One element of the outermost dimension, block by block; UCP's count repeats it.
std::unique_ptr<ucp_type> describe(const layout &what) {
    const layout_view &view = what.view();
    auto type = std::make_unique<ucp_type>();
    type->count = 1;
    ptrdiff_t extent = 0;
    if (view.num_dims > 0) {
        type->count = view.dims[view.num_dims - 1].count;
        extent = view.dims[view.num_dims - 1].stride;
    }
    uint64_t left = what.packed_size() / type->count;
    std::vector<cuda_nc_block_t> blocks;
    layout_cursor cursor(what, 0);
    while (left > 0) {
        const block one = cursor.next(left);
        blocks.push_back({static_cast<ptrdiff_t>(one.displacement), one.length});
        left -= one.length;
    }
    check(cuda_nc_dt_create(blocks.data(), blocks.size(), extent, &type->datatype),
          "making a datatype");
    type->made = true;
    return type;
}

constexpr unsigned polls_between_checks = 4096;  // of the clock and of the other process

}  // namespace

ucp_messenger::ucp_messenger(int rank, connection peer, double limit_s, failure_handler on_failure)
    : rank_(rank),
      peer_(std::move(peer)),
      limit_s_(limit_s),
      on_failure_(std::move(on_failure)),
      ucp_(load_ucp()),
      exceptions_(std::uncaught_exceptions()) {
    ucp_params_t params = {};
    params.field_mask = UCP_PARAM_FIELD_FEATURES;
    params.features = UCP_FEATURE_TAG;
    check(ucp_.ucp_init_version(ucp_.major, ucp_.minor, &params, nullptr, &context_), "ucp_init");
    ucp_worker_params_t single = {};
    single.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    single.thread_mode = UCS_THREAD_MODE_SINGLE;
    check(ucp_.ucp_worker_create(context_, &single, &worker_), "ucp_worker_create");
    connect();
}

template <class Action>
void ucp_messenger::with_peer(Action &&action) {
    try {
        action();
    } catch (const run_error &why) {
        if (on_failure_) {
            on_failure_(why);
        }
        throw;
    }
}

void ucp_messenger::connect() {
    ucp_address_t *address = nullptr;
    size_t length = 0;
    check(ucp_.ucp_worker_get_address(worker_, &address, &length), "ucp_worker_get_address");
    const std::string mine(reinterpret_cast<const char *>(address), length);
    ucp_.ucp_worker_release_address(worker_, address);
    const std::string theirs = gather(mine)[static_cast<size_t>(1 - rank_)];
    ucp_ep_params_t params = {};
    params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
    params.address = reinterpret_cast<const ucp_address_t *>(theirs.data());
    check(ucp_.ucp_ep_create(worker_, &params, &endpoint_), "ucp_ep_create");
}

ucp_messenger::~ucp_messenger() {
    if (std::uncaught_exceptions() > exceptions_) {
        return;  // this side has failed, and the other must not wait for more
    }
    try {
        close_endpoint();
    } catch (const run_error &) {
        return;  // a peer that is gone: what UCX still holds ends with this process
    }
    ucp_.ucp_worker_destroy(worker_);
    ucp_.ucp_cleanup(context_);
}

void ucp_messenger::close_endpoint() {
    if (endpoint_ == nullptr) {
        return;
    }
    on_failure_ = nullptr;
    ucp_request_param_t gracefully = {};
    wait(ucp_.ucp_ep_close_nbx(endpoint_, &gracefully));
    barrier();  // the other side flushes to us as long as it has not come here
}

std::chrono::nanoseconds ucp_messenger::limit() const {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
        std::chrono::duration<double>(limit_s_));
}

std::unique_ptr<message_type> ucp_messenger::make_type(const layout &what) {
    return describe(what);
}

std::unique_ptr<message_type> ucp_messenger::make_contiguous(size_t bytes) {
    auto type = std::make_unique<ucp_type>();
    type->datatype = ucp_dt_make_contig(1);
    type->count = bytes;
    return type;
}

void *ucp_messenger::begin_send(const void *address, const message_type &type, int tag) {
    const auto &what = static_cast<const ucp_type &>(type);
    ucp_request_param_t param = {};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE;
    param.datatype = what.datatype;
    void *request =
        ucp_.ucp_tag_send_nbx(endpoint_, address, what.count, static_cast<ucp_tag_t>(tag), &param);
    if (UCS_PTR_IS_ERR(request)) {
        check(UCS_PTR_STATUS(request), "a send");
    }
    return request;
}

void *ucp_messenger::begin_receive(void *address, const message_type &type, int tag) {
    const auto &what = static_cast<const ucp_type &>(type);
    ucp_request_param_t param = {};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE;
    param.datatype = what.datatype;
    void *request = ucp_.ucp_tag_recv_nbx(worker_, address, what.count, static_cast<ucp_tag_t>(tag),
                                          ~ucp_tag_t(0), &param);
    if (UCS_PTR_IS_ERR(request)) {
        check(UCS_PTR_STATUS(request), "a receive");
    }
    return request;
}

void ucp_messenger::wait(void *request) {
    if (request == nullptr) {
        return;
    }
    if (UCS_PTR_IS_ERR(request)) {
        check(UCS_PTR_STATUS(request), "a request");
    }
    ucs_status_t status = UCS_INPROGRESS;
    unsigned polls = 0;
    std::chrono::steady_clock::time_point until;
    while ((status = ucp_.ucp_request_check_status(request)) == UCS_INPROGRESS) {
        if (ucp_.ucp_worker_progress(worker_) != 0 || ++polls % polls_between_checks != 0) {
            continue;
        }
        const auto now = std::chrono::steady_clock::now();
        if (polls == polls_between_checks) {
            until = now + limit();
        }
        with_peer([&] {
            if (now > until) {
                throw run_error(fmt::format("a message was not complete within {:g} s", limit_s_));
            }
            if (peer_.is_peer_gone()) {
                throw peer_gone();
            }
        });
        sched_yield();  // more processes than cores
    }
    ucp_.ucp_request_free(request);
    check(status, "a message");
}

void ucp_messenger::send(const void *address, const message_type &type, int, int tag) {
    wait(begin_send(address, type, tag));
}

void ucp_messenger::receive(void *address, const message_type &type, int, int tag) {
    wait(begin_receive(address, type, tag));
}

void ucp_messenger::start_send(const void *address, const message_type &type, int, int tag) {
    started_.push_back(begin_send(address, type, tag));
}

void ucp_messenger::start_receive(void *address, const message_type &type, int, int tag) {
    started_.push_back(begin_receive(address, type, tag));
}

void ucp_messenger::finish() {
    for (void *request : started_) {
        wait(request);
    }
    started_.clear();
}

std::vector<std::string> ucp_messenger::gather(const std::string &mine) {
    std::vector<std::string> all(2);
    all[static_cast<size_t>(rank_)] = mine;
    with_peer([&] {
        peer_.send(mine, limit_s_);
        // What this side has sent may need it to leave.
        const auto until = std::chrono::steady_clock::now() + limit();
        while (worker_ != nullptr && !peer_.has_input() &&
               std::chrono::steady_clock::now() < until) {
            if (ucp_.ucp_worker_progress(worker_) == 0) {
                sched_yield();
            }
        }
        all[static_cast<size_t>(1 - rank_)] = peer_.receive(limit_s_);
    });
    return all;
}

std::string ucp_messenger::transports() const {
    std::string names;
#if UCP_API_VERSION >= UCP_VERSION(1, 16)
    if (ucp_.ucp_ep_query == nullptr || ucp_.minor < 16) {
        return names;
    }
    ucp_transport_entry_t entries[16];
    ucp_ep_attr_t attributes = {};
    attributes.field_mask = UCP_EP_ATTR_FIELD_TRANSPORTS;
    attributes.transports.entries = entries;
    attributes.transports.num_entries = 16;
    attributes.transports.entry_size = sizeof(entries[0]);
    if (ucp_.ucp_ep_query(endpoint_, &attributes) == UCS_OK) {
        for (unsigned i = 0; i < attributes.transports.num_entries; ++i) {
            names += fmt::format("{}{}/{}", i == 0 ? "" : ", ", entries[i].transport_name,
                                 entries[i].device_name);
        }
    }
#endif
    return names;
}

}  // namespace cuda_nc::tools
