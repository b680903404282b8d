#include "ucp/dt/packed_move.hpp"

#include "ucp/dt/device_packer.hpp"
#include "ucp/dt/oracle.hpp"
#include "ucp/dt/packed_memory.hpp"
#include "ucp/dt/settings_guard.hpp"
#include "ucs/backend/sim/options.hpp"

namespace cuda_nc::test {
namespace {

using place = buffer::place;

enum class packed_kind { host, pinned, gpu0, gpu1 };

dt::packed_memory make(packed_kind kind, uint64_t size) {
    switch (kind) {
        case packed_kind::host:
            return dt::packed_memory::of_host(-1, size);
        case packed_kind::pinned:
            return dt::packed_memory::of_host(0, size);
        default:
            return dt::packed_memory::of_gpu(kind == packed_kind::gpu0 ? 0 : 1, size);
    }
}

bytes read(const dt::packed_place &from, size_t length) {
    bytes found(length);
    if (gpu::is_on_host(from.lies.kind)) {
        std::memcpy(found.data(), from.start, length);
    } else {
        gpu_copy(from.lies.device, found.data(), from.start, length);
    }
    return found;
}

void write(const dt::packed_place &to, const bytes &what) {
    if (gpu::is_on_host(to.lies.kind)) {
        std::memcpy(to.start, what.data(), what.size());
    } else {
        gpu_copy(to.lies.device, to.start, what.data(), what.size());
    }
}

// Packs and unpacks `type`, with some bytes of `packed_at` behind the packed ones that nobody may
// change.
void go_round(random_engine &random, const datatype &type, place where, packed_kind kind) {
    constexpr size_t beyond = 64;
    const layout_ref what = type.make_layout();
    const size_t size = what->packed_size();
    buffer source(type, where, random), target(type, where, random);
    dt::packed_memory memory = make(kind, size + beyond);
    ASSERT_TRUE(memory.is_held());
    bytes before = random_bytes(random, size + beyond);
    write(memory.place(), before);
    ASSERT_EQ(dt::pack_all(what, source.base(), memory.place()), UCS_OK);
    const bytes packed = source.packed();
    std::copy(packed.begin(), packed.end(), before.begin());
    ASSERT_EQ(read(memory.place(), before.size()), before);
    EXPECT_TRUE(source.is_as_expected());

    const size_t some = uniform(random, 0, size);
    for (size_t length : {some, size}) {
        ASSERT_EQ(dt::unpack_first(what, target.base(), memory.place(), length), UCS_OK);
        target.expect(0, packed.data(), length);
        ASSERT_TRUE(target.is_as_expected()) << length << " of " << size << " B";
    }
}

class packed_move_test : public ::testing::TestWithParam<std::tuple<place, packed_kind>> {
  protected:
    bool is_there_all() const {
        auto [where, kind] = GetParam();
        return is_there(where) && is_there(place::device0) &&
               (kind != packed_kind::gpu1 || is_there(place::device1));
    }
};

TEST_P(packed_move_test, moves_every_byte_and_no_other) {
    if (!is_there_all()) {
        GTEST_SKIP() << "no such GPU, simulated or real";
    }
    auto [where, kind] = GetParam();
    random_engine random(15);
    for (size_t size : {0, 1, 100, 5000, 400000}) {
        for (int i = 0; i < 4; ++i) {
            datatype type = random_datatype(random, size);
            type.count = size == 0 ? 0 : type.count;
            go_round(random, type, where, kind);
        }
    }
}

// In pieces that take turns, where kernels are not to reach host memory.
TEST_P(packed_move_test, moves_more_than_a_mover_takes) {
    if (!is_there_all()) {
        GTEST_SKIP() << "no such GPU, simulated or real";
    }
    auto [where, kind] = GetParam();
    random_engine random(16);
    for (const char *zero_copy : {"y", "n"}) {
        const settings_guard set{{"ZERO_COPY", zero_copy}};
        go_round(random, strided_words(24, 650000), where, kind);
        go_round(random, uneven_words(15000), where, kind);
        go_round(random, {{{64, 5 << 20}}, 5 << 20, 1}, where, kind);
    }
}

// Its pages may lie with the CPU: the simulated GPU refuses a move that takes them for its own.
TEST(packed_in_managed_memory, is_not_taken_for_the_gpus_own) {
    gpu::platform &gpus = gpu::platform::instance();
    if (std::string(gpus.name()) != "sim") {
        GTEST_SKIP() << "makes managed memory of the simulated GPU";
    }
    random_engine random(17);
    const datatype type = strided_words(24, 3000);
    const layout_ref what = type.make_layout();
    const size_t size = what->packed_size();
    std::unique_ptr<gpu::memory> managed;
    ASSERT_EQ(gpu::sim::allocate_managed(gpus, 0, size, &managed), UCS_OK);
    buffer source(type, place::device0, random), target(type, place::device0, random);
    dt::device_packer packer;
    ASSERT_EQ(packer.open(gpu::direction::pack, layout_ref(what),
                          static_cast<char *>(source.base()), gpus.query(source.base())),
              UCS_OK);
    EXPECT_EQ(packer.move_packed(size, managed->address(), gpu::memory_kind::managed), UCS_OK);
    packer.close();
    const bytes packed = source.packed();
    EXPECT_EQ(std::memcmp(managed->address(), packed.data(), size), 0);
    ASSERT_EQ(dt::unpack_first(what, target.base(), dt::packed_place_at(managed->address()), size),
              UCS_OK);
    target.expect(0, packed.data(), size);
    EXPECT_TRUE(target.is_as_expected());
}

std::string name_of_case(const testing::TestParamInfo<std::tuple<place, packed_kind>> &instance) {
    static const char *const kinds[] = {"host", "pinned", "gpu0", "gpu1"};
    return std::string(name_of(std::get<0>(instance.param))) + "_by_" +
           kinds[static_cast<int>(std::get<1>(instance.param))];
}

INSTANTIATE_TEST_SUITE_P(
    , packed_move_test,
    ::testing::Combine(::testing::Values(place::host, place::device0, place::device1),
                       ::testing::Values(packed_kind::host, packed_kind::pinned, packed_kind::gpu0,
                                         packed_kind::gpu1)),
    name_of_case);

class packed_memory : public ::testing::Test {
  protected:
    void SetUp() override {
        if (!is_there(place::device0)) {
            GTEST_SKIP() << "no GPU, simulated or real";
        }
    }
};

TEST_F(packed_memory, is_pinned_where_a_gpu_uses_much_of_it) {
    EXPECT_EQ(dt::packed_memory::of_host(0, 1 << 20).place().lies.kind, gpu::memory_kind::pinned);
    EXPECT_EQ(dt::packed_memory::of_host(0, 100).place().lies.kind, gpu::memory_kind::host);
    EXPECT_EQ(dt::packed_memory::of_host(-1, 1 << 20).place().lies.kind, gpu::memory_kind::host);
    EXPECT_EQ(dt::packed_memory::of_gpu(0, 100).place().lies.kind, gpu::memory_kind::device);
}

TEST_F(packed_memory, serves_later_calls) {
    const settings_guard set{{"STAGING_SIZE", "8M"}};
    for (auto kind : {packed_kind::pinned, packed_kind::gpu0}) {
        const char *first = make(kind, 1 << 20).start();
        EXPECT_EQ(make(kind, 1 << 20).start(), first);
        EXPECT_EQ(make(kind, 700 << 10).start(), first);
        const dt::packed_memory one = make(kind, 1 << 20), other = make(kind, 1 << 20);
        EXPECT_NE(one.start(), other.start());
    }
}

TEST_F(packed_memory, has_a_bound) {
    const settings_guard set{{"STAGING_SIZE", "1M"}};
    EXPECT_FALSE(make(packed_kind::gpu0, 2 << 20).is_held());
    const dt::packed_memory all = make(packed_kind::gpu0, 1 << 20);
    EXPECT_TRUE(all.is_held());
    EXPECT_FALSE(make(packed_kind::gpu0, 1).is_held());

    const dt::packed_memory pinned = make(packed_kind::pinned, 1 << 20);
    EXPECT_EQ(pinned.place().lies.kind, gpu::memory_kind::pinned);
    const dt::packed_memory more = make(packed_kind::pinned, 1 << 20);
    EXPECT_TRUE(more.is_held());
    EXPECT_EQ(more.place().lies.kind, gpu::memory_kind::host);
}

TEST_F(packed_memory, gives_way_to_other_sizes) {
    const settings_guard set{{"STAGING_SIZE", "1M"}};
    EXPECT_TRUE(make(packed_kind::gpu0, 256 << 10).is_held());
    EXPECT_TRUE(make(packed_kind::gpu0, 1 << 20).is_held());
    EXPECT_TRUE(make(packed_kind::gpu0, 256 << 10).is_held());
}

}  // namespace
}  // namespace cuda_nc::test
