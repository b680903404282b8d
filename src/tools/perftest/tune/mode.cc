#include "tools/perftest/tune/mode.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>

#include "tools/perftest/support/progress.hpp"
#include "tools/perftest/support/results.hpp"
#include "tools/perftest/support/run_error.hpp"
#include "tools/perftest/tune/tune.hpp"
#include "tools/perftest/tune/check.hpp"
#include "tools/perftest/tune/rules.hpp"
#include "ucs/base/settings.hpp"
#include "ucs/model/choices.hpp"
#include "ucs/model/profile_file.hpp"

namespace cuda_nc::tools {
namespace {

struct tune_mode_options {
    std::string output, set, json;
    double seconds = 50, require = 0;
    bool dry_run = false, check = false, verbose = false;
};

double gb_per_s(double us_per_mib) {
    return us_per_mib > 0 ? (1 << 20) / us_per_mib / 1e3 : 0;
}

// The step on a terminal; every tenth of the way elsewhere.
class tune_progress {
  public:
    void show(double done, const std::string &step) {
        const std::string text = fmt::format("{:>3.0f}%  {}", done * 100, step);
        const int tenth = static_cast<int>(done * 10);
        if (line_.is_terminal()) {
            line_.show(text);
        } else if (tenth != tenth_) {
            fmt::print(stderr, "{}\n", text);
        }
        tenth_ = tenth;
    }
    void clear() { line_.clear(); }

