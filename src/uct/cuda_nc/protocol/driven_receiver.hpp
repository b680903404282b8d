// What the receiver's ends of pipes and pulls have in common: a drive. A pipe has a port too, and
// channels that are promised to the message from its answer to its end.
#pragma once

#include "uct/cuda_nc/pipe/drive.hpp"
#include "uct/cuda_nc/pipe/port.hpp"
#include "uct/cuda_nc/protocol/route.hpp"

namespace cuda_nc::uct {

class driven_receiver : public receive_route {
  public:
    bool moves_whole_message() const noexcept final { return true; }

  protected:
    explicit driven_receiver(receive_context &context) noexcept
        : receive_route(context),
          drive_(context.services.schedule, context.services.events, context.services.looks,
                 context.id, context.sender) {}

    // A port, if there is a stream for it: when a sender has filled the ring it is too late to find
    // that there is none. False: out of resources.
    bool acquire_port() noexcept;
    void begin_drive(const gpu::pipe_work &work, uint64_t segment, bool in_memory_order) noexcept;
    void begin_pull(const gpu::pipe_work &work, bool in_memory_order, bool lone_list) noexcept {
        drive_.begin_pull(*message_.buffer, work, message_.total, in_memory_order, lone_list);
    }
    // Gives back port and promise. `peer_may_write`: to the port.
    void release_port(bool peer_may_write) noexcept;

    pipe_port *port_ = nullptr;
    pipe_drive drive_;

  private:
    unsigned promised_ = 0;  // channels
};

}  // namespace cuda_nc::uct
