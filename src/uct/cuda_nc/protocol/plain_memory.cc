#include "uct/cuda_nc/protocol/plain_memory.hpp"

#include <new>

namespace cuda_nc::uct {

bool plain_memory::make_movable() noexcept try {
    layout_builder one;
    one.append(0, length_);
    layout_ = one.finish();
    return layout_ != nullptr;
} catch (const std::bad_alloc &) {
    return false;
}

bool plain_memory::reserve_stream() noexcept {
    bool later;
    if (stream_ == nullptr) {
        stream_ = acquire_stream(memory_.device, &later);
    }
    return stream_ != nullptr;
}

const layout *plain_memory::laid_out(char **base_p) const noexcept {
    *base_p = base();
    return layout_.get();
}

ucs_status_t plain_memory::enqueue(uint64_t offset, uint64_t length, char *packed,
                                   gpu::event &done) noexcept {
    ucs_status_t status = UCS_ERR_NO_RESOURCE;
    for (int times = 0; times < 2 && status != UCS_OK; ++times) {  // the same bytes, if need be
        if (!reserve_stream()) {
            return UCS_ERR_NO_RESOURCE;
        }
        gpu::stream &on = stream_->get();
        status = on.copy(base() + offset, packed, length);
        if (status == UCS_OK) {
            status = on.record(done);
        }
        if (status != UCS_OK) {
            stream_->spoil();
            stream_->finish();  // waits for what was enqueued
            stream_ = nullptr;
        }
    }
    return status;
}

ucs_status_t plain_memory::describe(gpu::pipe_work &work, bool) noexcept {
    if (layout_ == nullptr) {
        return UCS_ERR_UNSUPPORTED;
    }
    work.dir = gpu::direction::unpack;
    work.layout = work.on_host = &layout_->view();
    work.base = base();
    // managed memory may lie elsewhere
    work.into_own_memory = memory_.kind == gpu::memory_kind::device;
    return UCS_OK;
}

}  // namespace cuda_nc::uct
