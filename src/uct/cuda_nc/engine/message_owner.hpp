// What the engine asks of whoever keeps the direct messages.
#pragma once

#include <cstdint>

namespace cuda_nc::uct {

struct endpoint;

class message_owner {
  public:
    // Looks at the message, if it still exists, and says how much happened. Any message may end in
    // the call, this one too.
    virtual unsigned progress_message(uint64_t message) noexcept = 0;
    virtual unsigned progress_all() noexcept = 0;

    virtual bool exists(uint64_t message) const noexcept = 0;
    // Nobody but progress_message() will see what its GPU or the network does next.
    virtual bool is_polled(uint64_t message) const noexcept = 0;

    // Whether UCP may go on with a send: its outcome is known (complete, declined, or it no longer
    // exists), or its FIN is to go ahead.
    virtual bool is_decided(uint64_t message) const noexcept = 0;

  protected:
    ~message_owner() = default;
};

// What a flush waits for beside UCP's requests.
class unsent_messages {
  public:
    virtual bool has_unsent(const endpoint *ep) const noexcept = 0;

  protected:
    ~unsent_messages() = default;
};

}  // namespace cuda_nc::uct
