#include "uct/cuda_nc/protocol/driven_receiver.hpp"

#include <utility>

#include "uct/cuda_nc/engine/stream_pool.hpp"

namespace cuda_nc::uct {

bool driven_receiver::acquire_port() noexcept {
    if (has_stream(message_.device)) {
        port_ = uct::acquire_port(message_.device);
    }
    return port_ != nullptr;
}

void driven_receiver::begin_drive(const gpu::pipe_work &work, uint64_t segment,
                                  bool in_memory_order) noexcept {
    promised_ = work.geometry.channels;
    promise_channels(message_.device, promised_);
    drive_.begin(*port_, *message_.buffer, gpu::direction::unpack, work, message_.total, segment,
                 in_memory_order);
}

void driven_receiver::release_port(bool peer_may_write) noexcept {
    pipe_port *port = std::exchange(port_, nullptr);
    if (port != nullptr && drive_.is_broken()) {
        retire_port(port);
    } else if (port != nullptr && !peer_may_write) {
        uct::release_port(port);
    } else if (port != nullptr) {
        quarantine_port(port, message_.sending_process, {message_.id, message_.peer});
    }
    if (promised_ != 0) {
        end_promise(message_.device, std::exchange(promised_, 0));
    }
}

}  // namespace cuda_nc::uct
