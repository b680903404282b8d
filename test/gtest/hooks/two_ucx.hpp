// Two made-up copies of UCP, and a library that uses each. A test with both runs in a child
// process: all others want one UCX.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>

#include "hooks/fakes.hpp"

namespace cuda_nc::hooks::test {

constexpr const char *first_ucp = "libucp_fake.so", *second_ucp = "libucp_second.so",
                     *first_user = "libfirst_user.so", *second_user = "libsecond_user.so";
constexpr unsigned first_minor = 22, second_minor = 19;

// An address in the code of a library.
inline const void *code_of(const char *user) {
    return find_symbol(user, "user_destroys");
}

// The user's call of UCP binds it to its own UCX, or to that of the global scope.
inline unsigned version_seen_by(const char *user) {
    return static_cast<unsigned>(find_in_fake<int (*)()>(user, "user_version")());
}

template <typename function>
void in_own_process(function test) {
    testing::GTEST_FLAG(death_test_style) = "threadsafe";
    EXPECT_EXIT(
        {
            test();
            std::_Exit(testing::Test::HasFailure() ? 1 : 0);
        },
        testing::ExitedWithCode(0), "");
}

}  // namespace cuda_nc::hooks::test
