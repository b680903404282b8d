// hooks_probe (hooks/probe.c) in a process of its own, and what it is expected to print.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "hooks/fakes.hpp"
#include "hooks/process.hpp"

namespace cuda_nc::hooks::test {

inline const std::string libraries = BUILD_DIRECTORY "/.libs/";
inline const std::string shim = libraries + "libcuda_nc_preload.so";
inline const std::string module = libraries + "libuct_cudanc.so.0";
inline const std::string preload = "LD_PRELOAD=" + shim;

inline outcome probe(const std::string &environment, const std::string &before = "") {
    return run(environment,
               BUILD_DIRECTORY "/hooks_probe " + before + " " + fake_path("libfake_open_mpi.so"));
}

inline std::string served(const char *vector, const char *contiguous, const char *warning = "") {
    return std::string("vector ") + vector + "\ncontiguous " + contiguous + "\n" + warning +
           "liar original\nliar again original\nlive 0\n";
}

// The text without the lines that hold `warning`; *count_p: how many those were.
inline std::string without(const std::string &text, const std::string &warning, int *count_p) {
    std::string kept;
    *count_p = 0;
    for (size_t start = 0; start < text.size();) {
        size_t end = std::min(text.find('\n', start), text.size() - 1) + 1;
        std::string line = text.substr(start, end - start);
        if (line.find(warning) != std::string::npos) {
            ++*count_p;
        } else {
            kept += line;
        }
        start = end;
    }
    return kept;
}

// `warning` exactly once, and nothing else beside the expected lines.
inline void expect_served(const outcome &seen, const std::string &expected,
                          const std::string &warning) {
    int count = 0;
    EXPECT_EQ(seen.status, 0) << seen;
    EXPECT_EQ(without(seen.output, warning, &count), expected);
    EXPECT_EQ(count, 1) << seen;
}

inline const char *const liar_warning = "datatype liar is left to Open MPI's own operations";

}  // namespace cuda_nc::hooks::test
