#include "uct/cuda_nc/carrier/carrier_memory.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <string>

namespace cuda_nc::uct {
namespace {

using namespace abi;

struct abilities {
    uct_iface_attr iface = {};
    uct_md_attr domain = {};
};

// As rc_mlx5 on a host where the network reaches GPUs.
abilities rc() {
    abilities one;
    one.iface.cap.flags = cap_flag::am_short | cap_flag::am_bcopy | cap_flag::am_zcopy |
                          cap_flag::put_zcopy | cap_flag::pending | cap_flag::connect_to_ep |
                          cap_flag::cb_sync | cap_flag::inter_node;
    one.iface.cap.put.max_zcopy = size_t{1} << 30;
    one.iface.cap.put.opt_zcopy_align = 512;
    one.iface.cap.put.max_iov = 1;
    one.iface.cap.am.max_bcopy = 8256;
    one.domain.cap.flags = md_flag::reg | md_flag::need_rkey;
    one.domain.cap.reg_mem_types = 1 | memory_type::cuda;
    one.domain.cap.max_reg = SIZE_MAX;
    one.domain.rkey_packed_size = 8;
    return one;
}

TEST(carrier_memory, abilities_alone_decide_who_moves_gpu_memory_between_hosts) {
    const struct {
        const char *what;
        bool can;
        std::function<void(abilities &)> change;
    } table[] = {
        {"rc_mlx5", true, [](abilities &) {}},
        {"dc_mlx5", true,
         [](abilities &one) {
             one.iface.cap.flags ^= cap_flag::connect_to_ep | cap_flag::connect_to_iface;
         }},
        {"rc_mlx5 without a driver for GPUs", false,
         [](abilities &one) { one.domain.cap.reg_mem_types = 1; }},
        {"ud_mlx5", false, [](abilities &one) { one.iface.cap.flags &= ~cap_flag::put_zcopy; }},
        {"tcp", false,
         [](abilities &one) {
             one.domain.cap.flags = 0;
             one.domain.cap.reg_mem_types = 1;
             one.domain.rkey_packed_size = 0;
         }},
        {"posix", false,
         [](abilities &one) {
             one.iface.cap.flags &= ~(cap_flag::put_zcopy | cap_flag::inter_node);
             one.domain.cap.reg_mem_types = 0;
         }},
        {"a network within a machine", false,
         [](abilities &one) { one.iface.cap.flags &= ~cap_flag::inter_node; }},
        {"no active messages", false,
         [](abilities &one) { one.iface.cap.flags &= ~cap_flag::am_bcopy; }},
        {"no registration", false, [](abilities &one) { one.domain.cap.flags ^= md_flag::reg; }},
        {"no keys", false, [](abilities &one) { one.domain.cap.flags ^= md_flag::need_rkey; }},
        {"puts as long as a slot must be", true,
         [](abilities &one) { one.iface.cap.put.max_zcopy = least_put; }},
        {"shorter puts", false,
         [](abilities &one) { one.iface.cap.put.max_zcopy = least_put - 1; }},
        {"puts of a byte", true, [](abilities &one) { one.iface.cap.put.min_zcopy = 1; }},
        {"no puts of a byte", false, [](abilities &one) { one.iface.cap.put.min_zcopy = 2; }},
        {"no puts of memory", false, [](abilities &one) { one.iface.cap.put.max_iov = 0; }},
        {"any alignment", true,
         [](abilities &one) { one.iface.cap.put.opt_zcopy_align = 1 << 20; }},
        {"long keys", true, [](abilities &one) { one.domain.rkey_packed_size = most_key_bytes; }},
        {"longer keys", false,
         [](abilities &one) { one.domain.rkey_packed_size = most_key_bytes + 1; }},
        {"empty keys", false, [](abilities &one) { one.domain.rkey_packed_size = 0; }},
    };
    for (const auto &row : table) {
        abilities one = rc();
        row.change(one);
        EXPECT_EQ(can_put_gpu_memory(one.iface, one.domain), row.can) << row.what;
    }
}

}  // namespace
}  // namespace cuda_nc::uct
