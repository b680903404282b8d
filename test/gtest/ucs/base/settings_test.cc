// The table of settings and how values are read. Messages of wrong values: nc_info_test.cc.
#include "ucs/base/settings.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>
#include <set>
#include <string>

#include "ucs/base/settings_table.hpp"

namespace cuda_nc {
namespace {

// Sets a variable for one test, and puts back what was there.
class variable {
  public:
    variable(const char *name, const char *value) : name_(name) {
        const char *old = std::getenv(name);
        had_ = old != nullptr;
        old_ = had_ ? old : "";
        setenv(name, value, 1);
        reload_config_for_test();
    }
    ~variable() {
        had_ ? setenv(name_, old_.c_str(), 1) : unsetenv(name_);
        reload_config_for_test();
    }
    variable(const variable &) = delete;
    variable &operator=(const variable &) = delete;

  private:
    const char *name_;
    bool had_;
    std::string old_;
};

TEST(settings, sizes_take_suffixes) {
    struct {
        const char *text;
        size_t bytes;
    } const good[] = {{"0", 0},
                      {"4096", 4096},
                      {"64K", 64 << 10},
                      {"64kb", 64 << 10},
                      {"1M", 1 << 20},
                      {"3g", size_t(3) << 30},
                      {"2T", size_t(2) << 40},
                      {"7B", 7},
                      {"inf", std::numeric_limits<size_t>::max()}};
    for (const auto &one : good) {
        size_t bytes = 1;
        EXPECT_TRUE(parse_size(one.text, &bytes)) << one.text;
        EXPECT_EQ(bytes, one.bytes) << one.text;
    }
    for (const char *text : {"", "K", "-1", " 1", "1 K", "1KK", "1.5M", "99999999999999999999",
                             "99999999999999T", "infinite"}) {
        size_t bytes = 1;
        EXPECT_FALSE(parse_size(text, &bytes)) << text;
        EXPECT_EQ(bytes, 1u) << text;
    }
}

TEST(settings, each_row_of_the_table_is_a_setting_of_its_own) {
    std::set<std::string> names;
    std::set<void *> members;
    settings target;
    for (const setting_field &one : settings_table) {
        EXPECT_TRUE(names.insert(one.name).second) << one.name;
        EXPECT_TRUE(members.insert(one.member(target)).second) << one.name;
        EXPECT_EQ(one.type == setting_kind::text, one.choices != nullptr) << one.name;
    }
}

TEST(settings, help_is_a_sentence_that_fits_a_table) {
    for (const setting_description &one : describe_settings()) {
        const std::string help = one.help;
        ASSERT_GT(help.size(), 10u) << one.name;
        EXPECT_EQ(help.back(), '.') << one.name;
        EXPECT_EQ(help.find_first_of("|\n"), std::string::npos) << one.name;
        EXPECT_FALSE(one.type.empty()) << one.name;
    }
}

TEST(settings, groups_stay_together) {
    std::set<std::string> seen;
    std::string last;
    for (const setting_description &one : describe_settings()) {
        if (last != one.group) {
            EXPECT_TRUE(seen.insert(one.group).second) << one.group << ", at " << one.name;
            last = one.group;
        }
    }
}

TEST(settings, types_say_what_a_value_looks_like) {
    for (const setting_description &one : describe_settings()) {
        const std::string name = one.name;
        if (name == "ENABLE") {
            EXPECT_EQ(one.type, "y, n");
        } else if (name == "GPU") {
            EXPECT_EQ(one.type, "auto, cuda, sim, none");
        } else if (name == "STAGING_SIZE") {
            EXPECT_EQ(one.type, "size");
        } else if (name == "SIM_SEED") {
            EXPECT_EQ(one.type, "number");
        } else if (name == "CARRIERS") {
            EXPECT_EQ(one.type, "list");
        } else if (name == "TRACE") {
            EXPECT_EQ(one.type, "file");
        }
    }
}

TEST(settings, values_are_read_by_type) {
    {
        variable stats("UCX_CUDA_NC_STATS", "yes");
        EXPECT_TRUE(config().stats);
    }
    {
        variable patience("UCX_CUDA_NC_PIPE_PATIENCE", "20");
        EXPECT_EQ(config().pipe_patience, 20u);
    }
    {
        variable seed("UCX_CUDA_NC_SIM_SEED", "18446744073709551615");
        EXPECT_EQ(config().sim_seed, std::numeric_limits<uint64_t>::max());
    }
    {
        variable carriers("UCX_CUDA_NC_CARRIERS", "sysv,self");
        EXPECT_EQ(config().carriers, "sysv,self");
    }
    {
        variable size("UCX_CUDA_NC_FRAGMENT_SIZE", "64K");
        EXPECT_EQ(config().fragment_size, size_t(64) << 10);
        EXPECT_TRUE(config().fragment_size_is_set);
    }
}

TEST(settings, what_cannot_be_read_is_the_default) {
    variable threads("UCX_CUDA_NC_HOST_THREADS", "4294967296");
    EXPECT_EQ(config().host_threads, 1u);
    variable simd("UCX_CUDA_NC_HOST_SIMD", "auto|sse2");
    EXPECT_EQ(config().host_simd, "auto");
    variable pull("UCX_CUDA_NC_PULL_MAX", "lots");
    EXPECT_EQ(config().pull_max, size_t(64) << 20);
}

}  // namespace
}  // namespace cuda_nc
