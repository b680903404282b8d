// Ports of sends that ended before their receiver was through: the receiver's kernel may still
// return credit there. A port is released when the receiver has said that it does not, and goes
// into quarantine when its endpoint closes before. Used with UCX's worker locked.
#pragma once

#include <cstdint>
#include <map>

#include "uct/cuda_nc/pipe/port.hpp"

namespace cuda_nc::uct {

struct endpoint;

class unreturned_ports {
  public:
    unreturned_ports() = default;
    ~unreturned_ports();
    unreturned_ports(const unreturned_ports &) = delete;
    unreturned_ports &operator=(const unreturned_ports &) = delete;

    // `receiver`: the process whose kernel may write. Null endpoint: quarantine at once.
    void add(pipe_port *port, message_of_peer message, const endpoint *ep,
             const process_id &receiver) noexcept;
    // The receiver's kernel writes no more for this message: also leaves quarantine.
    void handle_ended(message_of_peer message) noexcept;
    void endpoint_closed(const endpoint &ep) noexcept;

  private:
    struct unreturned {
        pipe_port *port;
        uint64_t peer;
        const endpoint *ep;
        process_id receiver;
    };
    std::map<uint64_t, unreturned> all_;  // by the message's number
};

}  // namespace cuda_nc::uct
