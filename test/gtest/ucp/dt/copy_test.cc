// request_state.hpp: copy(), move()
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

// One element with `size` packed bytes; no byte twice.
datatype one_element(random_engine &random, size_t size) {
    datatype made = random_datatype(random, std::max<size_t>(size / 2, 1));
    made.count = 1;
    size_t left = size;
    ptrdiff_t end = 0;
    std::vector<cuda_nc_block_t> kept;
    for (cuda_nc_block_t one : made.blocks) {
        one.length = std::min(one.length, left);
        left -= one.length;
        end = std::max(end, one.displacement + static_cast<ptrdiff_t>(one.length));
        kept.push_back(one);
    }
    if (left != 0) {
        kept.push_back({end + static_cast<ptrdiff_t>(random() % 3), left});
    }
    made.blocks = kept;
    return made;
}

class move_test : public ::testing::TestWithParam<std::tuple<place, place>> {
  protected:
    void SetUp() override {
        if (!is_there(from_) || !is_there(to_)) {
            GTEST_SKIP() << "no such GPU, simulated or real";
        }
    }
    void expect_move(const datatype &read, const datatype &written, bool is_served) {
        buffer source(read, from_, random_), target(written, to_, random_);
        const ucs_status_t status =
            dt::move(read.make_layout(), source.base(), written.make_layout(), target.base());
        ASSERT_EQ(status, is_served ? UCS_OK : UCS_ERR_UNSUPPORTED);
        if (is_served) {
            const bytes packed = source.packed();
            target.expect(0, packed.data(), packed.size());
        }
        ASSERT_TRUE(target.is_as_expected());
        ASSERT_TRUE(source.is_as_expected());
    }
    bool on_one_gpu() const { return from_ == to_ && from_ != place::host; }

    const place from_ = std::get<0>(GetParam()), to_ = std::get<1>(GetParam());
    random_engine random_{21};
};

TEST_P(move_test, brings_packed_bytes_to_their_places_within_a_gpu) {
    for (size_t size : {1, 3, 100, 5000, 70000, 400000, 3000000}) {
        for (int i = 0; i < 6; ++i) {
            const datatype many = random_datatype(random_, size);
            const size_t packed = many.element_size() * many.count;
            if (packed == 0) {
                continue;
            }
            const datatype one = one_element(random_, packed);
            const datatype plain = {{{24, packed}}, static_cast<ptrdiff_t>(packed), 1};
            SCOPED_TRACE(testing::Message() << packed << " bytes, try " << i);
            expect_move(many, one, on_one_gpu());
            expect_move(one, many, on_one_gpu());
            expect_move(many, many, on_one_gpu());
            expect_move(many, plain, on_one_gpu());
            expect_move(plain, one, on_one_gpu());
        }
    }
}

TEST_P(move_test, refuses_other_lengths) {
    expect_move(strided_words(16, 100), strided_words(24, 101), false);
    expect_move(strided_words(16, 100), strided_words(24, 99), false);
}

INSTANTIATE_TEST_SUITE_P(, move_test,
                         ::testing::Values(std::make_tuple(place::device0, place::device0),
                                           std::make_tuple(place::device1, place::device1),
                                           std::make_tuple(place::device0, place::device1),
                                           std::make_tuple(place::host, place::device0),
                                           std::make_tuple(place::device0, place::host),
                                           std::make_tuple(place::host, place::host)),
                         [](const auto &instance) {
                             return std::string(name_of(std::get<0>(instance.param))) + "_to_" +
                                    name_of(std::get<1>(instance.param));
                         });

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
