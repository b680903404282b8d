// include/cuda_nc/cuda_nc.h: puts and gets with a layout on each side.
#include <algorithm>
#include <atomic>
#include <cinttypes>
#include <memory>
#include <utility>

#include "capi/error.hpp"
#include "capi/layout_object.hpp"
#include "capi/side.hpp"
#include "ucp/dt/address.hpp"
#include "ucp/dt/ucp_api.hpp"
#include "ucp/dt/worker_homes.hpp"
#include "ucs/base/log.hpp"
#include "ucs/layout/common_blocks.hpp"
#include "ucs/worklist/worklist.hpp"
#include "uct/cuda_nc/layout_order.hpp"

namespace cuda_nc::capi {
namespace {

using dt::ucp_api;

// A longer block might be shared out among several transports.
constexpr uint64_t longest_sample = 64 << 10;
// Of one call: each costs UCP a request.
constexpr uint64_t most_common_blocks = uint64_t{1} << 20;

struct operation {
    const ucp_api &ucp;
    bool puts;
    ucp_ep_h ep;
    char *local;  // displacement 0
    object_ref local_object;
    uint64_t remote;  // displacement 0
    ucp_rkey_h rkey;
    object_ref remote_object;
    const ucp_request_param_t &param;  // the caller's

    ucs_status_ptr_t move(const common_block &block,
                          const ucp_request_param_t &how) const noexcept {
        char *at = dt::displaced(local, block.left);
        const uint64_t there = remote + static_cast<uint64_t>(block.right);
        return puts ? ucp.put_nbx(ep, at, block.length, there, rkey, &how)
                    : ucp.get_nbx(ep, at, block.length, there, rkey, &how);
    }
    // The caller's parameters as they hold for each block.
    ucp_request_param_t of_block(ucp_send_nbx_callback_t callback, void *user_data) const noexcept {
        constexpr uint32_t hints = UCP_OP_ATTR_FIELD_MEMORY_TYPE | UCP_OP_ATTR_FIELD_MEMH |
                                   UCP_OP_ATTR_FLAG_FAST_CMPL | UCP_OP_ATTR_FLAG_MULTI_SEND;
        ucp_request_param_t how = {};
        how.op_attr_mask =
            (param.op_attr_mask & hints) | UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
        how.cb.send = callback;
        how.user_data = user_data;
        how.memory_type = param.memory_type;
        how.memh = param.memh;
        return how;
    }
};

// The whole operation as the transport sees it, or what its blocks share where UCP moves each by
// itself. It keeps itself until UCP's requests for its sample and for blocks have ended, or, where
// the transport took it, until that has called the completion: UCP forgets the callback of a
// request that the caller frees early.
class strided_order final : public uct::layout_order {
  public:
    explicit strided_order(const operation &what) noexcept
        : layout_order(what.puts, what.local, what.remote),
          local_(what.local_object->what()),
          remote_(what.remote_object->what()),
          ucp_(what.ucp) {
        if (what.param.op_attr_mask & UCP_OP_ATTR_FIELD_CALLBACK) {
            callback_ = what.param.cb.send;
        }
        if (what.param.op_attr_mask & UCP_OP_ATTR_FIELD_USER_DATA) {
            user_data_ = what.param.user_data;
        }
    }

    const layout &local() const noexcept override { return *local_; }
    const layout &remote() const noexcept override { return *remote_; }
    ucs_status_t prepare(gpu::device &where, gpu::stream &on, const layout_view **local_p,
                         const layout_view **remote_p) noexcept override {
        const ucs_status_t status = prepare(where, on, local_, &local_list_, local_p);
        return status == UCS_OK ? prepare(where, on, remote_, &remote_list_, remote_p) : status;
    }
    ucs_status_t describe(gpu::device &where, const layout_view **local_p,
                          const layout_view **remote_p) noexcept override {
        const ucs_status_t status = describe(where, local_, &local_list_, local_p);
        return status == UCS_OK ? describe(where, remote_, &remote_list_, remote_p) : status;
    }

