#include "ucs/base/trace.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <thread>

#include "ucs/base/settings.hpp"

namespace cuda_nc {
namespace {

// A process that traces what `action` does, and its file.
template <typename F>
nlohmann::json trace_of(F &&action) {
    const std::string pattern = testing::TempDir() + "cuda_nc_trace.%p";
    pid_t child = fork();
    if (child == 0) {
        setenv("UCX_CUDA_NC_TRACE", pattern.c_str(), 1);
        reload_config_for_test();
        reload_trace_for_test();
        action();
        std::exit(0);
    }
    int status = 1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    const std::string file = testing::TempDir() + "cuda_nc_trace." + std::to_string(child);
    std::ifstream in(file);
    std::string text((std::istreambuf_iterator<char>(in)), {});
    std::remove(file.c_str());
    return nlohmann::json::parse(text);
}

TEST(trace, is_off_unless_asked_for) {
    EXPECT_FALSE(tracing());
}

TEST(trace, holds_events_in_order_with_times) {
    nlohmann::json all = trace_of([] {
        trace_begin("send", 0x1234, 16777216);
        trace_mark("offer", 0x1234);
        trace_end("send", 0x1234);
    });
    const auto &events = all.at("traceEvents");
    ASSERT_EQ(events.size(), 3u);
    EXPECT_EQ(events[0].at("ph"), "b");
    EXPECT_EQ(events[0].at("name"), "send");
    EXPECT_EQ(events[0].at("id"), "0x1234");
    EXPECT_EQ(events[0].at("args").at("bytes"), 16777216);
    EXPECT_EQ(events[1].at("ph"), "n");
    EXPECT_EQ(events[2].at("ph"), "e");
    EXPECT_LE(events[0].at("ts").get<double>(), events[1].at("ts").get<double>());
    EXPECT_LE(events[1].at("ts").get<double>(), events[2].at("ts").get<double>());
    EXPECT_EQ(all.at("otherData").at("lost"), 0);
}

TEST(trace, keeps_what_threads_do_apart) {
    nlohmann::json all = trace_of([] {
        trace_mark("one", 1);
        std::thread([] { trace_mark("two", 2); }).join();
    });
    const auto &events = all.at("traceEvents");
    ASSERT_EQ(events.size(), 2u);
    EXPECT_NE(events[0].at("tid"), events[1].at("tid"));
}

TEST(trace, is_bounded) {
    nlohmann::json all = trace_of([] {
        for (int i = 0; i < (1 << 18) + 5; ++i) {
            trace_slow(trace_phase::mark, "m", 1, 0);
        }
    });
    EXPECT_EQ(all.at("traceEvents").size(), size_t(1) << 18);
    EXPECT_EQ(all.at("otherData").at("lost"), 5);
}

TEST(trace, names_files_by_process) {
    std::string number = std::to_string(getpid());
    EXPECT_EQ(trace_file("a.%p.b%p"), "a." + number + ".b" + number);
    EXPECT_EQ(trace_file("plain"), "plain." + number);
    EXPECT_EQ(trace_file("/a.b/c.json"), "/a.b/c." + number + ".json");
    EXPECT_EQ(trace_file("/a.b/c"), "/a.b/c." + number);
    EXPECT_EQ(trace_file("/dev/null"), "/dev/null") << "a device, not a file";
}

}  // namespace
}  // namespace cuda_nc
