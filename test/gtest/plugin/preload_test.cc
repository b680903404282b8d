// The shim and the module in processes of their own.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "hooks/fakes.hpp"
#include "hooks/process.hpp"

namespace cuda_nc::hooks {
namespace {

using test::fake_path;
using test::outcome;
using test::run;

const std::string libraries = BUILD_DIRECTORY "/.libs/";
const std::string shim = libraries + "libcuda_nc_preload.so";
const std::string module = libraries + "libuct_cudanc.so.0";

outcome probe(const std::string &environment, const std::string &before = "") {
    return run(environment,
               BUILD_DIRECTORY "/hooks_probe " + before + " " + fake_path("libfake_open_mpi.so"));
}

std::string served(const char *vector, const char *contiguous, const char *warning = "") {
    return std::string("vector ") + vector + "\ncontiguous " + contiguous + "\n" + warning +
           "liar original\nliar again original\nlive 0\n";
}

const std::string preload = "LD_PRELOAD=" + shim;

// The text without the lines that hold `warning`; *count_p: how many those were.
std::string without(const std::string &text, const std::string &warning, int *count_p) {
    std::string rest;
    *count_p = 0;
    for (size_t start = 0; start < text.size();) {
        size_t end = std::min(text.find('\n', start), text.size() - 1) + 1;
        std::string line = text.substr(start, end - start);
        if (line.find(warning) != std::string::npos) {
            ++*count_p;
        } else {
            rest += line;
        }
        start = end;
    }
    return rest;
}

// `warning` exactly once, and nothing else beside the expected lines.
void expect_served(const outcome &seen, const std::string &expected, const std::string &warning) {
    int count = 0;
    EXPECT_EQ(seen.status, 0) << seen;
    EXPECT_EQ(without(seen.output, warning, &count), expected);
    EXPECT_EQ(count, 1) << seen;
}

const char *const liar_warning = "datatype liar is left to Open MPI's own operations";

TEST(preload, nothing_changes_without_it) {
    outcome seen = probe("A=b");
    EXPECT_EQ(seen.output, served("original", "original"));
    EXPECT_EQ(seen.status, 0);
}

TEST(preload, libraries_that_were_loaded_local_are_served) {
    expect_served(probe(preload), served("engine", "original"), liar_warning);
}

TEST(preload, everything_is_served_under_an_open_mpi_that_packs_wrongly) {
    expect_served(probe(preload + " FAKE_OPEN_MPI_VERSION=5.0.11"), served("engine", "engine"),
                  liar_warning);
}

// What does not go as a message is not understood there.
TEST(preload, a_later_open_mpi_keeps_its_own_convertor) {
    const std::string convertor = "--convertor ", version = preload + " FAKE_OPEN_MPI_VERSION=";
    expect_served(probe(version + "5.0.11", convertor),
                  served("engine", "engine") + "convertor engine\n", liar_warning);
    expect_served(probe(version + "6.0.0", convertor),
                  served("engine", "engine") + "convertor original\n", liar_warning);
}

TEST(preload, the_host_engine_can_be_switched_off_and_on) {
    expect_served(probe(preload + " UCX_CUDA_NC_HOST_ENGINE=never FAKE_OPEN_MPI_VERSION=5.0.11"),
                  served("original", "original"), liar_warning);
    expect_served(probe(preload + " UCX_CUDA_NC_HOST_ENGINE=always"), served("engine", "engine"),
                  liar_warning);
}

TEST(preload, all_can_be_switched_off) {
    EXPECT_EQ(probe(preload + " UCX_CUDA_NC_ENABLE=n").output, served("original", "original"));
}

TEST(preload, an_old_ucx_is_passed_by_with_one_warning) {
    expect_served(probe(preload + " FAKE_UCP_MINOR=12"), served("original", "original"),
                  "UCX 1.12.0 is older than 1.13");
    expect_served(probe(preload + " FAKE_UCP_MINOR=13"), served("engine", "original"),
                  liar_warning);
}

class lonely_shim : public testing::Test {
  protected:
    void SetUp() override {
        char pattern[] = "/tmp/nc_shim_XXXXXX";
        ASSERT_NE(mkdtemp(pattern), nullptr);
        directory_ = pattern;
        ASSERT_EQ(run("", "cp " + shim + " " + directory_).status, 0);
    }
    void TearDown() override { run("", "rm -rf " + directory_); }
    std::string preload_alone() const {
        return "LD_PRELOAD=" + directory_ + "/libcuda_nc_preload.so LD_LIBRARY_PATH=";
    }
    std::string directory_;
};

TEST_F(lonely_shim, warns_once_and_passes_by) {
    expect_served(probe(preload_alone()), served("original", "original"),
                  "libcuda_nc.so cannot be used, the job runs without it");
}

TEST_F(lonely_shim, is_silent_where_the_ucx_is_not_served_anyway) {
    EXPECT_EQ(probe(preload_alone() + " FAKE_UCP_MINOR=12").output, served("original", "original"));
}

TEST(preload, a_shell_is_untouched) {
    const char *const shell =
        "bash -c 'echo; grep -c cuda_nc /proc/self/maps; ls /; cat /no/such/file; exit 7'";
    outcome plain = run("", shell), loaded = run(preload, shell);
    int lines_plain, lines_loaded;
    EXPECT_EQ(loaded.status, 7);
    // grep's own process holds the shim's few mappings and nothing else of ours
    EXPECT_EQ(without(plain.output, "no such line", &lines_plain).substr(3),
              without(loaded.output, "no such line", &lines_loaded).substr(3));
    EXPECT_EQ(run(preload, "bash -c true"), run("", "bash -c true"));
    outcome others = run(preload, "bash -c 'grep -v preload /proc/self/maps | grep -c cuda_nc'");
    EXPECT_EQ(others.output, "0\n");
}

TEST(preload, python_is_untouched_until_it_calls) {
    const std::string script =
        "python3 -c \"import ctypes; l = ctypes.CDLL('" + fake_path("libucp_fake.so") +
        "'); print(l.fake_ucp_live(), 'libcuda_nc.so' in open('/proc/self/maps').read())\"";
    EXPECT_EQ(run(preload, script).output, "0 False\n");
}

const std::string loaded_fakes = "--load " + fake_path("libfake_open_mpi.so") + " --module ";

TEST(module, redirects_what_is_loaded_without_a_preload) {
    expect_served(probe("A=b", loaded_fakes + module), served("engine", "original"), liar_warning);
}

TEST(module, beside_the_shim_is_harmless) {
    expect_served(probe(preload, loaded_fakes + module), served("engine", "original"),
                  liar_warning);
    expect_served(probe(preload, "--module " + module), served("engine", "original"), liar_warning);
}

// The transport says once why it stays away; everything else goes on.
void expect_no_transport(const std::string &environment, const std::string &reason) {
    outcome seen = probe("UCX_CUDA_NC_TRANSPORT=y " + environment, loaded_fakes + module);
    int count = 0;
    seen.output = without(seen.output, reason, &count);
    EXPECT_EQ(count, 1) << seen;
    expect_served(seen, served("engine", "original"), liar_warning);
}

TEST(module, the_transport_stays_away_from_releases_that_it_does_not_know) {
    expect_no_transport("FAKE_UCP_MINOR=23", "stays away from UCX 1.23.0, the job runs without it");
    expect_no_transport("FAKE_UCP_MINOR=18", "stays away from UCX 1.18.0, the job runs without it");
}

TEST(module, the_transport_stays_away_from_a_ucx_that_is_not_as_its_release) {
    expect_no_transport("FAKE_UCP_MINOR=22", "does not have the functions of its release");
}

TEST(module, can_be_switched_off) {
    EXPECT_EQ(probe("UCX_CUDA_NC_ENABLE=n", loaded_fakes + module).output,
              served("original", "original"));
}

}  // namespace
}  // namespace cuda_nc::hooks
