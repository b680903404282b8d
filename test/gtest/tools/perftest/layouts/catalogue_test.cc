#include "tools/perftest/layouts/catalogue.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "tools/perftest/layouts/sizes.hpp"
#include "tools/perftest/layouts/tables.hpp"

namespace cuda_nc::tools {
namespace {

TEST(catalogue, names_are_unique_and_texts_are_layouts) {
    std::set<std::string> names;
    for (const std::string &set : set_names()) {
        for (const named_layout &one : *find_set(set)) {
            EXPECT_TRUE(names.insert(one.name).second) << one.name;
            EXPECT_TRUE(fit_layout(one.text, 1 << 20)) << one.name;
        }
    }
}

TEST(catalogue, the_demos_layouts_are_layouts_with_names_of_their_own) {
    std::set<std::string> names;
    for (const layout_row &one : demo_layouts) {
        EXPECT_TRUE(names.insert(one.name).second) << one.name;
        EXPECT_GT(layout_of(one.text)->packed_size(), 0u) << one.name;
    }
}

TEST(catalogue, the_host_benchmarks_layouts_can_have_any_size) {
    std::set<std::string> names;
    auto check = [&](const layout_row &one) {
        EXPECT_TRUE(names.insert(one.name).second) << one.name;
        EXPECT_TRUE(fit_layout(one.text, 1 << 20)) << one.name;
    };
    std::for_each(std::begin(host_layouts), std::end(host_layouts), check);
    std::for_each(std::begin(ascending_host_layouts), std::end(ascending_host_layouts), check);
}

TEST(catalogue, small_layouts_have_the_packed_sizes_of_their_names) {
    const std::map<std::string, uint64_t> sizes = {
        {"64B", 64}, {"1KiB", 1024}, {"16KiB", 16384}, {"64KiB", 65536}};
    for (const auto &[size, bytes] : sizes) {
        for (const char *kind : {"vector", "struct", "subarray", "indexed"}) {
            const std::string name = "small-" + size + "-" + kind;
            const std::optional<named_layout> one = find_layout(name);
            ASSERT_TRUE(one) << name;
            EXPECT_EQ(layout_of(one->text)->packed_size(), bytes) << name;
        }
    }
}

}  // namespace
}  // namespace cuda_nc::tools
