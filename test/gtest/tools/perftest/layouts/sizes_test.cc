#include <gtest/gtest.h>

#include "tools/perftest/layouts/catalogue.hpp"
#include "tools/perftest/support/run_error.hpp"
#include "tools/perftest/layouts/sizes.hpp"
#include "ucs/layout/layout_spec.hpp"

namespace cuda_nc::tools {
namespace {

using sizes = std::vector<uint64_t>;

TEST(sizes, ranges_go_by_factors_of_two_or_as_told) {
    EXPECT_EQ(parse_sizes("64K"), sizes{65536});
    EXPECT_EQ(parse_sizes("8:64"), (sizes{8, 16, 32, 64}));
    EXPECT_EQ(parse_sizes("8:100"), (sizes{8, 16, 32, 64}));
    EXPECT_EQ(parse_sizes("1K:1M:32,7"), (sizes{1024, 32768, 1048576, 7}));
    EXPECT_EQ(parse_sizes("8:64M").size(), 24u);
}

TEST(sizes, wrong_texts_are_refused) {
    for (const char *text :
         {"", "0", "8:", ":8", "64:8", "8:64:1", "8:64:2:2", "x", "inf", "8,,9"}) {
        EXPECT_THROW(parse_sizes(text), run_error) << text;
    }
}

TEST(sizes, a_star_stands_for_n_and_a_number_before_it_multiplies) {
    EXPECT_EQ(member_text("vector:*,8*,16*", 5), "vector:5,40,80");
    EXPECT_EQ(member_text("subarray:8,*x*,2*x3,0x0", 4), "subarray:8,4x4,8x3,0x0");
    EXPECT_EQ(member_text("vector:4,8,16", 5), "vector:4,8,16");
}

uint64_t bytes_of(const std::string &text) {
    std::string error;
    const layout_ref what = parse_layout(text, &error);
    return what != nullptr ? what->packed_size() : 0;
}

// Of every family of the catalogue the largest member that fits is found: the next is too large.
TEST(sizes, the_largest_fitting_member_is_found) {
    for (const named_layout &one : *find_set("messages")) {
        for (uint64_t bytes : parse_sizes("8:4M,1000003")) {
            const std::optional<fitted_layout> fitted = fit_layout(one.text, bytes);
            uint64_t n = 0;  // the answer, by counting up
            while (n < 40 && bytes_of(member_text(one.text, n + 1)) <= bytes) {
                ++n;
            }
            if (!fitted) {
                EXPECT_EQ(bytes_of(member_text(one.text, std::max(n, uint64_t(1)))) <= bytes &&
                              bytes_of(member_text(one.text, std::max(n, uint64_t(1)))) > 0,
                          false)
                    << one.name << " " << bytes;
                continue;
            }
            EXPECT_EQ(bytes_of(fitted->text), fitted->bytes) << fitted->text;
            EXPECT_LE(fitted->bytes, bytes);
            EXPECT_GT(fitted->bytes, 0u);
            if (n < 40) {
                EXPECT_EQ(fitted->text, member_text(one.text, n)) << one.name << " " << bytes;
            } else {
                EXPECT_GT(static_cast<double>(fitted->bytes), 0.9 * static_cast<double>(bytes));
            }
        }
    }
}

TEST(sizes, uneven_families_fit_too) {
    const std::optional<fitted_layout> fitted = fit_layout("indexed:*,1,100,1,7", 100000);
    ASSERT_TRUE(fitted);
    EXPECT_LE(fitted->bytes, 100000u);
    EXPECT_GT(fitted->bytes, 99000u);
}

TEST(sizes, a_layout_that_is_no_family_keeps_its_size) {
    EXPECT_EQ(fit_layout("vector:4,8,16", 1)->bytes, 32u);
    EXPECT_THROW(fit_layout("vector:1", 8), run_error);
    EXPECT_THROW(fit_layout("vector:*", 8), run_error);
    EXPECT_THROW(fit_layout("vector:*,0,8", 8), run_error);
    EXPECT_FALSE(fit_layout("vector:*,64,128", 63));
}

}  // namespace
}  // namespace cuda_nc::tools
