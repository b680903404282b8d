// Numbers of messages.
#include "uct/cuda_nc/protocol/message_table.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <set>

namespace cuda_nc::uct {
namespace {

TEST(message_ids, follow_each_other) {
    const uint64_t first = next_message_id();
    EXPECT_TRUE(is_message_id(first));
    EXPECT_FALSE(is_message_id(first + 1));
    EXPECT_EQ(next_message_id(), first + 1);
    EXPECT_TRUE(is_message_id(first + 1));
    EXPECT_FALSE(is_message_id(0));
}

// Two children may send to one process, which knows them by their numbers.
TEST(message_ids, of_children_are_their_own) {
    const uint64_t parents = next_message_id();
    std::set<uint64_t> numbers = {parents};
    for (int i = 0; i < 2; ++i) {
        int ends[2];
        ASSERT_EQ(pipe(ends), 0);
        const pid_t child = fork();
        if (child == 0) {
            const uint64_t own[2] = {next_message_id(), is_message_id(parents)};
            _exit(write(ends[1], own, sizeof(own)) == sizeof(own) ? 0 : 1);
        }
        int status = 0;
        EXPECT_EQ(waitpid(child, &status, 0), child);
        EXPECT_EQ(status, 0);
        uint64_t theirs[2] = {};
        EXPECT_EQ(read(ends[0], theirs, sizeof(theirs)), ssize_t{sizeof(theirs)});
        EXPECT_TRUE(numbers.insert(theirs[0]).second);
        EXPECT_EQ(theirs[1], 0u) << "the parent's number is not the child's";
        close(ends[0]);
        close(ends[1]);
    }
    EXPECT_TRUE(is_message_id(parents));
}

}  // namespace
}  // namespace cuda_nc::uct
