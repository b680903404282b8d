// Which requests the carrier gets as they are, and which may have to wait for a GPU once more.
#include "uct/cuda_nc/engine/pending_requests.hpp"

#include "uct/cuda_nc/protocol/network_fixture.hpp"

namespace cuda_nc::uct {
namespace {

// Begins as UCX's requests do.
struct request {
    ucs_status_t (*function)(void *) = [](void *) -> ucs_status_t { return UCS_OK; };
    char reserved[40] = {};
};

class network_pending : public network_test {
  protected:
    void SetUp() override {
        network_test::SetUp();
        if (!IsSkipped()) {
            connect();
        }
    }
    std::deque<void *> &at_carrier() {
        return reinterpret_cast<stub::endpoint *>(left_.end().carrier)->pending;
    }
    ucs_status_t add(void *one) { return left_.ep->iface->ops.ep_pending_add(left_.ep, one, 0); }
    ssize_t send(uint8_t id) {
        auto pack = [](void *destination, void *) -> size_t {
            std::memset(destination, 0, sizeof(rndv_header));
            return sizeof(rndv_header);
        };
        return left_.ep->iface->ops.ep_am_bcopy(left_.ep, id, pack, nullptr, 0);
    }
    std::vector<void *> purged() {
        std::vector<void *> all;
        auto note = [](void *one, void *list) {
            static_cast<std::vector<void *> *>(list)->push_back(one);
        };
        left_.ep->iface->ops.ep_pending_purge(left_.ep, reinterpret_cast<abi::function>(+note),
                                              &all);
        return all;
    }
};

TEST_F(network_pending, requests_of_other_messages_are_the_carriers_as_they_are) {
    constexpr uint8_t eager_id = 2;
    request one, other;
    net_->full = 100;
    ASSERT_EQ(send(eager_id), UCS_ERR_NO_RESOURCE);
    ASSERT_EQ(add(&one), UCS_OK);
    net_->full = 0;
    ASSERT_EQ(send(rndv_data_id), static_cast<ssize_t>(sizeof(rndv_header)));
    ASSERT_EQ(add(&other), UCS_OK);
    EXPECT_EQ(at_carrier(), (std::deque<void *>{&one, &other}));
    EXPECT_EQ(purged(), (std::vector<void *>{&one, &other}));
}

TEST_F(network_pending, requests_of_rendezvous_data_come_back_by_way_of_us) {
    request data, later;
    net_->full = 100;
    ASSERT_EQ(send(rndv_data_id), UCS_ERR_NO_RESOURCE);
    ASSERT_EQ(add(&data), UCS_OK);
    ASSERT_EQ(add(&later), UCS_OK) << "of something else";
    ASSERT_EQ(at_carrier().size(), 2u);
    EXPECT_NE(at_carrier()[0], &data);
    EXPECT_EQ(at_carrier()[1], &later);
    EXPECT_EQ(purged(), (std::vector<void *>{&data, &later})) << "in UCP's order, and UCP's own";
    net_->full = 0;
}

TEST_F(network_pending, a_request_of_rendezvous_data_is_called_when_the_carrier_has_room) {
    struct counted : request {
        unsigned calls = 0;
    } data;
    data.function = [](void *self) -> ucs_status_t {
        return ++static_cast<counted *>(self)->calls == 1 ? UCS_ERR_NO_RESOURCE : UCS_OK;
    };
    net_->full = 100;
    ASSERT_EQ(send(rndv_data_id), UCS_ERR_NO_RESOURCE);
    ASSERT_EQ(add(&data), UCS_OK);
    net_->full = 0;
    auto *waiting = static_cast<request *>(at_carrier().front());
    EXPECT_EQ(waiting->function(waiting), UCS_ERR_NO_RESOURCE) << "it stays at the carrier";
    EXPECT_EQ(waiting->function(waiting), UCS_OK);
    at_carrier().clear();
    EXPECT_EQ(data.calls, 2u);
}

}  // namespace
}  // namespace cuda_nc::uct
