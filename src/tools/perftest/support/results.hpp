// What the result files of all modes have in common.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "tools/perftest/support/statistics.hpp"

namespace cuda_nc::tools {

// A summary of seconds, in microseconds.
nlohmann::json times_of(const summary &s);

// For CSV: in quotation marks, those within doubled.
std::string quoted(const std::string &text);

// "2026-11-21T08:00:00Z"
std::string now();

// Replaces the file. Throws run_error.
void save(const std::string &path, const std::string &text);

// Throws run_error where save() would; call it before a long measurement. Leaves no file behind.
// Does nothing where `path` is empty.
void check_writable(const std::string &path);

}  // namespace cuda_nc::tools
