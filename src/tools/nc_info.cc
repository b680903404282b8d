// nc_info: what is installed here, what was found, what was chosen and why.
#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "cuda_nc/cuda_nc.h"
#include "tools/explain.hpp"
#include "tools/found_libraries.hpp"
#include "tools/perftest/layouts/catalogue.hpp"
#include "tools/perftest/support/program.hpp"
#include "tools/perftest/support/run_error.hpp"
#include "tools/perftest/layouts/sizes.hpp"
#include "ucs/base/settings.hpp"
#include "ucs/exec/host/host_executor.hpp"
#include "ucs/gpu/device.hpp"
#include "ucs/layout/layout.hpp"
#include "ucs/layout/layout_spec.hpp"
#include "uct/cuda_nc/choice.hpp"

namespace {

using namespace cuda_nc;

void print_library(const char *name, const tools::found_library &library) {
    if (library.found) {
        fmt::print("{:<12}{} at {}\n{:<12}{}\n", name, library.version, library.path, "",
                   library.remark);
    } else {
        fmt::print("{:<12}not found: {}\n", name, library.remark);
    }
}

void print_gpus() {
    gpu::platform &platform = gpu::platform::instance();
    fmt::print("{:<12}backend {}: {}\n", "GPU", platform.name(), platform.why());
    for (int ordinal = 0; ordinal < platform.num_devices(); ++ordinal) {
        gpu::device *device = platform.get_device(ordinal);
        if (device == nullptr) {
            fmt::print("{:<12}{}: not usable\n", "", ordinal);
            continue;
        }
        const gpu::device_properties &has = device->properties();
        fmt::print("{:<12}{}: {}, {}, compute capability {}.{}, {} multiprocessors, {} MiB\n", "",
                   ordinal, has.name, has.bus_id, has.compute_major, has.compute_minor, has.num_sms,
                   has.memory_size >> 20);
    }
}

void print_settings() {
    config();  // says what cannot be read
    for (const setting_description &setting : describe_settings()) {
        fmt::print("UCX_CUDA_NC_{}={}{}\n    {}\n", setting.name, setting.value,
                   setting.value == setting.default_value
                       ? ""
                       : fmt::format("  (default {})", setting.default_value),
                   setting.help);
    }
}

// docs/manual/settings.md: the defaults, whatever the environment says.
void print_settings_as_markdown() {
    fmt::print(
        "<!-- Made by `nc_info --settings --markdown` from src/ucs/base/settings_table.cc. -->\n"
        "# Settings\n"
        "Environment variables with the prefix `UCX_CUDA_NC_`, read once in a process.\n"
        "`nc_info --settings` shows the values in force; `ucx_info -c -f` lists them with UCX's "
        "own.\n"
        "A value that cannot be read is reported once, and the default is used.\n"
        "Sizes are in bytes and take K, M, G and T (powers of 1024), or `inf`.\n");
    std::string group;
    for (const setting_description &setting : describe_settings()) {
        if (group != setting.group) {
            group = setting.group;
            fmt::print("\n## {}\n| name | default | type | what it does |\n|---|---|---|---|\n",
                       group);
        }
        fmt::print("| `{}` | {}{}| {} | {} |\n", setting.name, setting.default_value,
                   *setting.default_value == '\0' ? "" : " ", setting.type, setting.help);
    }
}

void print_layout(const std::string &name_or_text) {
    const std::optional<tools::named_layout> named = tools::find_layout(name_or_text);
    if (named && tools::is_family(named->text)) {
        throw tools::run_error(
            fmt::format("{} is a layout of any size: put a number for *", named->text));
    }
    const layout_ref what = tools::layout_of(named ? named->text : name_or_text);
    fmt::print("{}\n", what->describe());
    fmt::print("blocks       {}\n", what->total_blocks());
    fmt::print("packed size  {} B\n", what->packed_size());
    fmt::print("bounds       [{}, {}) B\n", what->lower_bound(), what->upper_bound());
    fmt::print("tables       {} B\n", what->table_bytes());
    fmt::print("hash         {:016x}{:016x}\n", what->hash().high, what->hash().low);
}

std::string joined(const std::vector<std::string> &names) {
    return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

void print_transport(const tools::found_library &ucx, const tools::found_loader &loader) {
    const uct::transport_choice choice = uct::choose_transport();
    const uct::transport_in_ucx in_ucx =
        ucx.found ? uct::find_transport(ucx.address) : uct::transport_in_ucx{"there is no UCX", {}};
    std::vector<std::string> carriers, missing;
    for (const std::string &name : choice.carriers) {
        const auto &all = in_ucx.transports;
        (std::find(all.begin(), all.end(), name) != all.end() ? carriers : missing).push_back(name);
    }
    std::string off = !choice.on                ? choice.why
                      : !in_ucx.refusal.empty() ? in_ucx.refusal
                      : !loader.found           ? "ucx-cuda-nc is not loaded"
                      : carriers.empty()        ? "UCX has none of its carriers"
                                                : "";
    fmt::print("{:<12}{}\n", "transport",
               off.empty() ? "cuda_nc is on: " + choice.why : "cuda_nc is off: " + off);
    if (!in_ucx.transports.empty()) {
        fmt::print("{:<12}{}{}\n", "carriers", joined(carriers),
                   missing.empty() ? "" : "; UCX has no " + joined(missing));
    }
}

void print_changed_settings() {
    config();  // says what cannot be read
    std::vector<std::string> changed;
    for (const setting_description &setting : describe_settings()) {
        if (setting.value != setting.default_value) {
            changed.push_back(
                fmt::format("UCX_CUDA_NC_{}={} (default {})", setting.name, setting.value,
                            *setting.default_value != '\0' ? setting.default_value : "none"));
        }
    }
    fmt::print("{:<12}{}\n", "settings",
               changed.empty() ? "all as by default"
                               : fmt::format("{}", fmt::join(changed, "\n            ")));
}

// What a job that is started from this shell would do, and why.
void print_overview() {
    const tools::found_library mpi = tools::find_mpi(), ucx = tools::find_ucx();
    const tools::found_loader loader = tools::find_loader(ucx);
    fmt::print("{:<12}{}\n", "ucx-cuda-nc", cuda_nc_version());
    print_library("UCX", ucx);
    print_library("MPI", mpi);
    print_gpus();
    fmt::print("{:<12}{}{}\n", "loaded", loader.found ? "by " : "no: ", loader.text);
    fmt::print("{:<12}{}\n", "datatypes",
               !config().enable ? "left to the MPI library: UCX_CUDA_NC_ENABLE=n"
               : loader.found   ? "served"
                                : "left to the MPI library: ucx-cuda-nc is not loaded");
    print_transport(ucx, loader);
    print_changed_settings();
    fmt::print("{:<12}{}\n", "host engine", exec::host_simd_name());
}

int run(int argc, char **argv) {
    CLI::App app("Shows what ucx-cuda-nc found on this machine, and what it chose.", "nc_info");
    bool settings = false, markdown = false;
    std::string layout;
    std::vector<std::string> explained;
    app.set_version_flag("--version", cuda_nc_version());
    CLI::Option *for_settings = app.add_flag(
        "--settings", settings, "Print all settings: value in force, default, meaning");
    app.add_flag("--markdown", markdown, "With --settings: names, defaults, types as Markdown")
        ->needs(for_settings);
    CLI::Option *for_layout = app.add_option(
        "--layout", layout,
        "Describe a layout: a name (nc_perftest pack --list) or a text as below, e.g. "
        "vector:1024,8,16");
    CLI::Option *for_explain =
        app.add_option(
               "--explain", explained,
               "LAYOUT [SIZE]: print what would be chosen for a message of this layout and size, "
               "and how long it should take, e.g. vector:*,8,16 1M (* is a count that makes it "
               "as large as SIZE)")
            ->expected(1, 2);
    for_layout->excludes(for_explain)->excludes(for_settings);
    for_explain->excludes(for_settings);
    app.footer(layout_forms());
    CLI11_PARSE(app, argc, argv);
    if (!explained.empty()) {
        tools::explain(explained);
        return 0;
    }
    if (for_layout->count() != 0) {
        print_layout(layout);
        return 0;
    }
    if (settings) {
        markdown ? print_settings_as_markdown() : print_settings();
        return 0;
    }
    print_overview();
    return 0;
}

}  // namespace

int main(int argc, char **argv) {
    return tools::run_program("nc_info", [&] { return run(argc, argv); });
}
