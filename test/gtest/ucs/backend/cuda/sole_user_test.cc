#include "ucs/backend/cuda/sole_user.hpp"

#include <gtest/gtest.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <string>

namespace cuda_nc::gpu::cuda {
namespace {

class sole_user_test : public testing::Test {
  protected:
    void SetUp() override { ASSERT_NE(mkdtemp(folder_.data()), nullptr); }
    void TearDown() override {
        const std::string command = "rm -r '" + folder_ + "'";
        EXPECT_EQ(system(command.c_str()), 0);
    }
    std::string folder_ = testing::TempDir() + "sole_user_XXXXXX";
};

TEST_F(sole_user_test, objects_of_one_process_are_one_user) {
    sole_user one;
    EXPECT_FALSE(one.is_alone()) << "it has not entered";
    ASSERT_TRUE(one.enter("0000:1b:00.0", folder_.c_str()));
    EXPECT_TRUE(one.is_alone());
    {
        sole_user another, elsewhere;
        ASSERT_TRUE(another.enter("0000:1b:00.0", folder_.c_str()));
        EXPECT_TRUE(one.is_alone());
        EXPECT_TRUE(another.is_alone());
        ASSERT_TRUE(elsewhere.enter("0000:1c:00.0", folder_.c_str()));
        EXPECT_TRUE(elsewhere.is_alone());
    }
    EXPECT_TRUE(one.is_alone());
}

TEST_F(sole_user_test, another_process_is_seen_until_it_dies) {
    sole_user one;
    ASSERT_TRUE(one.enter("bus", folder_.c_str()));
    int there[2], over[2];
    ASSERT_EQ(pipe(there), 0);
    ASSERT_EQ(pipe(over), 0);
    const pid_t child = fork();
    if (child == 0) {
        sole_user its;
        char sign = its.enter("bus", folder_.c_str()) ? 'y' : 'n';
        if (write(there[1], &sign, 1) == 1 && read(over[0], &sign, 1) == 1) {
            abort();
        }
        _exit(1);
    }
    char sign = 0;
    ASSERT_EQ(read(there[0], &sign, 1), 1);
    EXPECT_EQ(sign, 'y');
    EXPECT_FALSE(one.is_alone());
    ASSERT_EQ(write(over[1], &sign, 1), 1);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(one.is_alone());
    for (int end : {there[0], there[1], over[0], over[1]}) {
        close(end);
    }
}

// A server that a program starts by fork, for one.
TEST_F(sole_user_test, a_child_does_not_keep_the_place_of_its_parent) {
    sole_user one;
    ASSERT_TRUE(one.enter("bus", folder_.c_str()));
    int there[2], over[2];
    ASSERT_EQ(pipe(there), 0);
    ASSERT_EQ(pipe(over), 0);
    const pid_t parent = fork();
    if (parent == 0) {
        auto its = std::make_unique<sole_user>();
        if (!its->enter("bus", folder_.c_str())) {
            _exit(1);
        }
        const pid_t child = fork();
        if (child == 0) {
            char sign = its->is_alone() ? 'n' : 'y';
            its = nullptr;  // closes nothing that was opened since
            if (fcntl(there[1], F_GETFD) < 0 || write(there[1], &sign, 1) != 1 ||
                read(over[0], &sign, 1) != 1) {
                _exit(1);
            }
            _exit(0);
        }
        _exit(child > 0 ? 0 : 1);
    }
    char sign = 0;
    int status = -1;
    ASSERT_EQ(waitpid(parent, &status, 0), parent);
    EXPECT_EQ(status, 0);
    ASSERT_EQ(read(there[0], &sign, 1), 1);
    EXPECT_EQ(sign, 'y');
    EXPECT_TRUE(one.is_alone()) << "the child of one that has ended is there yet";
    ASSERT_EQ(write(over[1], &sign, 1), 1);
    for (int end : {there[0], there[1], over[0], over[1]}) {
        close(end);
    }
}

TEST_F(sole_user_test, what_is_no_file_of_ours_is_refused) {
    const std::string at = folder_ + "/ucx_cuda_nc." + std::to_string(geteuid()) + ".bus";
    ASSERT_EQ(symlink("/etc/passwd", at.c_str()), 0);
    sole_user one;
    EXPECT_FALSE(one.enter("bus", folder_.c_str()));
    EXPECT_FALSE(one.enter("bus", (folder_ + "/none").c_str()));
    EXPECT_FALSE(one.is_alone());
}

}  // namespace
}  // namespace cuda_nc::gpu::cuda
