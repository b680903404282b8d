// What a halo exchange is compared with: as many messages of the same sizes, the same way, from and
// to contiguous buffers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tools/perftest/message/exchange.hpp"
#include "tools/perftest/message/memory.hpp"
#include "tools/perftest/message/messenger.hpp"

namespace cuda_nc::tools {

// Seconds of one exchange, on average.
double time_of(message_exchange &what, unsigned times);

// Where the elements differ first, as a sentence with `where`; empty where they are equal.
std::string difference_of(const std::vector<uint64_t> &expected, const std::vector<uint64_t> &found,
                          const std::string &where);

class halo_reference {
  public:
    // `bytes` of each message are a multiple of 8. The messages to one rank lie next to each other,
    // and so do those from one rank, in the order that both agree on. Throws run_error.
    halo_reference(messenger &by, const std::string &memory, int gpu,
                   std::vector<exchanged_message> messages, const std::vector<size_t> &bytes);

    // Before the first exchange, on all ranks. Throws run_error.
    void prepare(const std::string &way);
    double exchange(unsigned times) { return time_of(*exchange_, times); }

    // Each element that is sent gets a value of its own; nothing of what is received is left.
    void fill();
    // Compares what was received, and the element behind it. `inject`: "byte" spoils an element
    // before, "gap" the one behind.
    std::string verify(const std::string &when, const std::string &inject) const;

  private:
    messenger &by_;
    std::vector<exchanged_message> messages_;
    const std::vector<size_t> bytes_;
    size_t all_bytes_ = 0;
    std::vector<std::unique_ptr<message_type>> types_;
    std::unique_ptr<message_memory> send_, receive_;
    std::unique_ptr<message_exchange> exchange_;
};

}  // namespace cuda_nc::tools
