// Lists of buffers as datatypes: found again by their content, given up in time, and what is told
// of them.
#include "ucp/dt/iov_type.hpp"

#include <set>

#include "ucp/dt/datatype.hpp"
#include "ucp/dt/oracle.hpp"

namespace cuda_nc::test {
namespace {

using list = std::vector<ucp_dt_iov_t>;

const ucx_instance &this_ucx() {
    return *ucx_of(nullptr).ucx;
}

std::shared_ptr<const dt::iov_type> find(const list &of) {
    return dt::find_iov_type(this_ucx(), of.data(), of.size());
}

char *address(uintptr_t value) {
    return reinterpret_cast<char *>(value);
}

list spaced(uintptr_t start, size_t number, size_t length) {
    list made;
    for (size_t i = 0; i < number; ++i) {
        made.push_back({address(start + i * (length + 24)), length});
    }
    return made;
}

TEST(iov_type, says_what_the_list_has) {
    const list some = {{address(5000), 10}, {nullptr, 0}, {address(4000), 7}, {address(4007), 1}};
    auto type = find(some);
    ASSERT_NE(type, nullptr);
    EXPECT_EQ(type->lowest, address(4000));
    EXPECT_EQ(type->span, 1010u);
    EXPECT_EQ(type->packed, 18u);
    EXPECT_FALSE(type->overlaps());
    dt::message_bytes told;
    ASSERT_TRUE(dt::find_bytes(type->datatype, 1, &told));
    EXPECT_EQ(told.packed, 18u);
    EXPECT_EQ(told.lowest, 0);
}

TEST(iov_type, a_list_without_bytes_or_beyond_memory_has_none) {
    EXPECT_EQ(find({}), nullptr);
    EXPECT_EQ(find({{address(4096), 0}, {nullptr, 0}}), nullptr);
    EXPECT_EQ(find({{address(4096), SIZE_MAX}}), nullptr);
    EXPECT_EQ(find({{address(4096), SIZE_MAX / 2}, {address(4096), SIZE_MAX / 2}}), nullptr);
}

TEST(iov_type, a_list_of_the_same_content_is_found_again) {
    const list first = spaced(1 << 20, 1024, 4096), again = first;
    list other = first;
    other[700].length = 4095;
    auto type = find(first);
    EXPECT_EQ(find(again), type);
    EXPECT_NE(find(other), type);
    EXPECT_EQ(find(again), type);
}

TEST(iov_type, those_that_are_not_used_are_given_up) {
    const list first = spaced(1 << 20, 10, 8), used = spaced(1 << 21, 10, 8);
    std::weak_ptr<const dt::iov_type> of_first = find(first), of_used = find(used);
    const ucp_datatype_t datatype = of_first.lock()->datatype;
    bool is_destroyed = false;
    for (size_t i = 0; i < 300; ++i) {
        EXPECT_NE(find(spaced(4096 + i, 3, 8)), nullptr);
        // Looked at before the next one is made: that one may get the same address.
        is_destroyed |= of_first.expired() && dt::find_operations(datatype) == nullptr;
        EXPECT_NE(find(used), nullptr);
    }
    EXPECT_TRUE(of_first.expired());
    EXPECT_FALSE(of_used.expired());
    EXPECT_TRUE(is_destroyed) << "UCP's datatype";
}

TEST(iov_type, long_lists_do_not_stay_in_memory) {
    std::vector<std::weak_ptr<const dt::iov_type>> all;
    for (size_t i = 0; i < 40; ++i) {
        all.push_back(find(spaced((1 << 20) + i, 100000, 8)));  // 3.2 MB each
    }
    size_t kept = 0;
    for (const auto &one : all) {
        kept += one.expired() ? 0 : 1;
    }
    EXPECT_EQ(kept, 20u);
    std::weak_ptr<const dt::iov_type> longest = find(spaced(1 << 20, 600000, 8));
    EXPECT_TRUE(longest.expired());
}

TEST(iov_type, overlaps_are_found_in_any_order) {
    const unsigned seed = std::random_device()();
    random_engine random(seed);
    unsigned overlapping = 0;
    for (int i = 0; i < 2000; ++i) {
        list some;
        std::multiset<uintptr_t> covered;
        const size_t number = uniform(random, 1, 12);
        for (size_t k = 0; k < number; ++k) {
            some.push_back({address(4096 + random() % 400), uniform(random, 0, 12)});
            for (size_t b = 0; b < some.back().length; ++b) {
                covered.insert(reinterpret_cast<uintptr_t>(some.back().buffer) + b);
            }
        }
        if (covered.empty()) {
            continue;
        }
        const bool twice =
            std::set<uintptr_t>(covered.begin(), covered.end()).size() != covered.size();
        overlapping += twice ? 1 : 0;
        EXPECT_EQ(find(some)->overlaps(), twice) << "seed " << seed;
    }
    EXPECT_GT(overlapping, 100u);
}

// Memory of the GPU, of 1000 bytes.
struct piece {
    explicit piece(int device) {
        EXPECT_EQ(gpu::platform::instance().get_device(device)->allocate(1000, &memory), UCS_OK);
    }
    ucp_dt_iov_t part(size_t offset, size_t length) const {
        return {memory->address() + offset, length};
    }
    std::unique_ptr<gpu::memory> memory;
};

TEST(iov_type, on_one_gpu_are_lists_in_its_memory_alone) {
    if (gpu::platform::instance().num_devices() < 2) {
        GTEST_SKIP() << "needs two GPUs, simulated or real";
    }
    char on_host[100];
    const piece first(0), second(0), far(1);
    EXPECT_TRUE(is_on_one_gpu(*find({first.part(0, 10), first.part(900, 100)})));
    EXPECT_TRUE(is_on_one_gpu(
        *find({first.part(5, 10), {on_host, 0}, second.part(900, 100), first.part(0, 1)})));
    EXPECT_FALSE(is_on_one_gpu(*find({first.part(0, 10), far.part(0, 10)})));
    EXPECT_FALSE(is_on_one_gpu(*find({first.part(0, 10), {on_host, 10}})));
    EXPECT_FALSE(is_on_one_gpu(*find({{on_host, 10}, {on_host + 20, 10}})));
    list many;
    std::vector<piece> pieces;
    for (size_t i = 0; i < 200; ++i) {
        pieces.emplace_back(1);
        many.push_back(pieces.back().part(i, 3));
    }
    std::shuffle(many.begin(), many.end(), random_engine(1));
    EXPECT_TRUE(is_on_one_gpu(*find(many)));
    many.push_back({on_host, 1});
    EXPECT_FALSE(is_on_one_gpu(*find(many)));
}

}  // namespace
}  // namespace cuda_nc::test
