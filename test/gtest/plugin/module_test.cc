// The module in processes of their own.
#include <gtest/gtest.h>

#include <string>

#include "plugin/probe.hpp"

namespace cuda_nc::hooks {
namespace {

using namespace test;

const std::string loaded_fakes = "--load " + fake_path("libfake_open_mpi.so") + " --module ";

// It would say why it stays away from the fakes.
const std::string no_transport = "UCX_CUDA_NC_TRANSPORT=n";

TEST(module, redirects_what_is_loaded_without_a_preload) {
    expect_served(probe(no_transport, loaded_fakes + module), served("engine", "original"),
                  liar_warning);
}

// What no derived datatype needs costs contiguous messages nothing.
TEST(module, takes_sends_only_where_the_transport_or_lists_on_gpus_may_be) {
    auto sends = [](const std::string &environment) {
        const std::string all = probe(environment, loaded_fakes + module + " --sends").output;
        return all.substr(std::min(all.rfind("sends"), all.size()));
    };
    EXPECT_EQ(sends(no_transport + " UCX_CUDA_NC_IOV=n"), "sends ucp\n");
    EXPECT_EQ(sends(no_transport + " UCX_CUDA_NC_GPU=none"), "sends ucp\n");
    EXPECT_EQ(sends(no_transport + " UCX_CUDA_NC_GPU=sim"), "sends hook\n");
    EXPECT_EQ(sends("UCX_CUDA_NC_TRANSPORT=auto UCX_CUDA_NC_GPU=none"), "sends ucp\n");
    EXPECT_EQ(sends("UCX_CUDA_NC_TRANSPORT=y"), "sends hook\n");
    EXPECT_EQ(sends("UCX_CUDA_NC_TRANSPORT=auto UCX_CUDA_NC_GPU=sim"), "sends hook\n");
}

TEST(module, beside_the_shim_is_harmless) {
    const std::string both = no_transport + " " + preload;
    expect_served(probe(both, loaded_fakes + module), served("engine", "original"), liar_warning);
    expect_served(probe(both, "--module " + module), served("engine", "original"), liar_warning);
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
    expect_no_transport(
        "FAKE_UCP_MINOR=24",
        "stays away from UCX 1.24.0, the job runs without it: it serves UCX 1.19 to 1.23");
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
