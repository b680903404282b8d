// What UCX sees of an interface, and what stands in the way of traffic that is not ours: nothing
// where messages arrive, one jump where they leave.
#include "uct/cuda_nc/iface.hpp"

#include <algorithm>
#include <cstring>

#include "uct/cuda_nc/protocol/network_fixture.hpp"

namespace cuda_nc::uct {
namespace {

constexpr uint8_t watched[] = {rts_id, ats_id, rndv_data_id, control_id};

bool is_watched(unsigned id) {
    return std::find(std::begin(watched), std::end(watched), id) != std::end(watched);
}

ucs_status_t handle(void *, void *, size_t, unsigned) {
    return UCS_OK;
}

class interfaces : public network_test {
  protected:
    abi::uct_base_iface &carrier() {
        return *reinterpret_cast<abi::uct_base_iface *>(left_.inside().carrier);
    }
    // As UCP does before it lets the interface progress.
    void set_handlers() {
        for (unsigned id = 0; id < abi::max_am_ids; ++id) {
            net_->api.uct_iface_set_am_handler(left_.iface, static_cast<uint8_t>(id), handle,
                                               &arguments_[id], id % 2);
        }
    }
    char arguments_[abi::max_am_ids] = {};
};

TEST_F(interfaces, progressing_leave_the_carrier_ucps_own_handlers_of_all_but_four_messages) {
    open(left_);
    left_.iface->ops.iface_progress_disable(left_.iface, 0);
    set_handlers();
    left_.iface->ops.iface_progress_enable(left_.iface, 0);
    for (unsigned id = 0; id < abi::max_am_ids; ++id) {
        const abi::uct_am_handler &at = carrier().am[id];
        if (is_watched(id)) {
            EXPECT_NE(at.cb, handle) << id;
        } else {
            EXPECT_TRUE(at.cb == handle && at.arg == &arguments_[id] && at.flags == id % 2) << id;
        }
    }
}

TEST_F(interfaces, let_ucx_set_other_handlers_while_they_do_not_progress) {
    open(left_);
    left_.iface->ops.iface_progress_disable(left_.iface, 0);
    set_handlers();
    for (unsigned id = 0; id < abi::max_am_ids; ++id) {
        EXPECT_NE(carrier().am[id].cb, handle) << id;
    }
}

// UCP chooses protocols, lengths of fragments and lanes by them.
TEST_F(interfaces, have_their_carriers_attributes_but_for_addresses_and_what_only_it_can_do) {
    net_->reaches = 0;
    for (uint64_t connects : {abi::cap_flag::connect_to_ep, abi::cap_flag::connect_to_iface}) {
        net_->connects = connects;
        open(left_);
        abi::uct_iface_attr ours, theirs;
        std::memset(&ours, 0x5a, sizeof(ours));
        std::memset(&theirs, 0x5a, sizeof(theirs));
        ASSERT_EQ(left_.iface->ops.iface_query(left_.iface, &ours), UCS_OK);
        ASSERT_EQ(carrier().super.ops.iface_query(&carrier().super, &theirs), UCS_OK);
        EXPECT_EQ(ours.iface_addr_len, theirs.iface_addr_len + sizeof(address_header));
        const bool to_endpoints = connects == abi::cap_flag::connect_to_ep;
        EXPECT_EQ(ours.ep_addr_len,
                  theirs.ep_addr_len + (to_endpoints ? sizeof(address_header) : 0));
        EXPECT_EQ(ours.priority, theirs.priority + 1);
        EXPECT_EQ(theirs.cap.flags & ~ours.cap.flags, abi::cap_flag::put_zcopy)
            << "one-sided operations within a machine are the carrier's own";
        EXPECT_EQ(ours.cap.flags & ~theirs.cap.flags, 0u);
        theirs.cap.flags = ours.cap.flags;
        theirs.iface_addr_len = ours.iface_addr_len;
        theirs.ep_addr_len = ours.ep_addr_len;
        theirs.priority = ours.priority;
        std::memset(theirs.cap.atomic32, 0, sizeof(theirs.cap.atomic32));
        std::memset(theirs.cap.atomic64, 0, sizeof(theirs.cap.atomic64));
        EXPECT_EQ(std::memcmp(&ours, &theirs, sizeof(ours)), 0);
        close(left_);
    }
}

}  // namespace
}  // namespace cuda_nc::uct
