// Messages with several peers at once, prepared once and exchanged many times.
#pragma once

#include <cstddef>
#include <vector>

namespace cuda_nc::tools {

class message_type;

// A message to a peer, and one from it. Two ranks may have several; tags tell them apart.
struct exchanged_message {
    int peer = 0, send_tag = 0, receive_tag = 0;
    const message_type *sent = nullptr, *received = nullptr;
    size_t sent_at = 0, received_at = 0;  // bytes from the exchange's addresses
};

class message_exchange {
  public:
    virtual ~message_exchange() = default;
    // All ranks call it. What was received is there on return. Throws run_error.
    virtual void run() = 0;
};

// Indices of messages in an order that the two ranks of a message agree on. What the one sends as
// its k-th message to the other is the k-th that the other receives from it.
std::vector<size_t> order_of_sends(const std::vector<exchanged_message> &messages);
std::vector<size_t> order_of_receives(const std::vector<exchanged_message> &messages);

}  // namespace cuda_nc::tools
