#include "hooks/common/iov_message.hpp"

#include <new>
#include <utility>

#include "hooks/common/gpu_presence.hpp"
#include "ucs/base/settings.hpp"
#include "ucs/gpu/known_memory.hpp"
#include "ucs/gpu/presence.hpp"
#include "ucs/gpu/span.hpp"

namespace cuda_nc::hooks {
namespace {

// What we know how to pass on with another datatype.
constexpr uint32_t known_fields = UCP_OP_ATTR_FIELD_REQUEST | UCP_OP_ATTR_FIELD_CALLBACK |
                                  UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_DATATYPE |
                                  UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_MEMORY_TYPE |
                                  UCP_OP_ATTR_FIELD_RECV_INFO | UCP_OP_ATTR_FIELD_MEMH;
constexpr uint32_t all_fields = (1u << 16) - 1;  // flags are above

// UCP takes a generic datatype for host memory, and its buffer for an address that means nothing.
constexpr uint32_t of_memory = UCP_OP_ATTR_FIELD_MEMORY_TYPE | UCP_OP_ATTR_FIELD_MEMH;

// The address of the one entry of a type that is used at all addresses.
constexpr uintptr_t anywhere = uintptr_t{1} << 40;

bool may_serve(const ucx_instance &ucx, const ucp_request_param_t &given) noexcept {
    const uint32_t mask = given.op_attr_mask;
    return ucx.at_least(1, 19) && (mask & all_fields & ~known_fields) == 0 &&
           ((mask & UCP_OP_ATTR_FIELD_MEMORY_TYPE) == 0 ||
            given.memory_type != UCS_MEMORY_TYPE_HOST) &&
           sees_gpu_memory();
}

// Of the first buffer that has bytes: a list in host memory costs no more than this look.
bool begins_on_gpu(const ucp_dt_iov_t *list, size_t number) noexcept {
    for (const ucp_dt_iov_t *one = list; one != list + number; ++one) {
        if (one->length != 0) {
            return gpu::is_on_gpu(gpu::platform::instance().query(one->buffer).kind);
        }
    }
    return false;
}

// Null: not to be served.
std::shared_ptr<const dt::iov_type> find_type(const ucx_instance &ucx, const ucp_dt_iov_t *list,
                                              size_t number, iov_message::use what) noexcept try {
    std::shared_ptr<const dt::iov_type> type = dt::find_iov_type(ucx, list, number);
    return type != nullptr && dt::is_on_one_gpu(*type) &&
                   (what == iov_message::use::send || !type->overlaps())
               ? type
               : nullptr;
} catch (const std::bad_alloc &) {
    return nullptr;
}

}  // namespace

bool may_serve_lists() noexcept try {
    return config().iov && gpu::look_for_gpus().possible;
} catch (const std::bad_alloc &) {
    return false;
}

iov_message::iov_message(const ucx_instance &ucx, const void *list, size_t number,
                         const ucp_request_param_t &given, use what) noexcept {
    const auto *entries = static_cast<const ucp_dt_iov_t *>(list);
    if (config().iov && may_serve(ucx, given) && begins_on_gpu(entries, number)) {
        serve(ucx, entries, number, given, what);
    }
}

iov_message::iov_message(const ucx_instance &ucx, const void *buffer, size_t bytes,
                         const ucp_request_param_t &given) noexcept {
    if (!may_serve(ucx, given)) {
        return;
    }
    const gpu::memory_info memory = gpu::known_memory::query(buffer);
    const auto begin = reinterpret_cast<uintptr_t>(buffer);
    if (gpu::is_on_gpu(memory.kind) && gpu::reaches_end(memory, begin, begin + bytes) &&
        gpu::platform::instance().get_device(memory.device) != nullptr) {
        const ucp_dt_iov_t all = {reinterpret_cast<void *>(anywhere), bytes};
        use_type(dt::find_iov_type(ucx, &all, 1), given);  // one type for all of this length
        buffer_ = const_cast<void *>(buffer);
    }
}

void iov_message::serve(const ucx_instance &ucx, const ucp_dt_iov_t *list, size_t number,
                        const ucp_request_param_t &given, use what) noexcept {
    use_type(find_type(ucx, list, number, what), given);
}

void iov_message::use_type(std::shared_ptr<const dt::iov_type> type,
                           const ucp_request_param_t &given) noexcept {
    type_ = std::move(type);
    if (type_ != nullptr) {
        buffer_ = type_->lowest;
        param_ = given;
        param_.op_attr_mask = (given.op_attr_mask & ~of_memory) | UCP_OP_ATTR_FIELD_DATATYPE;
        param_.datatype = type_->datatype;
    }
}

}  // namespace cuda_nc::hooks
