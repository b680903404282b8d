// Halo exchange and all pairs at once, between threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <thread>

#include "tools/perftest/message/halo_grid.hpp"
#include "tools/perftest/message/halo.hpp"
#include "tools/perftest/message/pairs.hpp"
#include "tools/perftest/support/watchdog.hpp"
#include "tools/perftest/message/thread_messenger.hpp"
#include "ucs/layout/layout_spec.hpp"

namespace cuda_nc::tools {
namespace {

using test::listed_type;
using test::thread_messenger;
using test::thread_world;

message_plan small_plan() {
    message_plan plan;
    plan.iterations = 5;
    plan.seconds = 0.01;
    plan.window = 3;
    plan.memory = {"host"};
    plan.gpus = {0};
    return plan;
}

template <class Work>
void on_all_ranks(thread_world &world, Work &&work) {
    std::vector<std::thread> ranks;
    for (int rank = 0; rank < world.size; ++rank) {
        ranks.emplace_back([&, rank] {
            thread_messenger messages(world, rank);
            work(messages);
        });
    }
    for (std::thread &one : ranks) {
        one.join();
    }
    watch_for(0, "");
}

message_row run_halo(thread_world &world, const message_plan &plan, const std::string &test,
                     const halo_options &o) {
    message_row row;
    on_all_ranks(world, [&](thread_messenger &by) {
        const message_row mine = run_halo(by, plan, test, o);
        if (by.rank() == 0) {
            row = mine;
        }
    });
    return row;
}

TEST(halo_grid, ranks_are_divided_as_cubic_as_they_can_be) {
    EXPECT_EQ(divide_ranks(1), (triple{1, 1, 1}));
    EXPECT_EQ(divide_ranks(2), (triple{2, 1, 1}));
    EXPECT_EQ(divide_ranks(7), (triple{7, 1, 1}));
    EXPECT_EQ(divide_ranks(8), (triple{2, 2, 2}));
    EXPECT_EQ(divide_ranks(12), (triple{3, 2, 2}));
    EXPECT_EQ(divide_ranks(64), (triple{4, 4, 4}));
}

TEST(halo_grid, neighbours_are_mutual) {
    const halo_grid grid(12, 4, 1);
    EXPECT_EQ(halo_grid::directions(6).size(), 6u);
    EXPECT_EQ(halo_grid::directions(26).size(), 26u);
    for (int rank = 0; rank < 12; ++rank) {
        for (const triple &to : halo_grid::directions(26)) {
            EXPECT_EQ(grid.neighbour(grid.neighbour(rank, to), {-to[0], -to[1], -to[2]}), rank);
        }
    }
}

// What the 26 messages fill is the halo and nothing else, each element once; what they carry is
// what its owner has.
TEST(halo_grid, the_parts_cover_the_halo) {
    const halo_grid grid(6, 4, 2);
    const int n = grid.across();
    std::set<int64_t> filled;
    for (const triple &from : halo_grid::directions(26)) {
        std::string error;
        const layout_ref target = parse_layout(grid.received(from), &error);
        const layout_ref source = parse_layout(grid.sent({-from[0], -from[1], -from[2]}), &error);
        ASSERT_TRUE(target && source) << error;
        ASSERT_EQ(target->packed_size(), source->packed_size());
        layout_cursor to(*target, 0), at(*source, 0);
        for (block one = to.next(8), other = at.next(8); one.length != 0;
             one = to.next(8), other = at.next(8)) {
            EXPECT_TRUE(filled.insert(one.displacement).second);
            auto place = [n](int64_t byte) {
                const int i = static_cast<int>(byte / 8);
                return triple{i / n / n, i / n % n, i % n};
            };
            EXPECT_EQ(grid.part_of(place(one.displacement)), from);
            EXPECT_EQ(grid.part_of(place(other.displacement)), (triple{0, 0, 0}));
            EXPECT_EQ(grid.value(1, place(one.displacement)),
                      grid.value(grid.neighbour(1, from), place(other.displacement)));
        }
    }
    EXPECT_EQ(filled.size(), static_cast<size_t>(n * n * n - 4 * 4 * 4));
}

TEST(halo_test, any_number_of_ranks_exchanges_rightly) {
    for (int ranks : {1, 2, 3, 8}) {
        for (const char *test : {"halo6", "halo26"}) {
            thread_world world(ranks);
            const message_row row = run_halo(world, small_plan(), test, {5, 2});
            EXPECT_EQ(row.error, "") << ranks;
            EXPECT_TRUE(row.verified);
            EXPECT_EQ(row.bytes,
                      test == std::string("halo6") ? 6 * 25 * 2 * 8 : (9 * 9 * 9 - 5 * 5 * 5) * 8);
            EXPECT_GE(row.time.samples, 5u);
            EXPECT_GT(row.contiguous.least, 0);
        }
    }
}

TEST(halo_test, a_wrong_element_and_a_touched_gap_are_seen) {
    for (int rank : {0, 1}) {
        thread_world world(2);
        world.spoil = [&](int to, char *address, const listed_type &type) {
            if (to == rank && type.spans.size() > 1) {
                char &one = address[type.spans[1].at];
                one = static_cast<char>(one ^ 4);
            }
        };
        EXPECT_NE(run_halo(world, small_plan(), "halo26", {5, 2}).error.find("WRONG"),
                  std::string::npos);
        world.spoil = [&](int to, char *address, const listed_type &type) {
            if (to == rank && type.spans.size() > 1) {
                address[0] = 17;  // a corner: no neighbour of 6
            }
        };
        EXPECT_NE(run_halo(world, small_plan(), "halo6", {5, 2}).error.find("element 0"),
                  std::string::npos);
    }
}

TEST(halo_test, contiguous_buffers_alone_are_measured_without_a_datatype) {
    for (int ranks : {1, 2, 3, 8}) {
        for (const char *test : {"halo6", "halo26"}) {
            thread_world world(ranks);
            std::atomic<int> datatypes{0};
            world.spoil = [&](int, char *, const listed_type &type) {
                datatypes += type.spans.size() > 1;
            };
            const message_row row = run_halo(world, small_plan(), test, {5, 2, "isend", true});
            EXPECT_EQ(row.error, "") << ranks;
            EXPECT_TRUE(row.verified);
            EXPECT_EQ(datatypes, 0);
            EXPECT_GT(row.time.least, 0);
            EXPECT_EQ(row.ratio(), 1);
        }
    }
}

TEST(halo_test, a_wrong_element_of_a_contiguous_buffer_is_seen) {
    for (bool contiguous_only : {false, true}) {
        for (int rank : {0, 1}) {
            thread_world world(2);
            world.spoil = [&](int to, char *address, const listed_type &type) {
                if (to == rank && type.spans.size() == 1) {
                    address[type.spans[0].length - 1] ^= 1;
                }
            };
            const message_row row =
                run_halo(world, small_plan(), "halo26", {5, 2, "isend", contiguous_only});
            EXPECT_NE(row.error.find("contiguous buffer"), std::string::npos) << row.error;
            EXPECT_FALSE(row.verified);
        }
    }
}

TEST(halo_test, a_way_that_the_messenger_lacks_is_refused) {
    thread_world world(2);
    const message_row row = run_halo(world, small_plan(), "halo6", {5, 2, "neighbor"});
    EXPECT_EQ(row.layout, "box-5 neighbor");
    EXPECT_NE(row.error.find("use nc_perftest mpi"), std::string::npos) << row.error;
}

// What the one sends as its k-th message to the other is the k-th that the other receives from it.
TEST(exchanged_messages, two_ranks_agree_on_the_order_of_their_messages) {
    // Of rank 0: three to rank 1, and one to itself in between.
    const std::vector<exchanged_message> of_0 = {{1, 7, 2}, {0, 4, 4}, {1, 3, 9}, {1, 5, 6}};
    const std::vector<exchanged_message> of_1 = {{0, 9, 5}, {0, 2, 7}, {0, 6, 3}};
    std::vector<int> sent, received;
    for (size_t i : order_of_sends(of_0)) {
        if (of_0[i].peer == 1) {
            sent.push_back(of_0[i].send_tag);
        }
    }
    for (size_t i : order_of_receives(of_1)) {
        received.push_back(of_1[i].receive_tag);
    }
    EXPECT_EQ(sent, (std::vector<int>{3, 5, 7}));
    EXPECT_EQ(sent, received);
}

TEST(halo_test, too_wide_a_halo_is_refused) {
    thread_world world(2);
    EXPECT_NE(run_halo(world, small_plan(), "halo6", {2, 3}).error.find("wider"),
              std::string::npos);
}

std::vector<message_row> run_pairs(thread_world &world, const std::string &test) {
    const layout_case what = {"v", "vector:5,8,16", 0, 40};
    std::vector<message_row> rows;
    on_all_ranks(world, [&](thread_messenger &by) {
        const std::vector<message_row> mine = run_pairs(by, small_plan(), what, test);
        if (by.rank() == 0) {
            rows = mine;
        }
    });
    return rows;
}

TEST(pairs_measurement, each_pair_is_a_row_beside_its_own_peak) {
    for (int ranks : {2, 5, 6}) {
        for (const char *test : {"pairs", "pairs-bidir"}) {
            thread_world world(ranks);
            const std::vector<message_row> rows = run_pairs(world, test);
            ASSERT_EQ(rows.size(), static_cast<size_t>(ranks / 2));
            for (const message_row &row : rows) {
                EXPECT_EQ(row.error, "");
                EXPECT_TRUE(row.verified);
                EXPECT_GT(row.more.at("alone_us"), 0);
                EXPECT_EQ(row.more.at("second"), row.more.at("first") + ranks / 2);
            }
        }
    }
}

TEST(pairs_measurement, a_wrong_byte_of_the_last_pair_is_seen) {
    thread_world world(4);
    world.spoil = [](int to, char *address, const listed_type &type) {
        if (to == 3 && type.spans.size() > 1) {
            address[type.spans[1].at] = static_cast<char>(~address[type.spans[1].at]);
        }
    };
    const std::vector<message_row> rows = run_pairs(world, "pairs");
    ASSERT_EQ(rows.size(), 1u);
    EXPECT_NE(rows[0].error.find("rank 3"), std::string::npos) << rows[0].error;
}

TEST(pairs_measurement, one_rank_is_no_pair) {
    thread_world world(1);
    EXPECT_NE(run_pairs(world, "pairs").at(0).error.find("no pair"), std::string::npos);
}

}  // namespace
}  // namespace cuda_nc::tools
