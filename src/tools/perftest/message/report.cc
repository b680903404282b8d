#include "tools/perftest/message/report.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstring>

#include <fmt/core.h>

namespace cuda_nc::tools {
namespace {

constexpr double us = 1e6;

double gigabytes_a_second(const message_row &row, const summary &time) {
    return time.median > 0 ? static_cast<double>(row.bytes) * row.directions / time.median / 1e9
                           : 0;
}

std::string short_size(uint64_t bytes) {
    const char *const units[] = {"", "K", "M", "G"};
    unsigned unit = 0;
    while (unit < 3 && bytes >= 1024 && bytes % 1024 == 0) {
        bytes /= 1024;
        ++unit;
    }
    return fmt::format("{}{}", bytes, units[unit]);
}

}  // namespace

std::map<std::string, std::string> message_environment() {
    std::map<std::string, std::string> found;
    for (char **one = environ; *one != nullptr; ++one) {
        const char *equals = std::strchr(*one, '=');
        const std::string name(*one, equals != nullptr ? static_cast<size_t>(equals - *one) : 0);
        if (name.rfind("UCX_", 0) == 0 || name.rfind("OMPI_MCA_", 0) == 0 || name == "LD_PRELOAD") {
            found[name] = equals + 1;
        }
    }
    return found;
}

nlohmann::json to_json(const message_row &row) {
    nlohmann::json one = {{"test", row.test},         {"layout", row.layout},
                          {"text", row.text},         {"transport", row.transport},
                          {"bytes", row.bytes},       {"blocks", row.blocks},
                          {"window", row.window},     {"directions", row.directions},
                          {"misalign", row.misalign}, {"verified", row.verified}};
    for (const auto &[name, value] : row.more) {
        one[name] = value;
    }
    if (!row.error.empty()) {
        one["error"] = row.error;
        return one;
    }
    one["time"] = times_of(row.time);
    one["contiguous"] = times_of(row.contiguous);
    one["ratio"] = row.ratio();
    one["first_use_us"] = row.first_use * us;
    one["gb_per_s"] = gigabytes_a_second(row, row.time);
    one["contiguous_gb_per_s"] = gigabytes_a_second(row, row.contiguous);
    return one;
}

void print_message_heading(const std::string &transport, const std::string &transports,
                           size_t layout_width) {
    if (!transport.empty()) {
        fmt::print("# {} the transport cuda_nc{}{}\n", transport == "y" ? "with" : "without",
                   transports.empty() ? "" : ": ", transports);
    }
    fmt::print("{:<11} {:<{}} {:>9} {:>4} {:>9} {:>9} {:>9} {:>9} {:>8} {:>9} {:>8} {:>6}\n",
               "test", "layout", layout_width, "bytes", "win", "first us", "min us", "median",
               "p95", "GB/s", "contig us", "GB/s", "ratio");
    std::fflush(stdout);
}

void print_message_row(const message_row &row, size_t layout_width) {
    if (!row.error.empty()) {
        fmt::print("{:<11} {:<{}} {:>9} {}\n", row.test, row.layout, layout_width,
                   short_size(row.bytes), row.error);
        std::fflush(stdout);
        return;
    }
    fmt::print(
        "{:<11} {:<{}} {:>9} {:>4} {:>9.2f} {:>9.2f} {:>9.2f} {:>9.2f} {:>8.2f} {:>9.2f} "
        "{:>8.2f} {:>6.2f}{}{}\n",
        row.test, row.layout, layout_width, short_size(row.bytes), row.window, row.first_use * us,
        row.time.least * us, row.time.median * us, row.time.p95 * us,
        gigabytes_a_second(row, row.time), row.contiguous.median * us,
        gigabytes_a_second(row, row.contiguous), row.ratio(), row.note.empty() ? "" : "  ",
        row.note);
    std::fflush(stdout);
}

std::string file_of(const message_heading &about, const nlohmann::json &rows) {
    const nlohmann::json file = {{"tool", "nc_perftest"},  {"version", about.version},
                                 {"mode", about.mode},     {"command", about.command},
                                 {"date", about.date},     {"library", about.software},
                                 {"memory", about.memory}, {"device", about.device},
                                 {"rows", rows},           {"environment", about.environment}};
    return file.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string message_csv(const nlohmann::json &rows) {
    std::string text =
        "test,layout,text,transport,bytes,blocks,window,directions,misalign,first_use_us,min_us,"
        "median_us,p95_us,gb_per_s,contiguous_median_us,ratio,verified,error\n";
    auto number = [](const nlohmann::json &of, const char *name) {
        return of.contains(name) ? fmt::format("{:.4f}", of[name].get<double>()) : std::string();
    };
    for (const nlohmann::json &row : rows) {
        const nlohmann::json time = row.value("time", nlohmann::json::object()),
                             contiguous = row.value("contiguous", nlohmann::json::object());
        text += fmt::format(
            "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n",
            quoted(row.value("test", "")), quoted(row.value("layout", "")),
            quoted(row.value("text", "")), row.value("transport", ""), row.value("bytes", 0ul),
            row.value("blocks", 0ul), row.value("window", 1u), row.value("directions", 1u),
            row.value("misalign", 0ul), number(row, "first_use_us"), number(time, "min_us"),
            number(time, "median_us"), number(time, "p95_us"), number(row, "gb_per_s"),
            number(contiguous, "median_us"), number(row, "ratio"),
            row.value("verified", false) ? "yes" : "no", quoted(row.value("error", "")));
    }
    return text;
}

}  // namespace cuda_nc::tools
