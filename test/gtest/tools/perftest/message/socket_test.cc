// No wait for another process is without an end.
#include <gtest/gtest.h>

#include <chrono>
#include <future>

#include "tools/perftest/support/run_error.hpp"
#include "tools/perftest/message/socket.hpp"

namespace cuda_nc::tools {
namespace {

constexpr double patience = 30, short_limit = 0.1;  // seconds

template <class Action>
std::string complaint(Action &&action) {
    const auto begin = std::chrono::steady_clock::now();
    std::string said = "nothing";
    try {
        action();
    } catch (const run_error &failure) {
        said = failure.what();
    }
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
    return said;
}

struct pair_of_connections {
    pair_of_connections() : at("127.0.0.1", 0) {
        auto coming = std::async(std::launch::async,
                                 [&] { return connect_to("127.0.0.1", at.port(), patience); });
        server = at.accept(patience);
        client = coming.get();
    }
    listener at;
    connection server, client;
};

TEST(socket, carries_texts_of_any_bytes_in_order) {
    pair_of_connections both;
    const std::string binary("a\0b\n", 4), large(3 << 20, 'x');
    auto sending = std::async(std::launch::async, [&] {
        both.client.send(binary, patience);
        both.client.send("", patience);
        both.client.send(large, patience);
    });
    EXPECT_EQ(both.server.receive(patience), binary);
    EXPECT_EQ(both.server.receive(patience), "");
    EXPECT_EQ(both.server.receive(patience), large);
    sending.get();
    EXPECT_FALSE(both.server.has_input());
    EXPECT_FALSE(both.server.is_peer_gone());
}

TEST(socket, a_silent_peer_is_not_waited_for_without_end) {
    pair_of_connections both;
    EXPECT_NE(complaint([&] { both.server.receive(short_limit); }).find("says nothing"),
              std::string::npos);
    EXPECT_NE(complaint([&] {
                  both.server.send(std::string(64 << 20, 'x'), short_limit);
              }).find("says nothing"),
              std::string::npos);
}

TEST(socket, a_peer_that_is_gone_is_noticed) {
    pair_of_connections both;
    both.client = connection();
    EXPECT_NE(complaint([&] { both.server.receive(patience); }).find("gone"), std::string::npos);
    EXPECT_TRUE(both.server.is_peer_gone());
}

TEST(socket, nobody_there) {
    const listener at("127.0.0.1", 0);
    EXPECT_NE(complaint([&] { at.accept(short_limit); }).find("no client"), std::string::npos);
    int port;
    {
        const listener gone("127.0.0.1", 0);
        port = gone.port();
    }
    EXPECT_NE(complaint([&] { connect_to("127.0.0.1", port, short_limit); }).find("no server"),
              std::string::npos);
    EXPECT_NE(complaint([&] { listener("127.0.0.1", at.port()); }).find("cannot be used"),
              std::string::npos);
}

}  // namespace
}  // namespace cuda_nc::tools
