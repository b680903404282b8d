// One rank's buffers in a message measurement, and what must be in them.
#pragma once

#include <memory>
#include <string>

#include "tools/perftest/message/memory.hpp"
#include "ucs/layout/layout.hpp"

namespace cuda_nc::tools {

struct buffers_request {
    layout_ref what;
    std::string memory;  // as allocate_memory takes it
    int gpu = 0;
    unsigned window = 1;  // messages in flight, each with memory of its own
    size_t misalign = 0;
    int rank = 0, peer = 0;  // the bytes differ by the rank that sends them, and by message
};

class rank_buffers {
  public:
    explicit rank_buffers(const buffers_request &request);  // throws run_error

    // What message `index` is sent from and received at: displacement 0 of the layout.
    char *source(unsigned index) const noexcept { return at(*send_, index); }
    char *target(unsigned index) const noexcept { return at(*receive_, index); }

    void fill_source();
    void fill_target();
    // Compares the targets, gaps included, with what `messages` messages from the peer must have
    // made of the last fill_target(). Returns the first difference as a sentence, or an empty text.
    // `inject` (byte or gap) spoils one byte first, as a test of this test.
    std::string verify(unsigned messages, const std::string &inject);

    // Bytes from one message to the next.
    static size_t stride_of(const layout &what, size_t misalign) noexcept;

  private:
    char *at(const message_memory &memory, unsigned index) const noexcept;

    const buffers_request request_;
    const size_t span_, stride_;
    std::unique_ptr<message_memory> send_, receive_;
};

}  // namespace cuda_nc::tools
