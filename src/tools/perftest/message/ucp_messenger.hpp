// Two processes through UCP's tagged messages. Public API alone; layouts become the datatypes of
// this product's C API.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "tools/perftest/message/messenger.hpp"
#include "tools/perftest/support/run_error.hpp"
#include "tools/perftest/message/socket.hpp"
#include "tools/perftest/message/ucp_library.hpp"

namespace cuda_nc::tools {

class ucp_messenger final : public messenger {
  public:
    // Called where a wait for the other process fails, while the buffers of messages in flight
    // still exist. May end the process.
    using failure_handler = std::function<void(const run_error &)>;

    // Initialises UCP with the environment as it is. `peer` must be in its ucp_messenger too; no
    // wait for it is longer than `limit_s`.
    ucp_messenger(int rank, connection peer, double limit_s, failure_handler on_failure);
    ~ucp_messenger() override;

    int rank() const noexcept override { return rank_; }
    int size() const noexcept override { return 2; }
    std::unique_ptr<message_type> make_type(const layout &what) override;
    std::unique_ptr<message_type> make_contiguous(size_t bytes) override;
    void send(const void *address, const message_type &type, int peer, int tag) override;
    void receive(void *address, const message_type &type, int peer, int tag) override;
    void start_send(const void *address, const message_type &type, int peer, int tag) override;
    void start_receive(void *address, const message_type &type, int peer, int tag) override;
    void finish() override;
    std::vector<std::string> gather(const std::string &mine) override;
    void barrier() override { gather(""); }

    // "cuda_nc/memory, cma/memory": what UCX has chosen; empty where this UCX does not tell.
    std::string transports() const;

  private:
    void *begin_send(const void *address, const message_type &type, int tag);
    void *begin_receive(void *address, const message_type &type, int tag);
    void wait(void *request);
    void connect();
    std::chrono::nanoseconds limit() const;
    void close_endpoint();
    template <class Action>
    void with_peer(Action &&action);  // passes its run_error to on_failure_ before throwing it

    const int rank_;
    connection peer_;
    const double limit_s_;
    failure_handler on_failure_;
    const ucp_library &ucp_;
    const int exceptions_;  // in flight when this was made
    ucp_context_h context_ = nullptr;
    ucp_worker_h worker_ = nullptr;
    ucp_ep_h endpoint_ = nullptr;
    std::vector<void *> started_;
};

}  // namespace cuda_nc::tools
