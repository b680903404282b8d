#include "tools/perftest/compare/compare.hpp"

#include <algorithm>
#include <map>

#include <fmt/core.h>

#include "tools/perftest/support/run_error.hpp"

namespace cuda_nc::tools {
namespace {

using nlohmann::json;

// Microseconds, or a ratio.
struct measurement {
    double low = 0, median = 0, high = 0, least = 0;
};

std::string key_of(const json &row, const compare_options &options) {
    std::string key;
    for (const char *name : {"test", "layout", "direction", "transport", "bytes", "window",
                             "misalign", "max_sms", "ranks", "first", "second"}) {
        if (!row.contains(name) || (options.any_transport && std::string(name) == "transport")) {
            continue;
        }
        const json &value = row[name];
        const std::string text = value.is_string() ? value.get<std::string>()
                                 : value.is_number_float()
                                     ? fmt::format("{:g}", value.get<double>())
                                     : value.dump();
        if (text.empty() ||
            ((std::string(name) == "misalign" || std::string(name) == "max_sms") && text == "0") ||
            (std::string(name) == "window" && text == "1")) {
            continue;
        }
        const bool bare = std::string(name) == "test" || std::string(name) == "layout" ||
                          std::string(name) == "direction";
        key += (key.empty() ? "" : " ") + (bare ? text : fmt::format("{}={}", name, text));
    }
    return key;
}

// Files of the first release have no interval of the median: the whole spread stands for it.
bool read_summary(const json &row, const char *name, measurement *m_p) {
    if (!row.contains(name) || !row[name].is_object()) {
        return false;
    }
    const json &times = row[name];
    m_p->least = times.value("min_us", 0.0);
    m_p->median = times.value("median_us", 0.0);
    m_p->low = times.value("median_low_us", m_p->least);
    m_p->high = times.value("median_high_us", times.value("p95_us", m_p->median));
    return m_p->median > 0 && m_p->low > 0;
}

bool read_row(const json &row, const compare_options &options, measurement *m_p) {
    if (options.field != "relative") {
        return read_summary(row, options.field.c_str(), m_p);
    }
    measurement time, reference;
    if (!read_summary(row, "time", &time) || (!read_summary(row, "contiguous", &reference) &&
                                              !read_summary(row, "plain_copy", &reference))) {
        return false;
    }
    *m_p = {time.low / reference.high, time.median / reference.median, time.high / reference.low,
            reference.least > 0 ? time.least / reference.least : 0};
    return true;
}

// What is larger than the threshold, in the medians' intervals and in the least times, is real: a
// burst of other work on the machine moves the medians of one file, but not its least times.
void judge(const measurement &a, const measurement &b, double threshold, compared_row *row_p) {
    row_p->a_us = a.median;
    row_p->b_us = b.median;
    row_p->ratio = b.median / a.median;
    row_p->low = b.low / a.high;
    row_p->high = b.high / a.low;
    const double least = a.least > 0 && b.least > 0 ? b.least / a.least : row_p->ratio;
    if (row_p->ratio <= 1 + threshold && row_p->ratio >= 1 / (1 + threshold)) {
        row_p->is = verdict::same;
    } else if (row_p->low > 1 && least > 1 + threshold / 2) {
        row_p->is = verdict::slower;
    } else if (row_p->high < 1 && least < 1 / (1 + threshold / 2)) {
        row_p->is = verdict::faster;
    } else {
        row_p->is = verdict::unclear;
        row_p->remark = fmt::format("least times: {:.2f}", least);
    }
}

std::map<std::string, const json *> index(const json &file, const char *which,
                                          const compare_options &options,
                                          std::vector<std::string> *order_p) {
    if (!file.is_object() || !file.contains("rows") || !file["rows"].is_array()) {
        throw run_error(fmt::format("{} is not a result file of nc_perftest", which));
    }
    std::map<std::string, const json *> rows;
    for (const json &row : file["rows"]) {
        if (!row.is_object() || !row.contains("layout") || !row["layout"].is_string()) {
            throw run_error(
                fmt::format("{} is not a result file of nc_perftest: a row has no layout", which));
        }
        const std::string key = key_of(row, options);
        if (!rows.emplace(key, &row).second) {
            throw run_error(
                fmt::format("{} has two rows {}{}", which, key,
                            options.any_transport ? ", with and without transport" : ""));
        }
        order_p->push_back(key);
    }
    return rows;
}

std::string error_of(const json &row) {
    return row.value("error", std::string());
}

bool has_field(const json &file, const compare_options &options) {
    const json &rows = file["rows"];
    return std::any_of(rows.begin(), rows.end(), [&](const json &row) {
        measurement ignored;
        return read_row(row, options, &ignored);
    });
}

// Throws json::exception where a value is of another kind than nc_perftest writes.
std::vector<compared_row> compare_files(const json &a, const json &b,
                                        const compare_options &options) {
    std::vector<std::string> order, of_b;
    const auto in_a = index(a, "the first file", options, &order);
    const auto in_b = index(b, "the second file", options, &of_b);
    if (a.value("mode", "") != b.value("mode", "")) {
        throw run_error(fmt::format("the files are of different modes: {} and {}",
                                    a.value("mode", "unknown"), b.value("mode", "unknown")));
    }
    // (Files without any result have no time either: that is no fault of the field's.)
    if (options.field != "time" && !has_field(a, options) && !has_field(b, options)) {
        throw run_error(fmt::format("no row of these files has the field \"{}\"", options.field));
    }
    std::vector<compared_row> rows;
    for (const std::string &key : order) {
        compared_row row;
        row.key = key;
        const auto other = in_b.find(key);
        measurement old_one, new_one;
        const bool old_good = read_row(*in_a.at(key), options, &old_one);
        if (other == in_b.end()) {
            row.remark = "not in the second file";
        } else if (!read_row(*other->second, options, &new_one)) {
            row.remark = error_of(*other->second);
            // Neither file has a result: nothing was lost.
            row.is = old_good ? verdict::missing : verdict::same;
        } else if (!old_good) {
            row.is = verdict::added;
            row.remark = error_of(*in_a.at(key));
        } else {
            judge(old_one, new_one, options.threshold, &row);
        }
        rows.push_back(row);
    }
    for (const std::string &key : of_b) {
        if (in_a.count(key) == 0) {
            compared_row row;
            row.key = key;
            row.is = verdict::added;
            rows.push_back(row);
        }
    }
    return rows;
}

}  // namespace

const char *name_of(verdict what) noexcept {
    switch (what) {
        case verdict::same:
            return "same";
        case verdict::faster:
            return "faster";
        case verdict::slower:
            return "SLOWER";
        case verdict::unclear:
            return "unclear";
        case verdict::missing:
            return "MISSING";
        case verdict::added:
            return "added";
    }
    return "";
}

std::vector<compared_row> compare_results(const json &a, const json &b,
                                          const compare_options &options) try {
    return compare_files(a, b, options);
} catch (const json::exception &) {
    throw run_error("a value in these files has a type that nc_perftest does not write");
}

}  // namespace cuda_nc::tools
