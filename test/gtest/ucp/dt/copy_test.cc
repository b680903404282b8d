// request_state.hpp: copy()
#include "ucp/dt/message.hpp"

namespace cuda_nc::test {
namespace {

using place = buffer::place;

class copy_test : public ::testing::TestWithParam<std::tuple<place, place>> {};

TEST_P(copy_test, moves_every_byte_and_no_other) {
    auto [from, to] = GetParam();
    if (!is_there(from) || !is_there(to)) {
        GTEST_SKIP() << "no such GPU, simulated or real";
    }
    random_engine random(14);
    for (size_t size : {0, 1, 100, 5000, 400000}) {
        for (int i = 0; i < 5; ++i) {
            datatype type = random_datatype(random, size);
            type.count = size == 0 ? 0 : type.count;
            buffer source(type, from, random), target(type, to, random);
            ASSERT_EQ(dt::copy(type.make_layout(), source.base(), target.base()), UCS_OK);
            bytes packed = source.packed();
            target.expect(0, packed.data(), packed.size());
            ASSERT_TRUE(target.is_as_expected()) << size << " B, try " << i;
            ASSERT_TRUE(source.is_as_expected());
        }
    }
}

INSTANTIATE_TEST_SUITE_P(
    , copy_test,
    ::testing::Combine(::testing::Values(place::host, place::device0, place::device1),
                       ::testing::Values(place::host, place::device0, place::device1)),
    [](const auto &instance) {
        return std::string(name_of(std::get<0>(instance.param))) + "_to_" +
               name_of(std::get<1>(instance.param));
    });

}  // namespace
}  // namespace cuda_nc::test
