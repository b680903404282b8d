#include "ucs/gpu/span.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "ucs/backend/sim/options.hpp"

namespace cuda_nc::gpu {
namespace {

constexpr size_t piece = 64 << 10, whole = 8 * piece + 100;

class span_test : public ::testing::Test {
  protected:
    void SetUp() override {
        if (std::string(platform::instance().name()) != "sim") {
            GTEST_SKIP() << "makes memory of the simulated GPU one of pieces";
        }
        first_ = allocate();
        sim::set_sharing(platform::instance(), first_->address(), sharing::by_descriptor, piece);
    }
    static std::unique_ptr<memory> allocate() {
        std::unique_ptr<memory> made;
        EXPECT_EQ(platform::instance().get_device(0)->allocate(whole, &made), UCS_OK);
        return made;
    }
    static allocation_info find(const memory &in, size_t begin, size_t end) {
        const auto base = reinterpret_cast<uintptr_t>(in.address());
        return find_span(0, platform::instance().query(in.address() + begin).allocation,
                         base + begin, base + end);
    }

    std::unique_ptr<memory> first_;
};

TEST_F(span_test, one_piece_is_itself) {
    const allocation_info found = find(*first_, piece, 2 * piece);
    EXPECT_EQ(found.base, first_->address() + piece);
    EXPECT_EQ(found.size, piece);
    EXPECT_EQ(found.id, platform::instance().query(first_->address() + piece).allocation.id);
}

TEST_F(span_test, several_pieces_are_one) {
    const allocation_info found = find(*first_, piece + 5, 3 * piece + 1);
    EXPECT_EQ(found.base, first_->address() + piece);
    EXPECT_EQ(found.size, 3 * piece);
    EXPECT_EQ(found.shared, sharing::by_descriptor);
    const allocation_info all = find(*first_, 0, whole);
    EXPECT_EQ(all.size, whole);
}

// Pieces have small numbers in turn: a sum or an exclusive or of them would be many spans' id.
TEST_F(span_test, each_has_an_id_of_its_own) {
    const std::unique_ptr<memory> second = allocate();
    sim::set_sharing(platform::instance(), second->address(), sharing::by_descriptor, piece);
    std::set<uint64_t> ids;
    size_t number = 0;
    for (const memory *one : {first_.get(), second.get()}) {
        for (size_t begin = 0; begin < 8; ++begin) {
            for (size_t end = begin + 1; end <= 8; ++end) {
                ids.insert(find(*one, begin * piece, end * piece).id);
                ++number;
            }
        }
    }
    EXPECT_EQ(ids.size(), number);
    EXPECT_EQ(ids.count(0), 0u);
}

TEST_F(span_test, bytes_without_memory_are_in_none) {
    EXPECT_EQ(find(*first_, piece, whole + 1).id, 0u);
    EXPECT_EQ(find(*first_, piece, 1 << 30).id, 0u);
    const auto base = reinterpret_cast<uintptr_t>(first_->address());
    const allocation_info piece_there = platform::instance().query(first_->address()).allocation;
    EXPECT_EQ(find_span(0, piece_there, base + 10, base).id, 0u);
    EXPECT_EQ(find_span(1, piece_there, base, base + 2 * piece).id, 0u) << "of another GPU";
}

TEST_F(span_test, other_memory_stays_as_it_is) {
    const std::unique_ptr<memory> plain = allocate();
    EXPECT_EQ(find(*plain, 0, whole).base, plain->address());
    EXPECT_EQ(find(*plain, 0, whole + 1).id, 0u);
}

TEST_F(span_test, is_shared_with_other_processes_as_a_whole) {
    device &gpu = *platform::instance().get_device(0);
    const allocation_info found = find(*first_, piece, 3 * piece);
    ipc_handle handle;
    std::shared_ptr<void> keeper;
    size_t offset;
    EXPECT_EQ(gpu.ipc_share(found.base, found.size, &handle, &keeper), UCS_OK);
    EXPECT_EQ(gpu.ipc_export(found.base, &handle, &offset), UCS_ERR_UNSUPPORTED);
    EXPECT_EQ(gpu.ipc_share(found.base, whole, &handle, &keeper), UCS_ERR_UNSUPPORTED);
    const std::unique_ptr<memory> plain = allocate();
    EXPECT_EQ(gpu.ipc_share(plain->address(), whole, &handle, &keeper), UCS_ERR_UNSUPPORTED);
}

TEST_F(span_test, a_launch_reaches_the_last_byte_in_memory_of_the_same_kind_and_gpu) {
    platform &all = platform::instance();
    const auto make_managed = [&all](int ordinal) {
        std::unique_ptr<memory> made;
        EXPECT_EQ(sim::allocate_managed(all, ordinal, whole, &made), UCS_OK);
        return made;
    };
    const auto reaches = [&all](const char *first, const char *last) {
        const auto begin = reinterpret_cast<uintptr_t>(first);
        return reaches_end(all.query(first), begin, reinterpret_cast<uintptr_t>(last) + 1);
    };
    const std::unique_ptr<memory> plain = allocate(), other = make_managed(0),
                                  far = make_managed(1);
    std::unique_ptr<memory> of_gpu_1;
    ASSERT_EQ(all.get_device(1)->allocate(whole, &of_gpu_1), UCS_OK);
    const char *const pieces = first_->address();
    EXPECT_TRUE(reaches(pieces, pieces + whole - 1));
    EXPECT_TRUE(reaches(plain->address() + 5, plain->address() + whole - 1));
    EXPECT_FALSE(reaches(plain->address(), of_gpu_1->address()));
    EXPECT_TRUE(reaches(other->address(), other->address() + whole - 1));
    EXPECT_TRUE(reaches(other->address(), far->address())) << "every GPU reaches managed memory";
    EXPECT_FALSE(reaches(other->address(), plain->address()));
    EXPECT_FALSE(reaches(other->address(), std::string(whole, ' ').data()));
}

}  // namespace
}  // namespace cuda_nc::gpu
