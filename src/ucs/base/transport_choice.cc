#include "ucs/base/transport_choice.hpp"

#include <unistd.h>

#include "ucs/base/settings.hpp"

namespace cuda_nc {
namespace {

constexpr char our_name[] = "cuda_nc";

// Whether UCX, told to use `list` (the value of UCX_TLS), would use a transport of our name.
bool allows_us(const std::string &list) {
    if (list.empty() || list == "all") {
        return true;
    }
    const bool negates = list[0] == '^';
    const std::string items = "," + list.substr(negates ? 1 : 0) + ",";
    const bool names_us = items.find(std::string(",") + our_name + ",") != std::string::npos;
    return names_us != negates;
}

// The control devices of NVIDIA's drivers: of Linux, and of Linux under Windows.
bool has_gpu_driver() noexcept {
    static const bool has =
        access("/dev/nvidiactl", F_OK) == 0 || access("/dev/dxg", F_OK) == 0;
    return has;
}

}  // namespace

transport_choice choose_transport() {
    const settings &all = config();
    if (!all.enable) {
        return {false, "UCX_CUDA_NC_ENABLE=n"};
    }
    if (all.transport != "auto") {
        return {all.transport == "y", "UCX_CUDA_NC_TRANSPORT=" + all.transport};
    }
    if (!allows_us(all.ucx_transports)) {
        return {false, "UCX_TLS=" + all.ucx_transports + " leaves it out"};
    }
    if (all.ucx_transports_name_us) {
        return {true, "UCX_TLS=" + all.ucx_transports + " names it"};
    }
    if (all.gpu == "none") {
        return {false, "UCX_CUDA_NC_GPU=none"};
    }
    if (all.gpu == "sim") {
        return {true, "UCX_CUDA_NC_GPU=sim: the process has a simulated GPU"};
    }
    if (all.hides_gpus) {
        return {false, "CUDA_VISIBLE_DEVICES hides all GPUs"};
    }
    if (!has_gpu_driver()) {
        return {false, "this machine has no NVIDIA driver"};
    }
    return {true, "the process has a GPU"};
}

}  // namespace cuda_nc
