// nc_info: what is installed here, what was found, what was chosen and why.
#include <CLI/CLI.hpp>
#include <fmt/core.h>

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
#include "ucs/base/transport_choice.hpp"
#include "ucs/exec/host/host_executor.hpp"
#include "ucs/gpu/device.hpp"
#include "ucs/layout/layout.hpp"
#include "ucs/layout/layout_spec.hpp"

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

void print_transport() {
    const transport_choice chosen = choose_transport();
    fmt::print("{:<12}{}: {}\n", "transport", chosen.is_on ? "offered to UCX" : "not offered",
               chosen.why);
    if (!chosen.is_on) {
        return;
    }
    const settings &all = config();
    fmt::print("{:<12}in front of UCX's {}\n", "", all.carriers);
    fmt::print("{:<12}messages of derived datatypes: {}\n", "",
               all.direct ? "from GPU to GPU" : "through host memory (UCX_CUDA_NC_DIRECT=n)");
    fmt::print("{:<12}puts and gets: {}\n", "",
               all.one_sided ? "gathered into lists" : "UCX's own (UCX_CUDA_NC_ONE_SIDED=n)");
}

void print_changed_settings() {
    const char *title = "settings";
    for (const setting_description &setting : describe_settings()) {
        if (setting.value != setting.default_value) {
            fmt::print("{:<12}UCX_CUDA_NC_{}={}  (default {})\n", title, setting.name,
                       setting.value, setting.default_value);
            title = "";
        }
    }
    if (*title != '\0') {
        fmt::print("{:<12}all as by default\n", title);
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

void print_overview() {
    fmt::print("{:<12}{}\n", "ucx-cuda-nc", cuda_nc_version());
    print_library("UCX", tools::find_ucx());
    print_library("MPI", tools::find_mpi());
    print_gpus();
    print_transport();
    fmt::print("{:<12}{}\n", "host engine", exec::host_simd_name());
    print_changed_settings();
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