  private:
    progress_line line_;
    int tenth_ = -1;
};

void print_moves(const model::moving &by) {
    fmt::print("  {:<10} {:>6} {:>8} {:>12} {:>12}   GB/s in cache, beyond\n", "", "align", "block",
               "pack", "unpack");
    for (const model::figure &one : by.figures) {
        if (one.dir != gpu::direction::pack) {
            continue;
        }
        std::string other = "-";
        for (const model::figure &two : by.figures) {
            if (two.dir == gpu::direction::unpack && two.what == one.what &&
                two.align_log2 == one.align_log2 && two.block == one.block) {
                other = fmt::format("{:.4g}, {:.4g}", gb_per_s(two.near), gb_per_s(two.far));
            }
        }
        fmt::print("  {:<10} {:>6} {:>8} {:>12} {:>12}\n", model::name_of(one.what),
                   1 << one.align_log2, one.block,
                   fmt::format("{:.4g}, {:.4g}", gb_per_s(one.near), gb_per_s(one.far)), other);
    }
}

void print_profile(const model::machine_profile &p) {
    for (const model::gpu_profile &one : p.gpus) {
        fmt::print("{} {}: a call {:.1f} us, to completion {:.1f}, a copy {:.1f}\n", one.name,
                   one.bus_id, one.moves.call, one.completion, one.copy_completion);
        fmt::print(
            "  GB/s: copies {:.4g} in cache, {:.4g} beyond; to the host {:.4g}, from it "
            "{:.4g}\n",
            gb_per_s(one.moves.near_copy), gb_per_s(one.moves.far_copy), gb_per_s(one.down),
            gb_per_s(one.up));
        print_moves(one.moves);
        fmt::print("  kernel rules: {}\n", text_of(one.rules));
        const model::choices by = model::make_choices(one, 1);
        fmt::print("  chosen: fragments of {} KiB\n", by.fragment_size >> 10);
    }
    for (const model::link_profile &one : p.links) {
        fmt::print("{} to {}: {:.4g} GB/s\n", one.from, one.to, gb_per_s(one.copy));
    }
    fmt::print("host, one thread: GB/s: copies {:.4g} in cache, {:.4g} beyond\n",
               gb_per_s(p.host_moves.near_copy), gb_per_s(p.host_moves.far_copy));
    print_moves(p.host_moves);
}

model::machine_profile measure(const tune_mode_options &o) {
    tune_progress line;
    tune_options how;
    how.seconds = o.seconds;
    how.progress = [&](double done, const std::string &step) { line.show(done, step); };
    how.found = [&](const std::string &what) {
        line.clear();
        fmt::print("# {}\n", what);
        std::fflush(stdout);
    };
    how.tried = o.verbose ? how.found : nullptr;
    const auto begin = std::chrono::steady_clock::now();
    unsigned left_out = 0;
    model::machine_profile made = measure_machine(how, &left_out);
    line.clear();
    fmt::print("# measured in {:.1f} s{}\n",
               std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(),
               left_out != 0
                   ? fmt::format("; {} steps left out for want of time or memory", left_out)
                   : "");
    const int gpus = gpu::platform::instance().num_devices();
    if (made.gpus.size() < static_cast<size_t>(std::max(0, gpus))) {
        fmt::print(stderr, "nc_perftest: only {} of {} GPUs could be measured\n", made.gpus.size(),
                   gpus);
    }
    return made;
}

// The layouts of --check; throws run_error.
const std::vector<named_layout> &checked_set(const std::string &name) {
    const std::vector<named_layout> *layouts = find_set(name);
    if (layouts == nullptr || name == "messages") {
        throw run_error(fmt::format("there is no set \"{}\" of layouts with sizes", name));
    }
    return *layouts;
}

int run_check(const tune_mode_options &o, const model::machine_profile &profile) {
    const bool on_gpu = !profile.gpus.empty();
    // A real GPU's bars are those of the standard set; others take minutes for it.
    const std::string name = !o.set.empty()                        ? o.set
                             : on_gpu && profile.backend == "cuda" ? "standard"
                                                                   : "small";
    const std::vector<named_layout> &layouts = checked_set(name);
    fmt::print("# {} set, {}\n", name, on_gpu ? profile.gpus[0].name : "host");
    const std::vector<checked_row> rows = check_predictions(profile, on_gpu, layouts);
    fmt::print("# predictions: {}\n", share_of(rows));
    if (!o.json.empty()) {
        save(o.json, to_json(rows).dump(1) + "\n");
    }
    if (!enough_near(rows, o.require)) {
        fmt::print(stderr, "nc_perftest: fewer than {:g}% of the predictions are within 25%\n",
                   o.require);
        return 1;
    }
    return 0;
}

int run_tune(const tune_mode_options &o) {
    const gpu::platform &platform = gpu::platform::instance();
    const std::string path = !o.output.empty() ? o.output : model::profile_path(platform.name());
    if (path.empty() && !o.dry_run) {
        throw run_error("there is no place for the profile: give --output FILE or --dry-run");
    }
    if (o.check && !o.set.empty()) {
        checked_set(o.set);
    }
    if (o.check) {
        check_writable(o.json);
    }
    // The user's cache directory is made where it is not there; others are the user's to make.
    if (!o.dry_run && (!o.output.empty() || config().profile != "auto")) {
        check_writable(path);
    }
    const model::machine_profile made = measure(o);
    print_profile(made);
    if (o.dry_run) {
        fmt::print("# nothing was written (--dry-run)\n");
    } else {
        std::string why;
        if (!model::write_profile(path, made, &why)) {
            throw run_error(fmt::format("{} could not be written: {}", path, why));
        }
        fmt::print("# written: {}\n", path);
    }
    return o.check ? run_check(o, made) : 0;
}

}  // namespace

std::function<int()> add_tune_options(CLI::App *mode, const std::string &) {
    auto o = std::make_shared<tune_mode_options>();
    mode->add_option("-o,--output", o->output,
                     "File to write (default: UCX_CUDA_NC_PROFILE, or the user's for this host)");
    mode->add_flag("--dry-run", o->dry_run, "Measure and print, but write nothing");
    mode->add_option("--seconds", o->seconds,
                     "Most seconds to measure; steps that do not fit are left out")
        ->check(CLI::Range(0.5, 3600.0))
        ->capture_default_str();
    mode->add_flag("--verbose", o->verbose,
                   "Print the effect of each value tried for the kernel rules");
    CLI::Option *check = mode->add_flag(
        "--check", o->check, "Afterwards compare predictions with measurements, layout by layout");
    mode->add_option("--require", o->require,
                     "Status 1 where --check finds less than this percentage within 25%")
        ->check(CLI::Range(0.0, 100.0))
        ->needs(check)
        ->capture_default_str();
    mode->add_option("-s,--set", o->set,
                     "Layouts of --check: standard (the default on a GPU), applications, small");
    mode->add_option("--json", o->json, "Write what --check found to this file");
    return [o] { return run_tune(*o); };
}

}  // namespace cuda_nc::tools
