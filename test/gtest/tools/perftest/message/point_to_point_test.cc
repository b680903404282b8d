// Message tests between threads: what they count, and that they see every wrong byte.
#include <gtest/gtest.h>

#include <thread>

#include "tools/perftest/message/point_to_point.hpp"
#include "tools/perftest/support/watchdog.hpp"
#include "tools/perftest/message/thread_messenger.hpp"

namespace cuda_nc::tools {
namespace {

using test::listed_type;
using test::thread_messenger;
using test::thread_world;

message_plan small_plan() {
    message_plan plan;
    plan.tests = {"latency", "bandwidth", "bidir"};
    plan.cases = {{"v", "vector:5,8,16", 0, 40}, {"t", "triangle:10,8", 3, 440}};
    plan.window = 4;
    plan.iterations = 7;
    plan.seconds = 0.01;
    plan.memory = {"host"};
    plan.gpus = {0};
    return plan;
}

std::vector<message_row> run(thread_world &world, const message_plan &plan) {
    std::vector<message_row> rows;
    std::vector<std::string> begun;
    std::vector<std::thread> ranks;
    for (int rank = 0; rank < world.size; ++rank) {
        ranks.emplace_back([&, rank] {
            thread_messenger messages(world, rank);
            run_point_to_point_tests(
                messages, plan, [&](const std::string &layout) { begun.push_back(layout); },
                [&](const message_row &row) { rows.push_back(row); });
        });
    }
    for (std::thread &one : ranks) {
        one.join();
    }
    watch_for(0, "");
    EXPECT_EQ(begun.size(), rows.size());
    for (size_t i = 0; i < std::min(begun.size(), rows.size()); ++i) {
        EXPECT_EQ(begun[i], rows[i].layout);
    }
    return rows;
}

TEST(message_test, measures_and_verifies_every_case_and_test) {
    thread_world world(2);
    const std::vector<message_row> rows = run(world, small_plan());
    ASSERT_EQ(rows.size(), 6u);
    for (const message_row &row : rows) {
        EXPECT_EQ(row.error, "");
        EXPECT_TRUE(row.verified);
        EXPECT_EQ(row.bytes, row.layout == "v" ? 40u : 440u);
        EXPECT_EQ(row.window, row.test == "latency" ? 1u : 4u);
        EXPECT_EQ(row.directions, row.test == "bidir" ? 2u : 1u);
        EXPECT_GE(row.time.samples, 5u);
        EXPECT_LE(row.time.samples, 7u);
        EXPECT_GT(row.time.least, 0);
        EXPECT_GT(row.contiguous.least, 0);
        EXPECT_GT(row.first_use, 0);
    }
}

TEST(message_test, further_ranks_stand_by) {
    thread_world world(3);
    EXPECT_EQ(run(world, small_plan()).size(), 6u);
}

TEST(message_test, large_messages_get_a_smaller_window) {
    thread_world world(2);
    message_plan plan = small_plan();
    plan.cases = {{"v", "vector:1000,8,16", 0, 8000}};
    plan.buffer_size = 40000;  // room for two
    const std::vector<message_row> rows = run(world, plan);
    ASSERT_EQ(rows.size(), 3u);
    EXPECT_EQ(rows[0].window, 1u);
    EXPECT_EQ(rows[1].window, 2u);
    EXPECT_EQ(rows[2].error, "");
}

// Spoils what one rank receives, in the last message only that fits the condition.
void expect_seen(int rank, const std::function<void(char *, const listed_type &)> &spoil,
                 const std::string &test) {
    thread_world world(2);
    world.spoil = [&](int to, char *address, const listed_type &type) {
        if (to == rank && type.spans.size() > 1) {
            spoil(address, type);
        }
    };
    message_plan plan = small_plan();
    plan.tests = {test};
    for (const message_row &row : run(world, plan)) {
        EXPECT_NE(row.error.find("WRONG"), std::string::npos) << row.layout << ": " << row.error;
        EXPECT_NE(row.error.find("rank " + std::to_string(rank)), std::string::npos) << row.error;
        EXPECT_FALSE(row.verified);
    }
}

TEST(message_test, a_wrong_last_byte_is_seen_on_either_rank) {
    auto last_byte = [](char *address, const listed_type &type) {
        char &one =
            address[type.spans.back().at + static_cast<ptrdiff_t>(type.spans.back().length) - 1];
        one = static_cast<char>(one ^ 0x40);
    };
    for (const char *test : {"latency", "bidir"}) {
        expect_seen(0, last_byte, test);
        expect_seen(1, last_byte, test);
    }
    expect_seen(1, last_byte, "bandwidth");
}

TEST(message_test, a_touched_gap_is_seen) {
    auto gap = [](char *address, const listed_type &type) {
        char &one =
            address[type.spans.front().at + static_cast<ptrdiff_t>(type.spans.front().length)];
        one = static_cast<char>(one ^ 1);
    };
    expect_seen(1, gap, "latency");
    expect_seen(1, gap, "bandwidth");
    expect_seen(0, gap, "bidir");
}

// The first of the messages is right; from the tenth on bytes are missing.
TEST(message_test, a_wrong_byte_of_warm_messages_is_seen) {
    thread_world world(2);
    int count = 0;
    world.spoil = [&](int to, char *address, const listed_type &type) {
        if (to == 1 && type.spans.size() > 1 && ++count >= 3) {
            address[type.spans[1].at] = static_cast<char>(~address[type.spans[1].at]);
        }
    };
    message_plan plan = small_plan();
    plan.tests = {"latency"};
    plan.cases = {plan.cases[0]};
    const std::vector<message_row> rows = run(world, plan);
    ASSERT_EQ(rows.size(), 1u);
    EXPECT_NE(rows[0].error.find("warm, rank 1"), std::string::npos) << rows[0].error;
}

TEST(message_test, a_case_that_cannot_be_made_is_a_row_with_the_reason) {
    thread_world world(2);
    message_plan plan = small_plan();
    plan.cases = {{"x", "nonsense:1", 0, 8}, plan.cases[0]};
    const std::vector<message_row> rows = run(world, plan);
    ASSERT_EQ(rows.size(), 6u);
    EXPECT_NE(rows[0].error.find("nonsense"), std::string::npos);
    EXPECT_EQ(rows[3].error, "");
}

TEST(message_plan, survives_its_way_to_the_other_process) {
    message_plan plan = small_plan();
    plan.inject = "gap";
    plan.transport = "y";
    plan.more = true;
    plan.gpus = {3, 1};
    const message_plan back = plan_from_json(to_json(plan));
    EXPECT_EQ(to_json(back), to_json(plan));
    EXPECT_EQ(back.cases[1].misalign, 3u);
    EXPECT_EQ(of_rank(back.gpus, 1), 1);
    EXPECT_ANY_THROW(plan_from_json("GET / HTTP/1.1"));
    EXPECT_ANY_THROW(plan_from_json("{}"));
}

}  // namespace
}  // namespace cuda_nc::tools
