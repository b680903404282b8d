// Endpoints that UCX's async thread connects while another thread has the worker.
#include <atomic>
#include <thread>

#include "uct/cuda_nc/protocol/network_fixture.hpp"

namespace cuda_nc::uct {
namespace {

class connecting_endpoints : public network_test {
  protected:
    // As a peer's connection request makes UCX do it: an endpoint to interface `identity`.
    abi::uct_ep *connect_to(uint64_t identity) {
        char address[sizeof(address_header) + sizeof(void *)] = {};
        address_header header = left_.inside().address;
        header.identity = identity;
        std::memcpy(address, &header, sizeof(header));
        abi::uct_ep_params params = {};
        params.field_mask = abi::ep_param::iface | abi::ep_param::iface_addr;
        params.iface = left_.iface;
        params.iface_addr = address;
        abi::uct_ep *made = nullptr;
        EXPECT_EQ(left_.iface->ops.ep_create(&params, &made), UCS_OK);
        return made;
    }
    void hear(control message) {
        message.version = protocol_version;
        char bytes[sizeof(message)];
        std::memcpy(bytes, &message, sizeof(message));
        auto *carrier = reinterpret_cast<abi::uct_base_iface *>(left_.inside().carrier);
        const abi::uct_am_handler &handler = carrier->am[control_id];
        handler.cb(handler.arg, bytes, length_of(message.kind), 0);
    }
};

// A look-up walks a table that grows beside it, unless they take care of each other.
TEST_F(connecting_endpoints, are_found_by_a_thread_that_progresses_meanwhile) {
    constexpr uint64_t number = 2000, first = 1000;
    for (int round = 0; round < 10; ++round) {
        open(left_);
        std::vector<abi::uct_ep *> made(number);
        std::atomic<uint64_t> connected{0};
        std::thread async([&] {
            for (uint64_t i = 0; i < number; ++i) {
                made[i] = connect_to(first + i);
                connected.store(i + 1, std::memory_order_release);
            }
        });
        uint64_t lost = 0;
        for (uint64_t seen = 0; seen < number;) {
            seen = connected.load(std::memory_order_acquire);
            if (seen == 0) {
                continue;
            }
            const uint64_t one = net_->random() % seen;
            endpoint &ep = endpoint::of(made[one]);
            control message = {};
            message.kind = control_kind::describe;
            message.identity = first + one;
            message.slot = ep.describes ? 0 : 1;
            hear(message);
            lost += ep.describes == (message.slot != 0) ? 0 : 1;
        }
        async.join();
        EXPECT_EQ(lost, 0u);
        for (abi::uct_ep *one : made) {
            one->iface->ops.ep_destroy(one);
        }
        EXPECT_TRUE(left_.inside().peers.empty() && left_.inside().endpoints.empty());
        close(left_);
    }
}

// What was kept for a peer without an endpoint is said by the thread that has the worker, when it
// progresses.
TEST_F(connecting_endpoints, hear_what_was_kept_for_their_peer_from_the_thread_that_progresses) {
    constexpr uint64_t peer = 77;
    open(left_);
    left_.inside().messages->services().control.send_to_interface(peer, control_kind::ended, 5, 6);
    abi::uct_ep *made = nullptr;
    std::thread async([&] { made = connect_to(peer); });
    async.join();
    stub::endpoint &carrier = *reinterpret_cast<stub::endpoint *>(endpoint::of(made).carrier);
    EXPECT_TRUE(carrier.messages.empty()) << "said by UCX's async thread";
    for (int i = 0; i < 100 && carrier.messages.empty(); ++i) {
        for (const auto &[id, one] : std::map(net_->callbacks)) {
            one.function(one.arg);
        }
    }
    EXPECT_EQ(carrier.messages.size(), 1u);
    carrier.messages.clear();
    made->iface->ops.ep_destroy(made);
}

}  // namespace
}  // namespace cuda_nc::uct
