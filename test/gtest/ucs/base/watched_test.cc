#include "ucs/base/watched.hpp"

#include <gtest/gtest.h>
#include <sys/ptrace.h>

#include <cstdlib>
#include <string>

#include "ucs/gpu/child_process.hpp"

namespace cuda_nc {
namespace {

using gpu::test::child_process;

struct answer {
    bool could_be_traced, watched;
};

// In a child: says whether it is watched; with TRACED set, by its parent.
TEST(watched_child, DISABLED_says_so) {
    const bool wanted = std::getenv("TRACED") != nullptr;
    answer own = {};
    own.could_be_traced = wanted && ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) == 0;
    own.watched = is_watched();
    ASSERT_TRUE(gpu::test::send_to_parent(&own, sizeof(own)));
}

class watched : public testing::Test {
  protected:
    void SetUp() override {
        if (is_watched()) {
            GTEST_SKIP() << "this process is watched itself, or its environment says so";
        }
    }
    static answer ask(const std::vector<std::string> &environment) {
        child_process child("watched_child.DISABLED_says_so", environment);
        answer its = {};
        EXPECT_TRUE(child.receive(&its, sizeof(its))) << child.output();
        child.kill();  // one that is traced stops at its end
        child.wait();
        return its;
    }
};

TEST_F(watched, nobody_watches_a_plain_process) {
    EXPECT_FALSE(ask({}).watched);
}

TEST_F(watched, tools_that_the_environment_brings_into_cuda_watch) {
    for (const char *tool : {"CUDA_INJECTION64_PATH=/none.so", "CUDBG_USE_LEGACY_DEBUGGER=1",
                             "NV_SANITIZER_INJECTION_PORT_BASE=49152", "NV_SANITIZER_ANYTHING="}) {
        EXPECT_TRUE(ask({tool}).watched) << tool;
    }
    EXPECT_FALSE(ask({"NV_SANITISER=1"}).watched);
}

TEST_F(watched, whoever_traces_a_process_watches_it) {
    const answer its = ask({"TRACED=1"});
    if (!its.could_be_traced) {
        GTEST_SKIP() << "processes cannot be traced here";
    }
    EXPECT_TRUE(its.watched);
}

}  // namespace
}  // namespace cuda_nc
