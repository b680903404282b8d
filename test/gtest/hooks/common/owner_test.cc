#include "hooks/common/owner.hpp"

#include <gtest/gtest.h>

#include "hooks/fakes.hpp"
#include "hooks/common/policy.hpp"
#include "ucs/base/loaded_objects.hpp"

namespace cuda_nc::hooks {
namespace {

using test::find_symbol;

const owner &owner_of_symbol(const char *library, const char *symbol) {
    return owner_of(find_symbol(library, symbol));
}

TEST(owner, open_mpi_is_recognised_by_what_its_library_defines) {
    const owner &found = owner_of_symbol("libfake_open_mpi.so", "fake_register");
    ASSERT_EQ(found.what, owner::kind::open_mpi);
    ASSERT_NE(found.api, nullptr);
    EXPECT_EQ(found.api->version(), "4.1.4");
    EXPECT_FALSE(found.api->packs_wrongly());
}

TEST(owner, a_library_that_uses_open_mpi_is_not_taken_for_it) {
    EXPECT_EQ(owner_of_symbol("libfake_user.so", "fake_operation").what, owner::kind::other);
}

TEST(owner, an_mpich_is_recognised) {
    EXPECT_EQ(owner_of_symbol("libfake_mpich.so", "fake_operation").what, owner::kind::mpich);
}

TEST(owner, an_mpi_that_we_do_not_know_is_named) {
    const owner &found = owner_of_symbol("libfake_unknown_mpi.so", "fake_operation");
    EXPECT_EQ(found.what, owner::kind::unknown_mpi);
    EXPECT_NE(found.path.find("libfake_unknown_mpi.so"), std::string::npos);
}

TEST(owner, a_program_without_mpi_is_nobody) {
    EXPECT_EQ(owner_of(reinterpret_cast<const void *>(&owner_of_symbol)).what, owner::kind::other);
}

TEST(owner, memory_that_is_no_function_is_nobody) {
    int on_stack = 0;
    EXPECT_EQ(owner_of(&on_stack).what, owner::kind::other);
}

TEST(owner, is_remembered) {
    EXPECT_EQ(&owner_of_symbol("libfake_open_mpi.so", "fake_register"),
              &owner_of_symbol("libfake_open_mpi.so", "fake_unregister"));
}

TEST(loaded_objects, a_library_that_was_loaded_local_is_found_by_name_and_by_symbol) {
    EXPECT_TRUE(is_loaded("libfake_open_mpi"));
    EXPECT_FALSE(is_loaded("libfake_closed_mpi"));
    void *expected = find_symbol("libucp_fake.so", "fake_ucp_live");
    EXPECT_EQ(find_in_library("libucp", "fake_ucp_live"), expected);
    EXPECT_EQ(find_in_library("libucp", "no_such_symbol"), nullptr);
    EXPECT_EQ(find_definition("fake_ucp_live"), expected);
    EXPECT_EQ(open_loaded("libnot_loaded.so.0"), nullptr);
}

TEST(loaded_objects, our_own_module_is_not_taken_for_what_recognises_gpu_memory) {
    ASSERT_FALSE(is_loaded("libuct_cuda"));
    test::load_fake("libuct_cudanc.so");
    ASSERT_TRUE(is_loaded("libuct_cuda"));
    EXPECT_STREQ(missing_for_detection(), "libuct_cuda.so");
    test::load_fake("libuct_cuda-12ab.so");
    EXPECT_STREQ(missing_for_detection(), "libucm_cuda.so");
}

}  // namespace
}  // namespace cuda_nc::hooks
