#include "hooks/open_mpi/open_mpi.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "hooks/fakes.hpp"
#include "hooks/open_mpi/layout_bytes.hpp"

namespace cuda_nc::hooks {
namespace {

using test::bytes_of;
using test::datatype;

const open_mpi &api() {
    return *open_mpi::find_loaded();
}

TEST(open_mpi, is_found_without_a_handle) {
    ASSERT_NE(open_mpi::find_loaded(), nullptr);
    EXPECT_EQ(open_mpi::find_loaded(), open_mpi::find(nullptr));
}

TEST(open_mpi, an_element_has_the_bytes_of_its_datatype_in_order) {
    std::vector<fake_block_t> many;
    for (ptrdiff_t i = 0; i < 1000; ++i) {  // more than one call of the convertor gives
        many.push_back({(i * 7919) % 1000 * 24 - 500, static_cast<size_t>(i % 5)});
    }
    for (const datatype &type :
         {datatype("empty", {}, 8), datatype("one", {{-4, 4}}, 8), datatype("many", many, 24000)}) {
        layout_ref what = api().element(type.get());
        ASSERT_NE(what, nullptr);
        EXPECT_EQ(bytes_of(*what), type.bytes(1)) << type.get()->name;
    }
}

TEST(open_mpi, many_threads_read_datatypes_side_by_side) {
    datatype type("vector", {{0, 4}, {8, 4}, {16, 4}}, 24);
    std::vector<std::thread> threads;
    std::vector<int> wrong(4, 0);
    for (int &count : wrong) {
        threads.emplace_back([&type, &count] {
            for (int i = 0; i < 500; ++i) {
                layout_ref what = api().element(type.get());
                count += what == nullptr || bytes_of(*what) != type.bytes(1);
            }
        });
    }
    for (std::thread &one : threads) {
        one.join();
    }
    EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

TEST(open_mpi, the_extent_is_that_of_the_datatype) {
    int64_t extent = 0;
    ASSERT_TRUE(api().extent(datatype("negative", {{0, 4}}, -40).get(), &extent));
    EXPECT_EQ(extent, -40);
}

TEST(open_mpi, the_first_byte_is_found_behind_members_without_bytes) {
    int64_t displacement = 0;
    ASSERT_TRUE(
        api().first_displacement(datatype("late", {{5, 0}, {72, 4}}, 80).get(), 3, &displacement));
    EXPECT_EQ(displacement, 72);
    EXPECT_FALSE(api().first_displacement(datatype("none", {{5, 0}}, 8).get(), 3, &displacement));
    EXPECT_FALSE(api().first_displacement(datatype("late", {{72, 4}}, 80).get(), 0, &displacement));
}

TEST(open_mpi, a_convertor_to_another_architecture_is_not_native) {
    fake_convertor_t convertor = {};
    convertor.remote_arch = 0xffc00203;
    EXPECT_TRUE(api().is_native(&convertor));
    convertor.remote_arch = 0x00c00203;
    EXPECT_FALSE(api().is_native(&convertor));
}

TEST(open_mpi, a_datatype_without_a_name_is_said_to_have_none) {
    EXPECT_EQ(api().name(datatype("my type", {}, 0).get()), "my type");
    EXPECT_EQ(api().name(datatype("", {}, 0).get()), "an unnamed datatype");
}

}  // namespace
}  // namespace cuda_nc::hooks
