#include "tools/perftest/compare/mode.hpp"

#include <fmt/core.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <system_error>

#include "tools/perftest/compare/compare.hpp"
#include "tools/perftest/support/run_error.hpp"

namespace cuda_nc::tools {
namespace {

struct compare_choice {
    std::string a, b;
    double percent = 5;
    bool all = false;
    compare_options options;
};

// Of the program, for scripts.
enum exit_status { nothing_slower = 0, something_slower = 1, no_comparison = 2 };

nlohmann::json read(const std::string &path) {
    std::ifstream file(path);
    if (!file) {
        throw run_error(fmt::format("{} cannot be read: {}", path, std::strerror(errno)));
    }
    std::ostringstream text;
    if (file.peek() != EOF) {
        text << file.rdbuf();
    }
    if (file.bad() || text.bad()) {
        throw run_error(fmt::format("{} cannot be read: {}", path, std::strerror(errno)));
    }
    nlohmann::json all = nlohmann::json::parse(text.str(), nullptr, false);
    if (all.is_discarded()) {
        throw run_error(fmt::format("{} is not JSON", path));
    }
    return all;
}

void print(const compared_row &row) {
    if (row.ratio == 0) {
        fmt::print("{:<52} {:>10} {:>10} {:>7} {:>13} {}{}{}\n", row.key, "-", "-", "-", "-",
                   name_of(row.is), row.remark.empty() ? "" : ": ", row.remark);
        return;
    }
    fmt::print("{:<52} {:>10.2f} {:>10.2f} {:>7.3f} {:>6.3f}-{:<6.3f} {}{}\n", row.key, row.a_us,
               row.b_us, row.ratio, row.low, row.high, name_of(row.is),
               row.remark.empty() ? "" : fmt::format(" ({})", row.remark));
}

void print_origin(const char *name, const nlohmann::json &file) {
    auto text = [&](const char *of) {
        return file.contains(of) && file[of].is_string() ? file[of].get<std::string>() : "?";
    };
    fmt::print("# {}: {} {}, {}, {}\n", name, text("mode"), text("version"), text("device"),
               text("date"));
}

int run_compare(compare_choice c) {
    c.options.threshold = c.percent / 100;
    try {
        const nlohmann::json a = read(c.a), b = read(c.b);
        const std::vector<compared_row> rows = compare_results(a, b, c.options);
        print_origin("A", a);
        print_origin("B", b);
        if (a.value("device", nlohmann::json()) != b.value("device", nlohmann::json())) {
            fmt::print("# the files are of different devices\n");
        }
        fmt::print("{:<52} {:>10} {:>10} {:>7} {:>13} B is\n", "", "A us", "B us", "B / A",
                   "within");
        std::map<verdict, int> counts;
        for (const compared_row &row : rows) {
            ++counts[row.is];
            if (c.all || row.is != verdict::same) {
                print(row);
            }
        }
        fmt::print("# {} same, {} faster, {} slower, {} unclear, {} missing, {} added\n",
                   counts[verdict::same], counts[verdict::faster], counts[verdict::slower],
                   counts[verdict::unclear], counts[verdict::missing], counts[verdict::added]);
        return counts[verdict::slower] + counts[verdict::missing] == 0 ? nothing_slower
                                                                       : something_slower;
    } catch (const std::system_error &) {
        throw;  // the output: the program's matter
    } catch (const std::exception &failure) {
        fmt::print(stderr, "nc_perftest: {}\n", failure.what());
        return no_comparison;
    }
}

}  // namespace

std::function<int()> add_compare_options(CLI::App *mode, const std::string &) {
    auto c = std::make_shared<compare_choice>();
    mode->add_option("A", c->a, "The first file, e.g. of an earlier release")->required();
    mode->add_option("B", c->b, "The second file")->required();
    mode->add_option("--threshold", c->percent, "Ignore differences up to this many per cent")
        ->check(CLI::Range(0.0, 1000.0))
        ->capture_default_str();
    mode->add_option("--field", c->options.field,
                     "What to compare: time, its reference (contiguous, plain_copy), or the time "
                     "relative to its reference, for machines of different speed")
        ->check(CLI::IsMember({"time", "contiguous", "plain_copy", "relative"}))
        ->capture_default_str();
    mode->add_flag("--any-transport", c->options.any_transport,
                   "Compare rows with the transport cuda_nc to rows without it");
    mode->add_flag("-a,--all", c->all, "Print also the rows that are the same");
    return [c] { return run_compare(*c); };
}

}  // namespace cuda_nc::tools