    // Asks UCP for the block.
    ucs_status_ptr_t start(const operation &what, const common_block &block) {
        hold();
        const ucp_request_param_t how = what.of_block(handle_end, this);
        ucs_status_ptr_t request;
        {
            const layout_order::call now(
                *this, {dt::displaced(local_base, block.left),
                        remote_base + static_cast<uint64_t>(block.right), block.length});
            request = what.move(block, how);
        }
        if (!UCS_PTR_IS_PTR(request) || ends_with(request)) {
            release();
        }
        return request;
    }
    // Another block, which UCP moves by itself.
    ucs_status_ptr_t start_block(const operation &what, const common_block &block) {
        hold();
        const ucs_status_ptr_t request = what.move(block, what.of_block(handle_end, this));
        if (!UCS_PTR_IS_PTR(request)) {
            release();
        }
        return request;
    }
    // What tells of the end of all blocks. UCP's flush ends well though a block has failed: the
    // caller's callback is told of it.
    ucs_status_ptr_t end_blocks(const operation &what) {
        ucp_request_param_t end = {};
        std::unique_ptr<end_of_all> told;
        if (callback_ != nullptr) {
            told.reset(new end_of_all{callback_, user_data_, failure_});
            end.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
            end.cb.send = handle_end_of_all;
            end.user_data = told.get();
        }
        const ucs_status_ptr_t flush = ucp_.ep_flush_nbx(what.ep, &end);
        if (UCS_PTR_IS_PTR(flush)) {
            static_cast<void>(told.release());  // the callback's
        }
        return flush != nullptr ? flush : UCS_STATUS_PTR(failure_->load());
    }

    // Whoever begins blocks holds it meanwhile: then the first one to hold it is alone.
    struct held {
        explicit held(strided_order &what) : order(what) { order.hold(); }
        held(const held &) = delete;
        held &operator=(const held &) = delete;
        ~held() { order.release(); }
        strided_order &order;
    };
    void hold() {
        if (holders_++ == 0) {
            keeper_ = shared_from_this();
        }
    }
    void release() noexcept {
        if (--holders_ == 0) {
            const auto last = std::move(keeper_);
        }
    }

  private:
    // Of a flush's request: all that is lost where the caller frees that early.
    struct end_of_all {
        ucp_send_nbx_callback_t callback;
        void *user_data;
        std::shared_ptr<std::atomic<ucs_status_t>> failure;
    };

    static ucs_status_t prepare(gpu::device &where, gpu::stream &on, const layout_ref &what,
                                worklist::work_list_ref *list_p,
                                const layout_view **view_p) noexcept {
        ucs_status_t status = worklist::acquire(where, what, list_p);
        if (status == UCS_OK) {
            status = (*list_p)->prepare(on, what->packed_size());
        }
        *view_p = status == UCS_OK ? &(*list_p)->view() : nullptr;
        return status;
    }
    static ucs_status_t describe(gpu::device &where, const layout_ref &what,
                                 worklist::work_list_ref *list_p,
                                 const layout_view **view_p) noexcept {
        const ucs_status_t status = worklist::acquire(where, what, list_p);
        if (status != UCS_OK || !(*list_p)->is_ready(what->packed_size())) {
            return status != UCS_OK ? status : UCS_INPROGRESS;
        }
        *view_p = &(*list_p)->view();
        return UCS_OK;
    }
    static void handle_end(void *request, ucs_status_t status, void *self) {
        auto &order = *static_cast<strided_order *>(self);
        if (order.ends_with(request)) {
            if (order.callback_ != nullptr) {
                order.callback_(request, status, order.user_data_);
            }
        } else {  // the request of one block, which nobody else knows
            order.note(status);
            order.ucp_.request_free(request);
            order.release();
        }
    }
    static void handle_end_of_all(void *request, ucs_status_t status, void *self) {
        const std::unique_ptr<end_of_all> told(static_cast<end_of_all *>(self));
        told->callback(request, status != UCS_OK ? status : told->failure->load(), told->user_data);
    }
    void note(ucs_status_t status) noexcept {
        ucs_status_t none = UCS_OK;
        if (status != UCS_OK && failure_->compare_exchange_strong(none, status)) {
            nc_error("a block of a put or get with layouts has failed: %s", status_text(status));
        }
    }

