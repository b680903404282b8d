#include "hooks/common/owner.hpp"

#include <gtest/gtest.h>

#include "hooks/fakes.hpp"

namespace cuda_nc::hooks {
namespace {

using test::find_symbol;

const owner &owner_of_symbol(const char *library, const char *symbol) {
    return owner_of(find_symbol(library, symbol));
}

TEST(owner, open_mpi_is_recognised_by_what_its_library_defines) {
    const owner &found = owner_of_symbol("libfake_open_mpi.so", "fake_register");
    ASSERT_EQ(found.what, owner::kind::served);
    EXPECT_STREQ(found.product, "Open MPI");
    ASSERT_NE(found.mpi, nullptr);
    EXPECT_STREQ(found.mpi->product(), "Open MPI");
    EXPECT_EQ(found.mpi->version(), "4.1.4");
    EXPECT_FALSE(found.mpi->packs_wrongly());
}

TEST(owner, a_library_that_uses_open_mpi_is_not_taken_for_it) {
    EXPECT_EQ(owner_of_symbol("libfake_user.so", "fake_operation").what, owner::kind::no_mpi);
}

TEST(owner, an_mpich_is_recognised) {
    const owner &found = owner_of_symbol("libfake_mpich.so", "fake_operation");
    EXPECT_EQ(found.what, owner::kind::not_served);
    EXPECT_STREQ(found.product, "MPICH");
}

TEST(owner, an_mpi_that_we_do_not_know_is_named) {
    const owner &found = owner_of_symbol("libfake_unknown_mpi.so", "fake_operation");
    EXPECT_EQ(found.what, owner::kind::unknown_mpi);
    EXPECT_NE(found.path.find("libfake_unknown_mpi.so"), std::string::npos);
}

TEST(owner, a_program_without_mpi_is_nobody) {
    EXPECT_EQ(owner_of(reinterpret_cast<const void *>(&owner_of_symbol)).what, owner::kind::no_mpi);
}

TEST(owner, memory_that_is_no_function_is_nobody) {
    int on_stack = 0;
    EXPECT_EQ(owner_of(&on_stack).what, owner::kind::no_mpi);
}

TEST(owner, is_remembered) {
    EXPECT_EQ(&owner_of_symbol("libfake_open_mpi.so", "fake_register"),
              &owner_of_symbol("libfake_open_mpi.so", "fake_unregister"));
}

}  // namespace
}  // namespace cuda_nc::hooks
