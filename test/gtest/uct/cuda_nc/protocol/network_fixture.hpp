// Two hosts with a stub of a network between them.
#pragma once

#include <chrono>
#include <thread>

#include "uct/cuda_nc/counters.hpp"
#include "uct/cuda_nc/protocol/network_ends.hpp"

namespace cuda_nc::uct {

struct network_host {
    memory_domain domain = {};
    carrier on = {};
    abi::uct_md theirs = {};
    abi::uct_component component = {};
    abi::uct_iface *iface = nullptr;
    abi::uct_ep *ep = nullptr;

    interface &inside() const {
        return interface::of(iface);
    }
    endpoint &end() const { return endpoint::of(ep); }
};

class network_test : public testing::Test {
  protected:
    void SetUp() override {
        if (gpu::platform::instance().num_devices() == 0) {
            GTEST_SKIP() << "no GPU, not even a simulated one";
        }
        net_ = std::make_unique<stub::network>();
        stub::now = net_.get();
        finder_ = buffer_finder.exchange(network_end::find);
        lent_ = regions_lent();
    }
    void TearDown() override {
        if (IsSkipped()) {
            return;
        }
        disconnect();
        EXPECT_EQ(regions_lent(), lent_);
        EXPECT_TRUE(net_->registrations.empty());
        EXPECT_TRUE(net_->keys.empty());
        EXPECT_TRUE(net_->callbacks.empty());
        buffer_finder = finder_;
    }
    void open(network_host &host) {
        host.on.name = "rc_stub";
        host.theirs.component = &host.component;
        abi::uct_md_attr attr = {};
        attr.cap.flags = abi::md_flag::reg | abi::md_flag::need_rkey;
        attr.cap.reg_mem_types = abi::memory_type::cuda;
        attr.cap.max_reg = SIZE_MAX;
        attr.rkey_packed_size = net_->key_bytes;
        host.domain.ucx = &net_->api;
        host.domain.standing_on = &host.on;
        host.domain.carrier = &host.theirs;
        host.domain.gpu_memory = std::make_unique<carrier_memory>(net_->api, &host.theirs, attr);
        abi::uct_iface_params params = {};
        params.field_mask = abi::iface_param::open_mode;
        params.open_mode = abi::iface_param::open_device;
        ASSERT_EQ(open_iface(&host.domain.super, nullptr, &params, nullptr, &host.iface), UCS_OK);
        net_->api.uct_iface_set_am_handler(host.iface, rndv_data_id, fake_network_receiver::take,
                                           nullptr, 0);
        auto nothing = [](void *, void *, size_t, unsigned) { return UCS_OK; };
        auto count = [](void *number, void *, size_t, unsigned) {
            ++*static_cast<size_t *>(number);
            return UCS_OK;
        };
        net_->api.uct_iface_set_am_handler(host.iface, rts_id, count, &rts_seen_, 0);
        net_->api.uct_iface_set_am_handler(host.iface, rtr_id, nothing, nullptr, 0);
        host.iface->ops.iface_progress_enable(host.iface, 0);
    }
    // An address from another host.
    static void from_afar(char *address) {
        address_header header;
        std::memcpy(&header, address, sizeof(header));
        ++header.host;
        std::memcpy(address, &header, sizeof(header));
    }
    void connect() {
        open(left_);
        open(right_);
        connect_opened(true);
        EXPECT_TRUE(left_.end().by_network && right_.end().by_network);
    }
    // `far`: to each other they are on another host.
    void connect_opened(bool far) {
        const bool to_endpoints = net_->connects == abi::cap_flag::connect_to_ep;
        char addresses[2][64] = {};
        network_host *hosts[] = {&left_, &right_};
        abi::uct_ep_params params = {};
        for (int i = 0; i < 2; ++i) {
            abi::uct_iface *other = hosts[1 - i]->iface;
            other->ops.iface_get_address(other, addresses[i]);
            far ? from_afar(addresses[i]) : void();
            params.field_mask =
                abi::ep_param::iface | (to_endpoints ? 0 : abi::ep_param::iface_addr);
            params.iface = hosts[i]->iface;
            params.iface_addr = addresses[i];
            ASSERT_EQ(hosts[i]->iface->ops.ep_create(&params, &hosts[i]->ep), UCS_OK);
        }
        for (int i = 0; i < 2 && to_endpoints; ++i) {
            abi::uct_ep *ep = hosts[i]->ep, *other = hosts[1 - i]->ep;
            other->iface->ops.ep_get_address(other, addresses[i]);
            far ? from_afar(addresses[i]) : void();
            const abi::uct_ep_connect_to_ep_params lengths = {
                abi::connect_param::ep_addr_length, 0, sizeof(address_header) + sizeof(void *)};
            ASSERT_EQ(connect_to_ep(ep, nullptr, addresses[i], &lengths), UCS_OK);
        }
    }
    // UCP lets no request go that waits at an endpoint.
    static void purge(abi::uct_ep *ep) {
        ep->iface->ops.ep_pending_purge(ep, reinterpret_cast<abi::function>(+[](void *, void *) {}),
                                        nullptr);
    }
    static void close_endpoint(network_host &host) {
        if (host.ep != nullptr) {
            abi::uct_ep *ep = std::exchange(host.ep, nullptr);
            purge(ep);
            ep->iface->ops.ep_destroy(ep);
        }
    }
    static void close(network_host &host) {
        close_endpoint(host);
        if (host.iface != nullptr) {
            abi::uct_iface *iface = std::exchange(host.iface, nullptr);
            iface->ops.iface_close(iface);
        }
        host.domain.gpu_memory.reset();
    }
    void disconnect() {
        close(left_);
        close(right_);
    }
    template <typename condition>
    bool progress_until(condition done) {
        const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        while (!done()) {
            if (std::chrono::steady_clock::now() > limit) {
                return false;
            }
            net_->step();
            std::this_thread::yield();
        }
        return true;
    }
    std::vector<char> random_bytes(uint64_t length) {
        std::vector<char> bytes(length);
        std::generate(bytes.begin(), bytes.end(),
                      [this] { return static_cast<char>(net_->random()); });
        return bytes;
    }
    // UCP's messages ahead of the data.
    void announce(network_host &from, fake_network_sender &sent, network_host &to,
                  fake_network_receiver &received) {
        // Of memory that is not contiguous: no address.
        const uint64_t words[] = {1, reinterpret_cast<uint64_t>(sent.request), 0,
                                  sent.packed_bytes()};
        const uint64_t own[] = {reinterpret_cast<uint64_t>(received.request), 0, 0, 0};
        const size_t seen = rts_seen_;
        EXPECT_TRUE(progress_until([&] {
            return from.ep->iface->ops.ep_am_short(from.ep, rts_id, 0, words, sizeof(words)) ==
                   UCS_OK;
        })) << "UCP asks again while the early offer has no room";
        EXPECT_TRUE(progress_until([&] { return rts_seen_ > seen; }));
        EXPECT_TRUE(progress_until([&] {
            return to.ep->iface->ops.ep_am_short(to.ep, rtr_id, words[1], own, sizeof(own)) ==
                   UCS_OK;
        })) << "UCP asks again while the answer has none";
    }
    // From left to right; whether it went from GPU to GPU.
    bool transfer(uint64_t length) {
        fake_network_sender from(length);
        fake_network_receiver to(length);
        const std::vector<char> bytes = random_bytes(length);
        from.fill(bytes);
        to.fill(random_bytes(length));
        announce(left_, from, right_, to);
        from.send(left_.ep, to);
        EXPECT_TRUE(progress_until([&] { return from.is_complete() && to.is_complete(); }));
        EXPECT_TRUE(to.read() == bytes);
        return to.by_gpu;
    }
    size_t number_of(control_kind kind) const {
        return static_cast<size_t>(
            std::count_if(net_->controls.begin(), net_->controls.end(),
                          [kind](const control &one) { return one.kind == kind; }));
    }

    std::unique_ptr<stub::network> net_;
    network_host left_, right_;
    user_buffer *(*finder_)(uint64_t) noexcept = nullptr;
    size_t lent_ = 0;
    size_t rts_seen_ = 0;
};

}  // namespace cuda_nc::uct
