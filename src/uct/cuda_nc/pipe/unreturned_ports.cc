#include "uct/cuda_nc/pipe/unreturned_ports.hpp"

#include <iterator>
#include <new>

namespace cuda_nc::uct {

unreturned_ports::~unreturned_ports() {
    for (auto &[number, one] : all_) {
        quarantine_port(one.port, one.receiver, {number, one.peer});
    }
}

void unreturned_ports::add(pipe_port *port, message_of_peer message, const endpoint *ep,
                           const process_id &receiver) noexcept try {
    if (ep == nullptr) {
        quarantine_port(port, receiver, message);
    } else {
        all_.emplace(message.number, unreturned{port, message.peer, ep, receiver});
    }
} catch (const std::bad_alloc &) {
    quarantine_port(port, receiver, message);
}

void unreturned_ports::handle_ended(message_of_peer message) noexcept {
    auto found = all_.find(message.number);
    if (found != all_.end() && found->second.peer == message.peer) {
        release_port(found->second.port);
        all_.erase(found);
    } else {
        leave_quarantine(message);
    }
}

void unreturned_ports::endpoint_closed(const endpoint &ep) noexcept {
    for (auto at = all_.begin(); at != all_.end();) {
        if (at->second.ep == &ep) {
            quarantine_port(at->second.port, at->second.receiver, {at->first, at->second.peer});
            at = all_.erase(at);
        } else {
            ++at;
        }
    }
}

}  // namespace cuda_nc::uct
