#include "uct/cuda_nc/one_sided/iface.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>

#include "ucs/base/log.hpp"
#include "ucs/layout/layout.hpp"
#include "uct/cuda_nc/counters.hpp"
#include "uct/cuda_nc/layout_order.hpp"
#include "uct/cuda_nc/memory/this_machine.hpp"
#include "uct/cuda_nc/one_sided/component.hpp"

namespace cuda_nc::uct {
namespace {

using namespace abi;
using direction = list_mover::direction;

std::atomic<int> registered_device{-1};

one_sided_address own_address(served_memory served) noexcept {
    one_sided_address address = {};
    address.version = one_sided_version;
    address.served = served;
    address.host = this_machine();
    address.process = own_process_id();
    return address;
}

// ---- puts and gets

// Adds one block, or several of `length` bytes at `stride` on both sides. Where some are added and
// then one fails, *added_p says so.
struct block_run {
    char *local;
    uint64_t remote;
    size_t length;
    size_t count;
    size_t local_stride, remote_stride;
};

ucs_status_t add_run(list_mover &mover, int lane, direction dir, const block_run &run,
                     remote_key &key, bool may_wait, bool *added_p) noexcept {
    for (size_t i = 0; i < run.count; ++i) {
        if (run.length == 0) {
            break;
        }
        char *local = run.local + i * run.local_stride;
        const uint64_t remote = run.remote + i * run.remote_stride;
        ucs_status_t status = mover.add(lane, dir, local, key, remote, run.length);
        if (status == UCS_ERR_NO_RESOURCE && (may_wait || *added_p)) {
            mover.make_room(lane);
            status = mover.add(lane, dir, local, key, remote, run.length);
        }
        if (status != UCS_OK) {
            return status;
        }
        *added_p = true;
    }
    return UCS_OK;
}

int lane_of(direction dir, const remote_key &key, const void *memh, const void *buffer) noexcept {
    return key.owner() != nullptr ? list_mover::host_lane(*key.owner(), dir)
           : memh != nullptr      ? static_cast<const registered_memory *>(memh)->device()
                                  : device_of(buffer);
}

void note_error(uct_completion *completion, ucs_status_t status) noexcept {
    if (completion != nullptr && completion->status == UCS_OK) {
        completion->status = status;
    }
}

// All of an order in the place of its block. UCS_ERR_UNSUPPORTED: the block is to be moved as any
// other.
ucs_status_t move_order(list_mover &mover, layout_order &order, int lane, remote_key &key,
                        uct_completion *completion) noexcept {
    const layout &remote = order.remote();
    if (lane == list_mover::unreached || completion == nullptr) {
        return UCS_ERR_UNSUPPORTED;
    }
    if (!key.contains(order.remote_base + static_cast<uint64_t>(remote.lower_bound()),
                      static_cast<uint64_t>(remote.upper_bound() - remote.lower_bound()))) {
        nc_error("a put or get leads out of the memory of its key");
        return UCS_ERR_INVALID_PARAM;
    }
    const ucs_status_t status = mover.add(lane, order, key, completion);
    if (status == UCS_OK) {
        order.take(completion);
    }
    return status == UCS_OK ? UCS_INPROGRESS : status;
}

// Where a call goes on in another lane: one end for each lane's part.
void end_part(list_mover &mover, bool goes_on_elsewhere, int lane,
              uct_completion *completion) noexcept {
    if (!goes_on_elsewhere) {
        return;
    }
    if (completion != nullptr) {
        ++completion->count;
    }
    mover.complete_with(lane, completion);
}

template <direction dir>
ucs_status_t zcopy(uct_ep *ep, const void *vector, size_t number, uint64_t remote, uintptr_t rkey,
                   void *completion) {
    list_mover &mover = *one_sided_interface::of(ep->iface).mover;
    auto &key = *reinterpret_cast<remote_key *>(rkey);
    auto *end = static_cast<uct_completion *>(completion);
    const auto *iov = static_cast<const uct_iov *>(vector);
    bool added = false;
    int lane = list_mover::unreached;
    layout_order *order =
        number == 1 && iov[0].count == 1
            ? layout_order::of(dir == direction::put, iov[0].buffer, remote, iov[0].length)
            : nullptr;
    if (order != nullptr) {
        lane = lane_of(dir, key, iov[0].memh, iov[0].buffer);
        const ucs_status_t status = move_order(mover, *order, lane, key, end);
        if (status != UCS_ERR_UNSUPPORTED) {
            return status;
        }
    }
    for (size_t i = 0; i < number; ++i) {
        const block_run run = {static_cast<char *>(iov[i].buffer),
                               remote,
                               iov[i].length,
                               iov[i].count,
                               iov[i].stride,
                               iov[i].length};
        const int its_lane = lane_of(dir, key, iov[i].memh, iov[i].buffer);
        end_part(mover, added && its_lane != lane, lane, end);
        lane = its_lane;
        const ucs_status_t status = add_run(mover, lane, dir, run, key, false, &added);
        if (status != UCS_OK && !added) {
            return status;
        }
        if (status != UCS_OK) {  // what was added still runs
            note_error(end, status);
            break;
        }
        remote += iov[i].length * iov[i].count;
    }
    if (!added) {
        return UCS_OK;
    }
    mover.complete_with(lane, end);
    return UCS_INPROGRESS;
}

ucs_status_t move_list(uct_ep *ep, direction dir, void *const *buffers, const size_t *lengths,
                       void *const *memhs, const uint64_t *addresses, const uintptr_t *rkeys,
                       const size_t *counts, const size_t *strides, size_t number,
                       uct_completion *completion) noexcept {
    list_mover &mover = *one_sided_interface::of(ep->iface).mover;
    if (!are_keys(rkeys, number)) {
        nc_error(
            "a list of blocks has keys of memory that is reached in different ways: give each "
            "kind of memory a list of its own");
        return UCS_ERR_INVALID_PARAM;
    }
    bool added = false;
    int lane = list_mover::unreached;
    for (size_t i = 0; i < number; ++i) {
        auto &key = *reinterpret_cast<remote_key *>(rkeys[i]);
        const int its_lane = lane_of(dir, key, memhs != nullptr ? memhs[i] : nullptr, buffers[i]);
        end_part(mover, added && its_lane != lane, lane, completion);
        lane = its_lane;
        const size_t stride = strides != nullptr ? strides[i] : 0;
        const block_run run = {static_cast<char *>(buffers[i]),   addresses[i], lengths[i],
                               counts != nullptr ? counts[i] : 1, stride,       stride};
        const ucs_status_t status = add_run(mover, lane, dir, run, key, true, &added);
        if (status != UCS_OK && !added) {
            return status;
        }
        if (status != UCS_OK) {
            note_error(completion, status);
            break;
        }
    }
    if (!added) {
        return UCS_OK;
    }
    mover.complete_with(lane, completion);
    return UCS_INPROGRESS;
}

ucs_status_t add_pending(uct_ep *ep, void *request, unsigned) {
    return one_sided_interface::of(ep->iface).mover->add_pending(ep, request);
}

void purge_pending(uct_ep *ep, function callback, void *argument) {
    one_sided_interface::of(ep->iface).mover->purge_pending(
        ep, reinterpret_cast<list_mover::purge_callback>(callback), argument);
}

ucs_status_t flush_ep(uct_ep *ep, unsigned, void *completion) {
    return one_sided_interface::of(ep->iface).mover->flush(
        static_cast<uct_completion *>(completion));
}

ucs_status_t fence_ep(uct_ep *ep, unsigned) {
    one_sided_interface::of(ep->iface).mover->fence();
    return UCS_OK;
}

// ---- endpoints

ucs_status_t create_ep(const uct_ep_params *params, uct_ep **ep_p) {
    if (!(params->field_mask & ep_param::iface_addr) ||
        !reaches_memory_of(params->iface, params->iface_addr)) {
        return UCS_ERR_UNREACHABLE;
    }
    one_sided_address address;
    std::memcpy(&address, params->iface_addr, sizeof(address));
    const bool is_host = one_sided_interface::of(params->iface).served == served_memory::host;
    auto *made = new (std::nothrow) one_sided_endpoint{
        {params->iface}, address.process, is_host ? host_process::find(address.process) : nullptr};
    *ep_p = made != nullptr ? &made->super : nullptr;
    return made != nullptr ? UCS_OK : UCS_ERR_NO_MEMORY;
}

// Its puts and gets end with the interface's.
void destroy_ep(uct_ep *ep) {
    list_mover &mover = *one_sided_interface::of(ep->iface).mover;
    mover.purge_pending(ep, nullptr, nullptr);
    mover.forget_the_gone();
    delete &one_sided_endpoint::of(ep);
}

// ---- interface

ucs_status_t query(uct_iface *iface, uct_iface_attr *attr) {
    std::memset(attr, 0, sizeof(*attr));
    attr->max_num_eps = SIZE_MAX;
    attr->dev_num_paths = 1;
    attr->iface_addr_len = sizeof(one_sided_address);
    attr->cap.flags =
        cap_flag::errhandle_peer_failure | cap_flag::connect_to_iface | cap_flag::pending;
    if (one_sided_interface::of(iface).serves) {
        attr->cap.flags |= cap_flag::put_zcopy | cap_flag::get_zcopy;
    }
    attr->cap.event_flags = event_flag::send_completion | event_flag::receive | event_flag::fd;
    for (rma_limits *one : {&attr->cap.put, &attr->cap.get}) {
        one->max_zcopy = SIZE_MAX;
        one->opt_zcopy_align = 1;
        one->align_mtu = 1;
        one->max_iov = 16;
    }
    const transport_cost cost = cost_of(one_sided_interface::of(iface).served);
    attr->latency = {cost.latency, 0};
    attr->bandwidth = {0, cost.bandwidth};
    attr->overhead = cost.overhead;
    attr->reserved_ctl_device = UINT8_MAX;
    return UCS_OK;
}

ucs_status_t get_address(uct_iface *iface, void *address) {
    const one_sided_address own = own_address(one_sided_interface::of(iface).served);
    std::memcpy(address, &own, sizeof(own));
    return UCS_OK;
}

ucs_status_t get_device_address(uct_iface *, void *) {
    return UCS_OK;  // it is empty
}

int is_reachable_simply(uct_iface *iface, const void *, const void *iface_address) {
    return reaches_memory_of(iface, iface_address) ? 1 : 0;
}

ucs_status_t flush_iface(uct_iface *iface, unsigned, void *completion) {
    return one_sided_interface::of(iface).mover->flush(static_cast<uct_completion *>(completion));
}

ucs_status_t fence_iface(uct_iface *iface, unsigned) {
    one_sided_interface::of(iface).mover->fence();
    return UCS_OK;
}

// The mover asks the worker for progress while anything is under way.
void change_progress(uct_iface *, unsigned) {}

unsigned progress(uct_iface *iface) {
    return one_sided_interface::of(iface).mover->progress();
}

ucs_status_t get_event_fd(uct_iface *iface, int *fd_p) {
    one_sided_interface &ours = one_sided_interface::of(iface);
    if (ours.event_fd < 0) {
        ours.event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    }
    *fd_p = ours.event_fd;
    return ours.event_fd >= 0 ? UCS_OK : UCS_ERR_IO_ERROR;
}

// No event tells of a kernel's end: nobody is to sleep before it.
ucs_status_t arm_event(uct_iface *iface, unsigned) {
    return one_sided_interface::of(iface).mover->is_quiet() ? UCS_OK : UCS_ERR_BUSY;
}

void close_iface(uct_iface *iface) {
    one_sided_interface *ours = &one_sided_interface::of(iface);
    if (ours->event_fd >= 0) {
        close(ours->event_fd);
    }
    delete ours;
}

ucs_status_t unsupported() {
    return UCS_ERR_UNSUPPORTED;
}

void set_ops(uct_iface_ops &ops) noexcept {
    auto *all = reinterpret_cast<function *>(&ops);
    for (size_t i = 0; i < sizeof(ops) / sizeof(function); ++i) {
        all[i] = reinterpret_cast<function>(unsupported);
    }
    ops.ep_put_zcopy = zcopy<direction::put>;
    ops.ep_get_zcopy = zcopy<direction::get>;
    ops.ep_pending_add = add_pending;
    ops.ep_pending_purge = purge_pending;
    ops.ep_flush = flush_ep;
    ops.ep_fence = fence_ep;
    ops.ep_create = create_ep;
    ops.ep_destroy = destroy_ep;
    ops.iface_flush = flush_iface;
    ops.iface_fence = fence_iface;
    ops.iface_progress_enable = change_progress;
    ops.iface_progress_disable = change_progress;
    ops.iface_progress = progress;
    ops.iface_event_fd_get = get_event_fd;
    ops.iface_event_arm = arm_event;
    ops.iface_close = close_iface;
    ops.iface_query = query;
    ops.iface_get_device_address = get_device_address;
    ops.iface_get_address = get_address;
    ops.iface_is_reachable = is_reachable_simply;
}

// Between GPUs a get of one block takes no longer than cuda_ipc's, and many take a fraction: so UCP
// may read contiguous messages by it as well. Of host memory it may not, where a program sends by
// tags: UCX's transports are as quick for one block, and need no right to the other's memory.
bool serves_program(const uct_iface_params &params, served_memory served) noexcept {
    return served == served_memory::gpu || ((params.features & iface_param::flush_remote) != 0 &&
                                            (params.features & iface_param::tag) == 0);
}

}  // namespace

int device_of(const void *address) noexcept {
    const gpu::memory_info memory = gpu::platform::instance().query(address);
    if (memory.kind != gpu::memory_kind::device) {
        return list_mover::unreached;
    }
    registered_device.store(memory.device, std::memory_order_relaxed);
    return memory.device;
}

int any_registered_device() noexcept {
    return registered_device.load(std::memory_order_relaxed);
}

bool reaches_memory_of(const uct_iface *iface, const void *address) noexcept {
    one_sided_address peer;
    std::memcpy(&peer, address, sizeof(peer));
    if (peer.version != one_sided_version || peer.served != one_sided_interface::of(iface).served ||
        peer.host != this_machine() || peer.process.pid_space != own_process_id().pid_space ||
        is_own(peer.process)) {
        return false;
    }
    // UCX drops slower transports for this one, so it must be sure.
    const std::shared_ptr<const host_process> process =
        peer.served == served_memory::host ? host_process::find(peer.process) : nullptr;
    return peer.served == served_memory::gpu || (process != nullptr && process->is_open());
}

ucs_status_t put_list(uct_ep *ep, void *const *buffers, const size_t *lengths, void *const *memhs,
                      const uint64_t *addresses, const uintptr_t *rkeys, const size_t *counts,
                      const size_t *strides, size_t number, void *completion) {
    return move_list(ep, direction::put, buffers, lengths, memhs, addresses, rkeys, counts, strides,
                     number, static_cast<uct_completion *>(completion));
}

ucs_status_t get_list(uct_ep *ep, void *const *buffers, const size_t *lengths, void *const *memhs,
                      const uint64_t *addresses, const uintptr_t *rkeys, const size_t *counts,
                      const size_t *strides, size_t number, void *completion) {
    return move_list(ep, direction::get, buffers, lengths, memhs, addresses, rkeys, counts, strides,
                     number, static_cast<uct_completion *>(completion));
}

ucs_status_t open_one_sided_iface(uct_md *md, void *worker, const uct_iface_params *params,
                                  const uct_iface_config *, uct_iface **iface_p) try {
    auto made = std::make_unique<one_sided_interface>();
    const ucx_api &ucx = *one_sided_domain::of(md).ucx;
    made->ucx = &ucx;
    made->served = one_sided_domain::of(md).served;
    made->serves =
        (params->field_mask & iface_param::features) == 0 || serves_program(*params, made->served);
    made->mover = std::make_unique<list_mover>(ucx, worker,
                                               made->serves ? worker_turns::open(worker) : nullptr);
    counters::report_at_exit();
    uct_base_iface &base = made->super;
    set_ops(base.super.ops);
    base.internal_ops = one_sided_ops_of(ucx.which);
    base.md = md;
    base.worker = worker;
    base.prog.id = -1;
    if (params->field_mask & iface_param::err_handler) {
        base.err_handler = params->err_handler;
    }
    if (params->field_mask & iface_param::err_handler_arg) {
        base.err_handler_arg = params->err_handler_arg;
    }
    auto *opened = reinterpret_cast<uct_iface *>(made.release());
    for (unsigned id = 0; id < max_am_ids; ++id) {
        ucx.uct_iface_set_am_handler(opened, static_cast<uint8_t>(id), nullptr, nullptr, 0);
    }
    *iface_p = opened;
    return UCS_OK;
} catch (const std::bad_alloc &) {
    return UCS_ERR_NO_MEMORY;
}

}  // namespace cuda_nc::uct
