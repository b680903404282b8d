#include "ucs/base/elf_walker.hpp"

#include <gtest/gtest.h>

#include <string>

#include "hooks/fakes.hpp"

namespace cuda_nc::hooks {
namespace {

using test::find_in_fake;

int twice(int n) {
    return 2 * n;
}

int thrice(int n) {
    return 3 * n;
}

struct walked {
    int (*by_call)(int);
    int (*by_pointer)(int);
    int (*(*address)())(int);

    explicit walked(const char *library)
        : by_call(find_in_fake<int (*)(int)>(library, "walk_by_call")),
          by_pointer(find_in_fake<int (*)(int)>(library, "walk_by_pointer")),
          address(find_in_fake<int (*(*)())(int)>(library, "walk_address")) {}
};

class elf_walker : public testing::TestWithParam<const char *> {};

// Calls bound already or not yet, words in pages that the loader made read-only, words of data.
TEST_P(elf_walker, every_way_to_the_symbol_is_redirected) {
    walked object(GetParam());
    ASSERT_EQ(object.by_call(10), 11);
    ASSERT_EQ(object.by_pointer(10), 11);

    replacement first = {"walk_original", reinterpret_cast<void *>(twice)};
    EXPECT_GE(redirect_loaded_objects(&first, 1), 1u);
    EXPECT_EQ(object.by_call(10), 20);
    EXPECT_EQ(object.by_pointer(10), 20);
    EXPECT_EQ(object.address()(10), 20);

    EXPECT_EQ(redirect_loaded_objects(&first, 1), 0u) << "a second walk changes nothing";

    replacement second = {"walk_original", reinterpret_cast<void *>(thrice)};
    EXPECT_GE(redirect_loaded_objects(&second, 1), 1u);
    EXPECT_EQ(object.by_call(10), 30);
    EXPECT_EQ(object.by_pointer(10), 30);

    auto *original = reinterpret_cast<void *>(
        find_in_fake<int (*)(int)>("libwalk_original.so", "walk_original"));
    replacement back = {"walk_original", original};
    EXPECT_GE(redirect_loaded_objects(&back, 1), 1u);
    EXPECT_EQ(object.by_call(10), 11);
    EXPECT_EQ(object.by_pointer(10), 11);
}

TEST_P(elf_walker, one_object_alone_is_redirected) {
    walked object(GetParam());
    const bool is_lazy = std::string(GetParam()) == "libwalk_lazy.so";
    const char *other_library = is_lazy ? "libwalk_now.so" : "libwalk_lazy.so";
    walked other(other_library);
    const replacement first = {"walk_original", reinterpret_cast<void *>(twice)};
    const auto *inside = reinterpret_cast<const void *>(object.by_call);
    EXPECT_GE(redirect_object(inside, &first, 1), 1u);
    EXPECT_EQ(object.by_call(10), 20);
    EXPECT_EQ(other.by_call(10), 11);
    EXPECT_EQ(redirect_object(nullptr, &first, 1), 0u);
    EXPECT_EQ(redirect_object(&object, &first, 1), 0u) << "a stack is in no object";
    EXPECT_EQ(other.by_call(10), 11);

    auto *original = reinterpret_cast<void *>(
        find_in_fake<int (*)(int)>("libwalk_original.so", "walk_original"));
    const replacement back = {"walk_original", original};
    EXPECT_GE(redirect_object(inside, &back, 1), 1u);
    EXPECT_EQ(object.by_call(10), 11);
}

TEST_P(elf_walker, other_symbols_stay) {
    walked object(GetParam());
    replacement unknown = {"walk_orig", reinterpret_cast<void *>(twice)};
    EXPECT_EQ(redirect_loaded_objects(&unknown, 1), 0u);
    EXPECT_EQ(object.by_call(1), 2);
}

INSTANTIATE_TEST_SUITE_P(bindings, elf_walker,
                         testing::Values("libwalk_lazy.so", "libwalk_now.so", "libwalk_noplt.so"));

}  // namespace
}  // namespace cuda_nc::hooks
