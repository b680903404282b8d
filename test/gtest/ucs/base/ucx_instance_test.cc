#include "ucs/base/ucx_instance.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include "hooks/two_ucx.hpp"

namespace cuda_nc {
namespace {

using namespace hooks::test;
using reason = caller_ucx::reason;

void expect_its_own(const char *user, unsigned minor) {
    const caller_ucx found = ucx_of(code_of(user));
    ASSERT_NE(found.ucx, nullptr);
    EXPECT_EQ(found.ucx->minor, minor);
    EXPECT_EQ(found.why, reason::by_object);
    EXPECT_EQ(known_ucx_of(code_of(user)), found.ucx) << "remembered";
}

TEST(ucx_instance, the_only_ucx_is_everybodys) {
    const caller_ucx found = ucx_of(nullptr);
    ASSERT_TRUE(found.is_certain());
    EXPECT_EQ(found.why, reason::only);
    EXPECT_EQ(found.ucx->minor, first_minor);
    EXPECT_TRUE(found.ucx->at_least(1, 22));
    EXPECT_FALSE(found.ucx->at_least(1, 23));
    EXPECT_EQ(found.ucx->find("ucp_dt_destroy"), find_symbol(first_ucp, "ucp_dt_destroy"));
}

TEST(ucx_instance, each_user_has_its_own_before_its_calls_are_bound) {
    for (bool first_is_first : {true, false}) {
        in_own_process([&] {
            expect_its_own(first_is_first ? first_user : second_user,
                           first_is_first ? first_minor : second_minor);
            expect_its_own(first_is_first ? second_user : first_user,
                           first_is_first ? second_minor : first_minor);
        });
    }
}

TEST(ucx_instance, each_user_has_its_own_after_its_calls_are_bound) {
    in_own_process([] {
        EXPECT_EQ(version_seen_by(second_user), second_minor);
        EXPECT_EQ(version_seen_by(first_user), first_minor);
        expect_its_own(second_user, second_minor);
        expect_its_own(first_user, first_minor);
    });
}

TEST(ucx_instance, of_two_none_is_certain_for_a_caller_that_uses_none) {
    in_own_process([] {
        load_fake(second_user);
        for (const void *caller :
             {static_cast<const void *>(nullptr),
              static_cast<const void *>(find_symbol("libwalk_original.so", "walk_original"))}) {
            const caller_ucx found = ucx_of(caller);
            EXPECT_NE(found.ucx, nullptr);
            EXPECT_FALSE(found.is_certain());
            EXPECT_EQ(known_ucx_of(caller), nullptr) << "asked again next time";
        }
    });
}

TEST(ucx_instance, a_second_ucx_ends_the_certainty_of_the_only_one) {
    in_own_process([] {
        EXPECT_TRUE(ucx_of(nullptr).is_certain());
        EXPECT_TRUE(ucx_of(nullptr).is_certain());
        load_fake(second_ucp);
        EXPECT_FALSE(ucx_of(nullptr).is_certain());
    });
}

void make_global(const char *ucp) {
    ASSERT_NE(dlopen(fake_path(ucp).c_str(), RTLD_NOW | RTLD_GLOBAL), nullptr);
}

// As the loader binds them: the caller's other calls go there, too.
TEST(ucx_instance, the_global_scope_comes_first_for_calls_that_are_not_bound) {
    in_own_process([] {
        make_global(first_ucp);
        expect_its_own(second_user, first_minor);
        EXPECT_EQ(version_seen_by(second_user), first_minor);
    });
}

TEST(ucx_instance, calls_that_are_bound_stay_where_they_are) {
    in_own_process([] {
        EXPECT_EQ(version_seen_by(second_user), second_minor);
        make_global(first_ucp);
        expect_its_own(second_user, second_minor);
    });
}

TEST(ucx_instance, a_ucx_is_found_by_an_address_of_its_own) {
    in_own_process([] {
        const void *within = find_symbol(second_ucp, "fake_ucp_live");
        EXPECT_EQ(ucx_around(within).ucx->minor, second_minor);
        EXPECT_TRUE(ucx_around(within).is_certain());
        EXPECT_FALSE(ucx_around(nullptr).is_certain());
    });
}

TEST(ucx_instance, two_pages_that_share_a_place_are_both_known) {
    ucx_cache::keyed_instances answers;
    constexpr uint64_t apart = ucx_cache::keyed_instances::sets;
    EXPECT_EQ(answers.find(7), -1);
    answers.keep(7, 3);
    answers.keep(7 + apart, 5);
    for (int i = 0; i < 2; ++i) {
        EXPECT_EQ(answers.find(7), 3);
        EXPECT_EQ(answers.find(7 + apart), 5);
        EXPECT_EQ(answers.find(7 + 2 * apart), -1);
    }
    answers.keep(7 + 2 * apart, 6);
    EXPECT_EQ(answers.find(7 + apart), 5);
    EXPECT_EQ(answers.find(7 + 2 * apart), 6);
    EXPECT_EQ(answers.find(7), -1);
}

}  // namespace
}  // namespace cuda_nc
