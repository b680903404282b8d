// One rank's buffers of a message test, and what must be in them.
#pragma once

#include <memory>
#include <string>

#include "tools/perftest/message/memory.hpp"
#include "ucs/layout/layout.hpp"

namespace cuda_nc::tools {

struct side_request {
    layout_ref what;
    std::string memory;  // as allocate_memory takes it
    int gpu = 0;
    unsigned window = 1;  // messages, each with memory of its own
    size_t misalign = 0;
    int rank = 0, peer = 0;  // the bytes differ by the rank that sends them, and by message
};

class message_side {
  public:
    explicit message_side(const side_request &request);  // throws run_error

    // What message `index` is sent from and received at: displacement 0 of the layout.
    char *source(unsigned index) const noexcept { return at(*send_, index); }
    char *target(unsigned index) const noexcept { return at(*receive_, index); }

    void fill_source();
    void fill_target();
    // The first difference in words, or nothing, of what `messages` messages from the peer must
    // have left of the last fill_target(), gaps included. `inject`: byte or gap spoils one first.
    std::string verify(unsigned messages, const std::string &inject);

    // Bytes from one message to the next.
    static size_t stride_of(const layout &what, size_t misalign) noexcept;

  private:
    char *at(const message_memory &memory, unsigned index) const noexcept;

    const side_request request_;
    const size_t span_, stride_;
    std::unique_ptr<message_memory> send_, receive_;
};

}  // namespace cuda_nc::tools
