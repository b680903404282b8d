// request_state.hpp: copy(), move()
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>

#include "ucp/dt/request_state.hpp"
#include "ucp/dt/address.hpp"
#include "ucp/dt/receive_pipeline.hpp"
#include "ucp/dt/send_pipeline.hpp"
#include "ucp/dt/shape_text.hpp"
#include "ucp/dt/staging.hpp"
#include "ucs/base/settings.hpp"
#include "ucs/base/statistics.hpp"
#include "ucs/exec/host/disjoint.hpp"
#include "ucs/exec/host/host_executor.hpp"
#include "ucs/gpu/given_orders.hpp"
#include "ucs/gpu/layout_move.hpp"
#include "ucs/worklist/worklist.hpp"

namespace cuda_nc::dt {
namespace {

using gpu::is_on_host;
using gpu::memory_kind;

// Launches, and waits for the end. `launch(stream, ends)` enqueues all of it; it may use the words.
template <class Launch>
ucs_status_t run(device_staging &staging, Launch launch) noexcept {
    std::unique_ptr<gpu::completion> done = staging.acquire_completion();
    if (done == nullptr) {
        return UCS_ERR_NO_RESOURCE;
    }
    shared_stream &shared = staging.pick_stream(gpu::direction::copy);
    ucs_status_t status, ended;
    {
        std::lock_guard<std::mutex> guard(shared.mutex);
        gpu::stream *stream = shared.ready(staging.device());
        if (stream == nullptr) {
            return UCS_ERR_NO_RESOURCE;
        }
        status = launch(*stream, done->next_ends());
        ended = stream->record(*done->mark);
    }
    gpu::given_orders::launched_instead(staging.device());
    if (ended == UCS_OK) {
        ended = done->await();
        staging.release_completion(std::move(done));
    }
    if (ended != UCS_OK) {
        shared.give_up();  // waits for its kernel, which must not write beside or after others
    }
    return status != UCS_OK ? status : ended;
}

// From GPU memory to memory of the same GPU.
ucs_status_t copy_on_device(const layout_ref &what, char *source, char *target,
                            const gpu::memory_info &to) noexcept {
    device_staging *staging = device_staging::get(std::max(to.device, 0));
    if (staging == nullptr) {
        return UCS_ERR_NO_DEVICE;
    }
    worklist::work_list_ref list;
    const layout_ref ordered(what, &what->in_memory_order());
    ucs_status_t status = worklist::acquire(staging->device(), ordered, &list);
    if (status != UCS_OK) {
        return status;
    }
    gpu::transfer work;
    work.dir = gpu::direction::copy;
    work.layout = list->view();
    work.base = source;
    work.packed = target;
    work.length = what->packed_size();
    work.max_sms = config().max_sms;
    work.into_own_memory = to.kind == memory_kind::device;
    gpu::given_orders order;
    if (list->is_ready(work.length) && order.give(staging->device(), work) &&
        order.await() != UCS_ERR_CANCELED) {
        return order.query();
    }
    return run(*staging, [&](gpu::stream &on, gpu::end_words *ends) {
        work.ends = ends;
        return worklist::launch(*list, on, work);
    });
}

// The same from one layout to another, of as many bytes.
ucs_status_t move_on_device(const layout_ref &from, const char *source, const layout_ref &to,
                            char *target, const gpu::memory_info &where) noexcept {
    device_staging *staging = device_staging::get(std::max(where.device, 0));
    if (staging == nullptr) {
        return UCS_ERR_NO_DEVICE;
    }
    const uint64_t bytes = to->packed_size();
    worklist::work_list_ref read, written;
    ucs_status_t status = worklist::acquire(staging->device(), from, &read);
    if (status == UCS_OK) {
        status = worklist::acquire(staging->device(), to, &written);
    }
    if (status != UCS_OK) {
        return status;
    }
    gpu::move_order whole;
    whole.source = &read->view();
    whole.source_base = source;
    whole.target = &written->view();
    whole.target_base = target;
    whole.length = bytes;
    whole.into_own_memory = where.kind == memory_kind::device;
    gpu::given_orders order;
    const bool may_be_order = from->kind() == shape::contiguous || to->kind() == shape::contiguous;
    if (may_be_order && bytes <= gpu::longest_order && read->is_ready(bytes) &&
        written->is_ready(bytes) && order.give(staging->device(), &whole, 1) &&
        order.await() != UCS_ERR_CANCELED) {
        return order.query();
    }
    return run(*staging, [&](gpu::stream &on, gpu::end_words *) {
        ucs_status_t ready = read->prepare(on, bytes);
        if (ready == UCS_OK) {
            ready = written->prepare(on, bytes);
        }
        gpu::layout_move work;
        work.source = &read->view();
        work.target = &written->view();
        work.source_base = source;
        work.target_base = target;
        work.is_local = true;
        work.max_sms = config().max_sms;
        return ready == UCS_OK ? gpu::launch(on, work) : ready;
    });
}

void count(const layout &what, const char *path, const char *why) noexcept {
    if (statistics_enabled()) {
        try {
            count_message_slow("copy", shape_text(what.view()), path, why, what.packed_size());
        } catch (...) {
            // a lost count harms nobody
        }
    }
}

// Where the buffers overlap all bytes are packed before the first one is unpacked.
enum class buffers { apart, overlapping };

// Packs and unpacks piece by piece through host memory.
ucs_status_t copy_through_host(const layout_ref &what, const void *source,
                               const gpu::memory_info &from, void *target,
                               const gpu::memory_info &to, buffers lie) noexcept {
    const uint64_t most = lie == buffers::apart ? uint64_t(256) << 10 : what->packed_size();
    char little[1024];  // used where malloc fails
    size_t size = std::min<uint64_t>(most, what->packed_size());
    std::unique_ptr<char, decltype(&std::free)> memory(static_cast<char *>(std::malloc(size)),
                                                       &std::free);
    if (memory == nullptr && lie == buffers::overlapping && size > sizeof(little)) {
        return UCS_ERR_NO_MEMORY;
    }
    char *piece = memory != nullptr ? memory.get() : little;
    size = memory != nullptr ? size : std::min(size, sizeof(little));

    send_pipeline reader;
    receive_pipeline writer;
    bool read_gpu = !is_on_host(from.kind), write_gpu = !is_on_host(to.kind);
    ucs_status_t status = read_gpu ? reader.begin(layout_ref(what), source, from) : UCS_OK;
    if (status != UCS_OK) {
        return status;
    }
    status = write_gpu ? writer.begin(layout_ref(what), target, to) : UCS_OK;
    write_gpu = write_gpu && status == UCS_OK;
    for (uint64_t offset = 0; offset < what->packed_size() && status == UCS_OK;) {
        size_t length = std::min<uint64_t>(size, what->packed_size() - offset);
        if (read_gpu) {
            status = reader.read(offset, piece, length);
        } else {
            exec::host_pack(what->view(), source, offset, piece, length);
        }
        if (status == UCS_OK && write_gpu) {
            status = writer.write(offset, piece, length);
        } else if (status == UCS_OK) {
            exec::host_unpack(what->view(), target, offset, piece, length);
        }
        offset += length;
    }
    if (read_gpu) {
        reader.end();
    }
    if (write_gpu) {
        ucs_status_t ended = writer.end();
        status = status != UCS_OK ? status : ended;
    }
    return status;
}

// A block of GPU memory to another address within reach of it: from the end that is read last on,
// in steps that do not overlap. UCS_ERR_UNSUPPORTED where that would be many steps. *began_p: some
// bytes have been moved, so that others may lie where they were read.
ucs_status_t shift_on_device(const layout_ref &what, char *source, char *target,
                             const gpu::memory_info &to, bool *began_p) noexcept try {
    *began_p = false;
    constexpr uint64_t most_steps = 16;
    const uint64_t all = what->packed_size();
    const uint64_t shift =
        static_cast<uint64_t>(source < target ? target - source : source - target);
    if (what->kind() != shape::contiguous || all / most_steps > shift) {
        return UCS_ERR_UNSUPPORTED;
    }
    const int64_t first = what->lower_bound();
    ucs_status_t status = UCS_OK;
    for (uint64_t done = 0; done < all && status == UCS_OK;) {
        const uint64_t step = std::min(shift, all - done);
        const int64_t at = first + static_cast<int64_t>(source < target ? all - done - step : done);
        status = copy_on_device(one_block(step), source + at, target + at, to);
        *began_p = *began_p || status == UCS_OK;
        done += step;
    }
    return status;
} catch (const std::bad_alloc &) {
    return UCS_ERR_NO_MEMORY;
}

ucs_status_t copy_overlapping(const layout_ref &what, const void *source,
                              const gpu::memory_info &from, void *target,
                              const gpu::memory_info &to) noexcept {
    if (source == target) {
        return UCS_OK;
    }
    if (!is_on_host(from.kind) && !is_on_host(to.kind) && from.device == to.device) {
        char *start = const_cast<char *>(static_cast<const char *>(source));
        bool began;
        ucs_status_t status = shift_on_device(what, start, static_cast<char *>(target), to, &began);
        if (status == UCS_OK) {
            count(*what, "GPU kernel", "overlapping buffers on one GPU, in steps");
        }
        if (status == UCS_OK || began) {
            return status;
        }
        // No kernel, or no memory for one. Copies may still do.
    }
    ucs_status_t status = copy_through_host(what, source, from, target, to, buffers::overlapping);
    count(*what, "through host memory", "overlapping buffers");
    return status;
}

}  // namespace

ucs_status_t copy(const layout_ref &what, const void *source, void *destination) noexcept {
    if (what->packed_size() == 0) {
        return UCS_OK;
    }
    gpu::memory_info from = memory_of(*what, source);
    gpu::memory_info to = memory_of(*what, destination);
    if (from.kind == memory_kind::unknown || to.kind == memory_kind::unknown) {
        return UCS_ERR_UNSUPPORTED;
    }
    if (exec::may_overlap(*what, source, destination)) {
        return copy_overlapping(what, source, from, destination, to);
    }
    if (is_on_host(from.kind) && is_on_host(to.kind)) {
        exec::host_copy(what->in_memory_order().view(), source, destination, 0,
                        what->packed_size());
        count(*what, "host engine", "buffers in host memory");
        return UCS_OK;
    }
    if (!is_on_host(from.kind) && !is_on_host(to.kind) && from.device == to.device) {
        char *start = const_cast<char *>(static_cast<const char *>(source));
        ucs_status_t status = copy_on_device(what, start, static_cast<char *>(destination), to);
        if (status == UCS_OK) {
            count(*what, "GPU kernel", "buffers on one GPU");
            return UCS_OK;
        }
        // No kernel, or no memory for one. Copies may still do.
    }
    ucs_status_t status = copy_through_host(what, source, from, destination, to, buffers::apart);
    count(*what, "through host memory", "buffers not on one GPU, or no kernel");
    return status;
}

ucs_status_t move(const layout_ref &from, const void *source, const layout_ref &to,
                  void *target) noexcept {
    if (from->packed_size() != to->packed_size()) {
        return UCS_ERR_UNSUPPORTED;
    }
    if (to->packed_size() == 0) {
        return UCS_OK;
    }
    const gpu::memory_info read = memory_of(*from, source), written = memory_of(*to, target);
    auto is_on_gpu = [](const gpu::memory_info &memory) {
        return memory.kind != memory_kind::unknown && !is_on_host(memory.kind);
    };
    if (!is_on_gpu(read) || !is_on_gpu(written) || read.device != written.device) {
        return UCS_ERR_UNSUPPORTED;
    }
    if (from->equal(*to)) {
        return copy(to, source, target);
    }
    const ucs_status_t status = move_on_device(from, static_cast<const char *>(source), to,
                                               static_cast<char *>(target), written);
    if (status == UCS_OK) {
        count(*to, "GPU kernel", "from another layout on the same GPU");
    }
    return status;
}

}  // namespace cuda_nc::dt
