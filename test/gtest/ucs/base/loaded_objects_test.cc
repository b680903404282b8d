#include "ucs/base/loaded_objects.hpp"

#include <gtest/gtest.h>

#include "hooks/fakes.hpp"

namespace cuda_nc {
namespace {

using hooks::test::find_symbol;

TEST(loaded_objects, a_library_that_was_loaded_local_is_found_by_name_and_by_symbol) {
    EXPECT_TRUE(is_loaded("libfake_open_mpi"));
    EXPECT_FALSE(is_loaded("libfake_closed_mpi"));
    void *expected = find_symbol("libucp_fake.so", "fake_ucp_live");
    EXPECT_EQ(find_definition("fake_ucp_live"), expected);
    EXPECT_EQ(open_loaded("libnot_loaded.so.0"), nullptr);
}

}  // namespace
}  // namespace cuda_nc
