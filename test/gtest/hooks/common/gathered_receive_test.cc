#include "hooks/common/gathered_receive.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace cuda_nc::hooks {
namespace {

// A library that unpacks values of 8 bytes alone, as MPICH does: what it has unpacked, and when.
struct library {
    std::string target = std::string(40, '.');
    std::vector<size_t> lengths;

    static size_t packed_size(void *state) { return static_cast<library *>(state)->target.size(); }
    static ucs_status_t unpack(void *state, size_t offset, const void *source, size_t length) {
        auto *self = static_cast<library *>(state);
        self->lengths.push_back(length);
        const size_t whole = length / 8 * 8;
        std::memcpy(&self->target[offset], source, whole);
        return whole == length ? UCS_OK : UCS_ERR_MESSAGE_TRUNCATED;
    }
};

const ucp_generic_dt_ops_t operations = {nullptr, nullptr,         library::packed_size,
                                         nullptr, library::unpack, nullptr};
const std::string sent = "0123456789abcdefghijklmnopqrstuvwxyzABCD";

struct part {
    size_t offset, length;
};

library receive(const std::vector<part> &parts, std::vector<ucs_status_t> *results = nullptr) {
    library made;
    gathered_receive *gathered = gathered_receive::start(operations, &made);
    EXPECT_EQ(gathered->original(), &made);
    for (const part &one : parts) {
        const ucs_status_t status =
            gathered->unpack(one.offset, sent.data() + one.offset, one.length);
        if (results != nullptr) {
            results->push_back(status);
        } else {
            EXPECT_EQ(status, UCS_OK);
        }
    }
    gathered->finish();
    return made;
}

TEST(gathered_receive, unpacks_once_when_the_last_fragment_is_there) {
    const library seen = receive({{0, 13}, {26, 14}, {13, 13}});
    EXPECT_EQ(seen.target, sent);
    EXPECT_EQ(seen.lengths, std::vector<size_t>({40}));
}

TEST(gathered_receive, passes_on_a_message_of_one_fragment) {
    const library seen = receive({{0, 40}});
    EXPECT_EQ(seen.target, sent);
    EXPECT_EQ(seen.lengths, std::vector<size_t>({40}));
}

TEST(gathered_receive, unpacks_a_shorter_message_at_the_end) {
    const library seen = receive({{13, 3}, {0, 13}});
    EXPECT_EQ(seen.target, sent.substr(0, 16) + std::string(24, '.'));
    EXPECT_EQ(seen.lengths, std::vector<size_t>({16}));
}

TEST(gathered_receive, leaves_a_message_with_a_hole_alone) {
    EXPECT_TRUE(receive({{0, 13}, {20, 8}}).lengths.empty());
    EXPECT_TRUE(receive({}).lengths.empty());
}

TEST(gathered_receive, says_where_the_library_could_not_unpack_all) {
    testing::internal::CaptureStderr();
    const library seen = receive({{0, 13}});
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_EQ(seen.target, sent.substr(0, 8) + std::string(32, '.'));
    EXPECT_NE(said.find("a message of 13 bytes is shorter than its receive, of 40"),
              std::string::npos)
        << said;
}

TEST(gathered_receive, keeps_to_its_size) {
    std::vector<ucs_status_t> results;
    const library seen = receive({{0, 8}, {36, 5}, {41, 1}}, &results);
    EXPECT_EQ(results, std::vector<ucs_status_t>(
                           {UCS_OK, UCS_ERR_MESSAGE_TRUNCATED, UCS_ERR_MESSAGE_TRUNCATED}));
    EXPECT_EQ(seen.lengths, std::vector<size_t>({8}));
}

}  // namespace
}  // namespace cuda_nc::hooks