    const layout_ref local_, remote_;
    const ucp_api &ucp_;
    ucp_send_nbx_callback_t callback_ = nullptr;
    void *user_data_ = nullptr;
    worklist::work_list_ref local_list_, remote_list_;
    std::atomic<unsigned> holders_{0};
    std::shared_ptr<layout_order> keeper_;
    // Of the first block that has failed.
    const std::shared_ptr<std::atomic<ucs_status_t>> failure_ =
        std::make_shared<std::atomic<ucs_status_t>>(UCS_OK);
};

ucs_status_ptr_t failure(ucs_status_t status) noexcept {
    return UCS_STATUS_PTR(status);
}

ucs_status_ptr_t ucp_failure(const char *function, ucs_status_ptr_t result) noexcept {
    return failure(
        fail(UCS_PTR_STATUS(result), "%s: %s", function, status_text(UCS_PTR_STATUS(result))));
}

ucs_status_ptr_t ucp_failure(const operation &what, ucs_status_ptr_t result) noexcept {
    return ucp_failure(what.puts ? "ucp_put_nbx" : "ucp_get_nbx", result);
}

// What tells of the end of an order that the transport took.
ucs_status_ptr_t end_of_order(const operation &what) noexcept {
    ucp_request_param_t end = what.param;
    end.op_attr_mask &= UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    const ucs_status_ptr_t flush = what.ucp.ep_flush_nbx(what.ep, &end);
    return UCS_PTR_IS_ERR(flush) ? ucp_failure("ucp_ep_flush_nbx", flush) : flush;
}

// The rest of the blocks, each by a request that frees itself.
ucs_status_ptr_t move_blocks(strided_order &order, const operation &what, common_blocks rest,
                             bool is_pending) {
    if (rest.count(most_common_blocks) == most_common_blocks) {
        return failure(fail(UCS_ERR_EXCEEDS_LIMIT,
                            "local_layout and remote_layout: 2^20 common blocks or more, and no "
                            "transport that takes them at once"));
    }
    for (common_block one = rest.next(UINT64_MAX); one.length != 0; one = rest.next(UINT64_MAX)) {
        const ucs_status_ptr_t result = order.start_block(what, one);
        if (UCS_PTR_IS_ERR(result)) {
            return ucp_failure(what, result);
        }
        is_pending = is_pending || result != nullptr;
    }
    const ucs_status_ptr_t end = is_pending ? order.end_blocks(what) : nullptr;
    return UCS_PTR_IS_ERR(end) ? ucp_failure("a block, or ucp_ep_flush_nbx", end) : end;
}

ucs_status_ptr_t move(const operation &what) {
    common_blocks blocks(*what.local_object->what(), *what.remote_object->what());
    const uint64_t total = what.local_object->packed_size();
    common_blocks rest = blocks;
    const common_block first = blocks.next(UINT64_MAX);
    if (first.length == total) {
        const ucs_status_ptr_t request = what.move(first, what.param);
        return UCS_PTR_IS_ERR(request) ? ucp_failure(what, request) : request;
    }
    const common_block sample = rest.next(longest_sample);
    const auto order = std::make_shared<strided_order>(what);
    const strided_order::held now(*order);
    const ucs_status_ptr_t request = order->start(what, sample);
    return UCS_PTR_IS_ERR(request)     ? ucp_failure(what, request)
           : order->ends_with(request) ? request
           : order->is_taken()         ? end_of_order(what)
                                       : move_blocks(*order, what, rest, request != nullptr);
}

// ---- parameters

ucs_status_t check_param(const ucp_request_param_t *param) noexcept {
    constexpr uint32_t served = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                                UCP_OP_ATTR_FIELD_MEMORY_TYPE | UCP_OP_ATTR_FIELD_MEMH |
                                UCP_OP_ATTR_FLAG_FAST_CMPL | UCP_OP_ATTR_FLAG_MULTI_SEND;
    if (param == nullptr) {
        return fail(UCS_ERR_INVALID_PARAM, "param: null");
    }
    return (param->op_attr_mask & ~served) == 0
               ? UCS_OK
               : fail(UCS_ERR_INVALID_PARAM, "param: op_attr_mask has 0x%x, which is not served",
                      static_cast<unsigned>(param->op_attr_mask & ~served));
}

ucs_status_t check_layouts(const operation &what) {
    const object_ref &local = what.local_object, &remote = what.remote_object;
    if (local == nullptr || remote == nullptr) {
        return fail(UCS_ERR_INVALID_PARAM, "%s: no layout",
                    local == nullptr ? "local_layout" : "remote_layout");
    }
    if (local->packed_size() != remote->packed_size()) {
        return fail(UCS_ERR_INVALID_PARAM,
                    "remote_layout: its packed size, %" PRIu64
                    ", differs from local_layout's, "
                    "%" PRIu64,
                    remote->packed_size(), local->packed_size());
    }
    const ucs_status_t writable =
        what.puts ? check_target("remote_layout", *remote) : check_target("local_layout", *local);
    if (writable != UCS_OK) {
        return writable;
    }
    const __int128 base = what.remote;
    if (base + remote->what()->lower_bound() < 0 ||
        base + remote->what()->upper_bound() > static_cast<__int128>(UINT64_MAX)) {
        return fail(UCS_ERR_INVALID_PARAM,
                    "remote_address: the layout leads out of the address space");
    }
    return UCS_OK;
}

ucs_status_ptr_t start(bool puts, ucp_ep_h ep, const void *local, cuda_nc_layout_t local_layout,
                       uint64_t remote, ucp_rkey_h rkey, cuda_nc_layout_t remote_layout,
                       const ucp_request_param_t *param, const void *caller) noexcept {
    ucs_status_ptr_t result = nullptr;
    const ucs_status_t status = guarded([&]() -> ucs_status_t {
        if (ep == nullptr || rkey == nullptr) {
            return fail(UCS_ERR_INVALID_PARAM, "%s: null", ep == nullptr ? "ep" : "rkey");
        }
        ucs_status_t checked = check_param(param);
        const caller_ucx found = dt::ucx_of_endpoint(ep, caller);
        if (checked != UCS_OK) {
            return checked;
        }
        if (!found.is_certain()) {
            return fail(UCS_ERR_UNSUPPORTED, "the UCX of the caller is not found in this process");
        }
        const operation what = {dt::ucp_of(*found.ucx),
                                puts,
                                ep,
                                static_cast<char *>(const_cast<void *>(local)),
                                find_object(local_layout),
                                remote,
                                rkey,
                                find_object(remote_layout),
                                *param};
        if (what.ucp.put_nbx == nullptr || what.ucp.get_nbx == nullptr ||
            what.ucp.ep_flush_nbx == nullptr || what.ucp.request_free == nullptr) {
            return fail(UCS_ERR_UNSUPPORTED, "this release of UCX is too old");
        }
        checked = check_layouts(what);
        if (checked != UCS_OK || what.local_object->packed_size() == 0) {
            return checked;
        }
        side here = {"local", *what.local_object->what(), what.local};
        checked = find_memory(&here);
        if (checked == UCS_OK) {
            result = move(what);
        }
        return checked;
    });
    return status == UCS_OK ? result : failure(status);
}

}  // namespace
}  // namespace cuda_nc::capi

ucs_status_ptr_t cuda_nc_put_nbx(ucp_ep_h ep, const void *local, cuda_nc_layout_t local_layout,
                                 uint64_t remote_address, ucp_rkey_h rkey,
                                 cuda_nc_layout_t remote_layout, const ucp_request_param_t *param) {
    return cuda_nc::capi::start(true, ep, local, local_layout, remote_address, rkey, remote_layout,
                                param, __builtin_return_address(0));
}

ucs_status_ptr_t cuda_nc_get_nbx(ucp_ep_h ep, void *local, cuda_nc_layout_t local_layout,
                                 uint64_t remote_address, ucp_rkey_h rkey,
                                 cuda_nc_layout_t remote_layout, const ucp_request_param_t *param) {
    return cuda_nc::capi::start(false, ep, local, local_layout, remote_address, rkey, remote_layout,
                                param, __builtin_return_address(0));
}
