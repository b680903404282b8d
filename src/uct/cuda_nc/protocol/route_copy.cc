#include "uct/cuda_nc/protocol/route_copy.hpp"

#include <utility>

#include "ucs/base/settings.hpp"
#include "ucs/gpu/box.hpp"
#include "uct/cuda_nc/counters.hpp"
#include "uct/cuda_nc/pipe/shape.hpp"

namespace cuda_nc::uct {

bool copy_receiver::is_quicker(const receive_context &context, const gpu::device &gpu,
                               const gpu::pipe_work &work, const layout &target,
                               const char *base) noexcept {
    constexpr size_t few = 4;  // many messages share launches, and kernels are as quick for them
    const bool alike = work.source == nullptr;
    const layout_view &to = alike ? target.in_memory_order().view() : target.view();
    gpu::box rows;
    return config().copy_engines && context.services.messages.size() <= few && gpu.copies_rows() &&
           gpu::find_box(alike ? to : *work.source, to, context.total, &rows) &&
           copy_pays(rows, work.source_base, base) && acquire_copy(context.device, context.total);
}

copy_receiver::~copy_receiver() {
    stop();
    copy_receiver::release(true);
}

void copy_receiver::release(bool sender_is_through) noexcept {
    pull_receiver::release(sender_is_through);
    if (std::exchange(holds_copy_, false)) {
        release_copy(message_.device);
    }
}

void copy_receiver::count_received() const noexcept {
    pull_receiver::count_received();
    count(counters::all().received_by_copy);
}

}  // namespace cuda_nc::uct
