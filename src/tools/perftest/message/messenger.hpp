// Sends the measured messages: by UCP between two processes, or by an MPI between any number.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tools/perftest/message/exchange.hpp"
#include "ucs/layout/layout.hpp"

namespace cuda_nc::tools {

// A datatype of the messenger; a message is one element of it.
class message_type {
  public:
    virtual ~message_type() = default;
};

// Every wait is bounded; all members throw run_error, in particular where a peer is gone or silent.
// Messages between two ranks match by tag; tags are 0 to 999.
class messenger {
  public:
    virtual ~messenger() = default;
    virtual int rank() const noexcept = 0;
    virtual int size() const noexcept = 0;

    // The layout's blocks at their displacements from the address given with a message.
    virtual std::unique_ptr<message_type> make_type(const layout &what) = 0;
    virtual std::unique_ptr<message_type> make_contiguous(size_t bytes) = 0;

    // Whether a layout of one block is sent as contiguous memory. That fails for memory of a
    // simulated GPU, which only this product can read.
    virtual bool sends_one_block_as_contiguous() const noexcept { return false; }

    // Complete on return.
    virtual void send(const void *address, const message_type &type, int peer, int tag) = 0;
    virtual void receive(void *address, const message_type &type, int peer, int tag) = 0;
    // Complete after finish().
    virtual void start_send(const void *address, const message_type &type, int peer, int tag) = 0;
    virtual void start_receive(void *address, const message_type &type, int peer, int tag) = 0;
    virtual void finish() = 0;
    // Messages between these addresses. The types and the memory outlive it. All ranks make it.
    // `way`: "isend" starts each message and waits for all. An MPI knows more; any other is a
    // run_error.
    virtual std::unique_ptr<message_exchange> make_exchange(
        const std::string &way, const void *from, void *to,
        const std::vector<exchanged_message> &messages);

    // Every rank's text, by rank, on every rank; outside of what is measured.
    virtual std::vector<std::string> gather(const std::string &mine) = 0;
    virtual void barrier() = 0;
};

}  // namespace cuda_nc::tools
