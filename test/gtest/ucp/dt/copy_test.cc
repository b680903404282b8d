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

// As in the last step of Bruck's allgather, which moves blocks to the buffer's beginning.
class overlapping_copy : public ::testing::TestWithParam<place> {
  protected:
    // Blocks of `block` bytes, `stride` apart, to `shift` bytes from where they are.
    void expect_as_if_read_first(size_t blocks, size_t block, size_t stride, int64_t shift) {
        layout_builder builder;
        for (size_t i = 0; i < blocks; ++i) {
            builder.append(static_cast<int64_t>(i * stride), block);
        }
        const layout_ref what = builder.finish();
        datatype all;
        all.blocks = {{0, 3 * blocks * stride}};
        all.extent = static_cast<ptrdiff_t>(all.element_size());
        all.count = 1;
        random_engine random(static_cast<unsigned>(stride));
        buffer area(all, GetParam(), random);
        const bytes before = area.packed();
        const size_t from = blocks * stride;
        const size_t to = from + static_cast<size_t>(shift);
        char *const base = static_cast<char *>(area.base());
        ASSERT_EQ(dt::copy(what, base + from, base + to), UCS_OK);
        for (size_t i = 0; i < blocks; ++i) {
            area.expect(to + i * stride, before.data() + from + i * stride, block);
        }
        ASSERT_TRUE(area.is_as_expected())
            << blocks << " x " << block << " B, " << stride << " B apart, shifted by " << shift;
    }
};

TEST_P(overlapping_copy, moves_bytes_as_if_all_were_read_first) {
    if (!is_there(GetParam())) {
        GTEST_SKIP() << "no such GPU, simulated or real";
    }
    for (int64_t shift : {0, 1, 8, 1000, 30000, 200000, 399999}) {
        for (int64_t way : {1, -1}) {
            expect_as_if_read_first(1, 400000, 400000, way * shift);
            expect_as_if_read_first(400, 500, 1000, way * shift);
            expect_as_if_read_first(400, 8, 1000, way * shift);
        }
    }
}

INSTANTIATE_TEST_SUITE_P(, overlapping_copy,
                         ::testing::Values(place::host, place::device0, place::device1),
                         [](const auto &instance) { return name_of(instance.param); });

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
