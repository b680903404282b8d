#include "tools/perftest/pack/report.hpp"

#include <cstdio>

#include <fmt/core.h>

namespace cuda_nc::tools {
namespace {

constexpr double us = 1e6;

// `none` where there is no such number.
std::string or_none(double number, unsigned digits, const char *none) {
    return number == 0 ? none : fmt::format("{:.{}f}", number, digits);
}

// Small ones to the byte.
std::string megabytes(uint64_t bytes) {
    return fmt::format("{:.{}f}", static_cast<double>(bytes) / 1e6, bytes < 100000 ? 6 : 2);
}

}  // namespace

void print_heading(const result_file &about) {
    fmt::print("# nc_perftest {} {}, {}{}, memory {}, {}\n", about.version, about.mode,
               about.device,
               about.max_sms == 0 ? "" : fmt::format(", at most {} multiprocessors", about.max_sms),
               about.memory, about.date);
    fmt::print(
        "# {} samples of {} calls, {} to warm up; D: a plain copy of the same bytes, S: one that "
        "touches as much memory\n",
        about.iterations, about.batch, about.warm_up);
    fmt::print(
        "{:<24} {:<6} {:>8} {:>9} {:>9} {:>9} {:>9} {:>9} {:>8} {:>6} {:>6} {:>6} {:>9} {:>9}\n",
        "layout", "", "MB", "min us", "median", "p95", "D us", "S us", "GB/s", "in D", "in S",
        "bar", "first us", "list us");
}

void print_row(const result_row &row) {
    if (!row.error.empty()) {
        fmt::print("{:<24} {:<6} {}\n", row.layout, row.direction, row.error);
        return;
    }
    const double rate =
        row.time.median > 0 ? static_cast<double>(row.bytes) / row.time.median / 1e9 : 0;
    fmt::print(
        "{:<24} {:<6} {:>8} {:>9.1f} {:>9.1f} {:>9.1f} {:>9.1f} {:>9} {:>8.1f} {:>6.2f} {:>6} "
        "{:>6} {:>9.1f} {:>9}{}\n",
        row.layout, row.direction, megabytes(row.bytes), row.time.least * us, row.time.median * us,
        row.time.p95 * us, row.plain_copy.median * us, or_none(row.sector_copy.median * us, 1, "-"),
        rate, row.ratio(), or_none(row.sector_ratio(), 2, "-"), or_none(row.bar, 2, "-"),
        row.first_use * us, or_none(row.listing * us, 1, "-"), row.within_bar() ? "" : "  above");
    std::fflush(stdout);
}

std::string to_json(const result_file &all) {
    nlohmann::json rows = nlohmann::json::array();
    for (const result_row &row : all.rows) {
        nlohmann::json one = {
            {"layout", row.layout},     {"text", row.text},       {"direction", row.direction},
            {"bytes", row.bytes},       {"blocks", row.blocks},   {"table_bytes", row.table_bytes},
            {"misalign", row.misalign}, {"max_sms", row.max_sms}, {"verified", row.verified}};
        if (!row.error.empty()) {
            one["error"] = row.error;
        } else {
            one["time"] = times_of(row.time);
            one["plain_copy"] = times_of(row.plain_copy);
            one["ratio"] = row.ratio();
            if (row.touched != 0) {
                one["touched_bytes"] = row.touched;
                one["sector_copy"] = times_of(row.sector_copy);
                one["sector_ratio"] = row.sector_ratio();
            }
            one["first_use_us"] = row.first_use * us;
            if (row.listing != 0) {
                one["list_us"] = row.listing * us;
            }
            if (row.bar != 0) {
                one["bar"] = row.bar;
                one["within_bar"] = row.within_bar();
            }
        }
        rows.push_back(std::move(one));
    }
    nlohmann::json file = {{"tool", "nc_perftest"},  {"version", all.version},
                           {"mode", all.mode},       {"command", all.command},
                           {"date", all.date},       {"device", all.device},
                           {"memory", all.memory},   {"iterations", all.iterations},
                           {"batch", all.batch},     {"warm_up", all.warm_up},
                           {"rows", std::move(rows)}};
    return file.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string to_csv(const result_file &all) {
    std::string text =
        "layout,text,direction,bytes,blocks,misalign,max_sms,min_us,median_us,p95_us,"
        "copy_median_us,ratio,sector_copy_median_us,sector_ratio,bar,first_use_us,list_us,"
        "verified,error,table_bytes\n";
    for (const result_row &row : all.rows) {
        text += fmt::format(
            "{},{},{},{},{},{},{},{:.3f},{:.3f},{:.3f},{:.3f},{:.4f},{},{},{},{:.3f},{},{},{},{}\n",
            quoted(row.layout), quoted(row.text), row.direction, row.bytes, row.blocks,
            row.misalign, row.max_sms, row.time.least * us, row.time.median * us, row.time.p95 * us,
            row.plain_copy.median * us, row.ratio(), or_none(row.sector_copy.median * us, 3, ""),
            or_none(row.sector_ratio(), 4, ""), row.bar == 0 ? "" : fmt::format("{}", row.bar),
            row.first_use * us, or_none(row.listing * us, 3, ""), row.verified ? "yes" : "no",
            quoted(row.error), row.table_bytes);
    }
    return text;
}

}  // namespace cuda_nc::tools
