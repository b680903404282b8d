#include "tools/perftest/message/options.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "tools/perftest/layouts/catalogue.hpp"
#include "tools/perftest/support/run_error.hpp"
#include "tools/perftest/layouts/sizes.hpp"
#include "ucs/gpu/device.hpp"
#include "ucs/layout/layout_spec.hpp"

namespace cuda_nc::tools {
namespace {

// The others have layouts of their own.
bool takes_layouts(const std::string &test) {
    return test.rfind("halo", 0) != 0;
}

std::vector<layout_case> chosen_cases(const message_options &o) {
    std::vector<std::string> layouts = o.layouts;
    if (layouts.empty()) {
        const std::vector<named_layout> *set = find_set(o.set);
        if (set == nullptr) {
            throw run_error(fmt::format("there is no set \"{}\"; there are: {}", o.set,
                                        CLI::detail::join(set_names(), ", ")));
        }
        for (const named_layout &one : *set) {
            layouts.push_back(one.name);
        }
    }
    std::vector<std::string> notes;
    std::vector<layout_case> cases = make_cases(layouts, parse_sizes(o.sizes), o.misalign, &notes);
    for (const std::string &note : notes) {
        fmt::print("# {}\n", note);
    }
    if (cases.empty()) {
        throw run_error("nothing to measure: no layout has messages of these sizes");
    }
    return cases;
}

}  // namespace

void add_message_options(CLI::App *mode, message_options *o,
                         const std::vector<std::string> &tests) {
    message_plan &plan = o->plan;
    mode->add_option("-t,--test", o->tests,
                     fmt::format("Tests, with commas: {}", CLI::detail::join(tests, ", ")))
        ->delimiter(',')
        ->check(CLI::IsMember(tests))
        ->capture_default_str();
    mode->add_flag("--bidir", o->bidir, "Also run the test bidir: both directions at once");
    mode->add_option("-l,--layout", o->layouts,
                     "A layout by name (see --list) or text; * stands for a count that makes it as "
                     "large as --sizes says: vector:*,8,16 (forms: below); repeatable");
    mode->add_option("-s,--set", o->set, "Set of layouts to measure where no --layout is given")
        ->capture_default_str();
    mode->add_option("--sizes", o->sizes,
                     "Bytes of a message: 64K, 8,1M, 8:64M (by factors of 2), 8:64M:4 (of 4)")
        ->capture_default_str();
    mode->add_option("-m,--memory", o->memory,
                     "Memory of each rank in turn, with commas: host, gpu, managed, pool "
                     "(cudaMallocAsync), shared-pool (one that allows file descriptors), virtual "
                     "(cuMemCreate), or auto")
        ->delimiter(',')
        ->check(CLI::IsMember({"auto", "host", "gpu", "managed", "pool", "shared-pool", "virtual"}))
        ->capture_default_str();
    mode->add_option("--window", plan.window, "Messages in flight in bandwidth and bidir")
        ->check(CLI::Range(1u, 100000u))
        ->capture_default_str();
    mode->add_option(
            "--buffer-size", plan.buffer_size,
            "Most bytes for the messages of a window; larger messages get a smaller window")
        ->transform(CLI::AsSizeValue(false))
        ->capture_default_str();
    mode->add_option("-n,--iterations", plan.iterations, "Most samples of each row")
        ->check(CLI::Range(1u, 1000000u))
        ->capture_default_str();
    mode->add_option("--seconds", plan.seconds,
                     "Seconds for the samples of a row; at least 5 are taken")
        ->check(CLI::Range(0.0, 3600.0))
        ->capture_default_str();
    mode->add_option("-w,--warmup", plan.warm_up, "Exchanges before the first sample")
        ->check(CLI::Range(0u, 1000000u))
        ->capture_default_str();
    mode->add_option("--timeout", plan.timeout, "Most seconds to wait for another process")
        ->check(CLI::Range(0.1, 86400.0))
        ->capture_default_str();
    mode->add_option("--misalign", o->misalign, "Bytes by which laid-out buffers are misaligned")
        ->check(CLI::Range(0, 255));
    mode->add_flag("--no-verify", o->no_verify, "Do not check the received bytes");
    mode->add_flag("--list", o->list, "Print the names of all layouts");
    mode->add_option("--json", o->json, "Write the results to this file as JSON");
    mode->add_option("--csv", o->csv, "Write the results to this file as CSV");
    mode->add_option("--inject", plan.inject, "Spoil what was received: byte or gap")
        ->check(CLI::IsMember({"byte", "gap"}))
        ->group("");
    mode->footer(layout_forms());
}

message_plan make_plan(const message_options &o) {
    check_writable(o.json);
    check_writable(o.csv);
    message_plan plan = o.plan;
    plan.tests = o.tests;
    if (o.bidir) {
        plan.tests.push_back("bidir");
    }
    if (std::any_of(plan.tests.begin(), plan.tests.end(), takes_layouts)) {
        plan.cases = chosen_cases(o);
    }
    plan.verify = !o.no_verify;
    plan.memory = o.memory;
    plan.gpus = o.gpus;
    return plan;
}

void choose_memory(message_plan *plan) {
    for (std::string &one : plan->memory) {
        if (one == "auto") {
            one = gpu::platform::instance().num_devices() != 0 ? "gpu" : "host";
        }
    }
}

void save_results(const message_options &o, const message_heading &about,
                  const nlohmann::json &rows) {
    if (!o.json.empty()) {
        save(o.json, file_of(about, rows));
    }
    if (!o.csv.empty()) {
        save(o.csv, message_csv(rows));
    }
}

}  // namespace cuda_nc::tools
