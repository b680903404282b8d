#include "uct/cuda_nc/carrier/carrier.hpp"

#include <gtest/gtest.h>

#include "uct/cuda_nc/address.hpp"
#include "uct/cuda_nc/component.hpp"
#include "ucs/base/settings.hpp"

namespace cuda_nc::uct {
namespace {

using names = std::vector<std::string>;

TEST(carrier, names_are_split_without_empty_ones_and_repetitions) {
    EXPECT_EQ(split_names("posix,tcp"), (names{"posix", "tcp"}));
    EXPECT_EQ(split_names(",posix,,tcp,posix,"), (names{"posix", "tcp"}));
    EXPECT_EQ(split_names("sysv"), names{"sysv"});
    EXPECT_EQ(split_names(""), names{});
}

TEST(carrier, kinds_tell_the_carriers_of_ucx_apart) {
    const names known = {"posix",     "sysv",     "tcp",      "self",    "cma",      "rc_verbs",
                         "rc_mlx5",   "ud_verbs", "ud_mlx5",  "dc_mlx5", "cuda_ipc", "xpmem",
                         "cuda_copy", "knem",     "gdr_copy", "rocm_ipc"};
    std::vector<uint16_t> kinds;
    for (const std::string &name : known) {
        carrier one = {};
        one.name = name;
        for (uint16_t other : kinds) {
            EXPECT_NE(one.kind(), other) << name;
        }
        kinds.push_back(one.kind());
    }
}

TEST(address_header, agrees_only_with_the_same_version_and_carrier) {
    struct {
        char gap;
        char bytes[sizeof(address_header) + 2];
    } unaligned = {};
    address_header header = {wire::protocol_version, 0, 4711, 0, 0};
    std::memcpy(unaligned.bytes, &header, sizeof(header));
    EXPECT_TRUE(header_agrees(unaligned.bytes, 4711));
    EXPECT_FALSE(header_agrees(unaligned.bytes, 4712));
    EXPECT_EQ(after_header(unaligned.bytes), unaligned.bytes + sizeof(header));
    ++header.version;
    std::memcpy(unaligned.bytes, &header, sizeof(header));
    EXPECT_FALSE(header_agrees(unaligned.bytes, 4711));
}

}  // namespace
}  // namespace cuda_nc::uct
