#include "tools/perftest/layouts/catalogue.hpp"

#include <map>

#include "tools/perftest/layouts/applications.hpp"
#include "tools/perftest/support/run_error.hpp"
#include "ucs/layout/layout_spec.hpp"

namespace cuda_nc::tools {
namespace {

const std::map<std::string, std::vector<named_layout>> &sets() {
    static const std::map<std::string, std::vector<named_layout>> all = {
        {"standard",
         {
             {"sub-matrix-4000", "vector:4000,32000,64000", 0, {1.03, 1.04}},
             {"sub-matrix-8000", "vector:8000,64000,128000", 0, {1.03, 1.04}},
             {"triangle-2000", "triangle:2000,8", 0, {1.08, 1.07}},
             {"triangle-4000", "triangle:4000,8", 0, {1.10, 1.12}},
             {"transpose-1024", "transpose:1024,8", 0, {0.85, 0.85}},
             {"transpose-4096", "transpose:4096,8", 0, {1.04, 1.04}},
             {"vector-8B", "vector:32M,8,16", 0, {1.40, 2.2}},
             {"vector-64B", "vector:4M,64,128", 0, {1.04, 1.15}},
             {"vector-256B", "vector:1M,256,512", 0, {1.02, 1.03}},
             {"vector-4KiB", "vector:64K,4K,8K", 0, {1.02, 1.03}},
             {"vector-8B-stride-1000", "vector:2M,8,1000", 0, {6.5, 16}},
             {"face-x", "subarray:8,512x512x512,512x512x3,0x0x0", 0, {1.8, 2.5}},
             {"face-y", "subarray:8,512x512x512,512x3x512,0x0x0", 0, {1.1, 1.15}},
             {"face-z", "subarray:8,512x512x512,3x512x512,0x0x0", 0, {1.1, 1.15}},
             {"subarray-4D", "subarray:4,128x64x64x128,64x32x32x64,0x0x0x0", 0, {1.08, 1.10}},
             {"random-8B", "indexed:1M,8,8,8,5", 0, {2.0, 2.8}},
             {"random-64B", "indexed:1M,64,64,8,5", 0, {1.25, 1.35}},
             {"random-1KiB", "indexed:256K,1K,1K,8,5", 0, {1.04, 1.06}},
             {"hindexed-8..4096B", "indexed:64K,8,4096,8,5", 0, {1.10, 1.15}},
             {"hindexed-1..4096B-bytes", "indexed:8K,1,4096,1,5", 0, {1.6, 1.8}},
             {"struct-17B", "struct:24,986895,0:17", 0, {1.6, 1.6}},
             {"vector-12B", "vector:1398101,12,20", 0, {1.3, 1.3}},
             {"vector-12B-off-1", "vector:1398101,12,20", 1, {1.7, 1.8}},
             {"vector-64B-off-1", "vector:256K,64,128", 1, {1.8, 2.2}},
         }},
        {"messages",
         {
             {"one-block", "vector:1,*,*", 0, {}},
             {"vector-8", "vector:*,8,16", 0, {}},
             {"vector-64", "vector:*,64,128", 0, {}},
             {"vector-4K", "vector:*,4K,8K", 0, {}},
             {"sub-matrix", "vector:*,8*,16*", 0, {}},
             {"triangle", "triangle:*,8", 0, {}},
             {"transpose", "transpose:*,8", 0, {}},
             {"plane-x", "subarray:8,*x*x32,*x*x3,0x0x3", 0, {}},
             {"plane-y", "subarray:8,*x32x*,*x3x*,0x3x0", 0, {}},
             {"plane-z", "subarray:8,32x*x*,3x*x*,3x0x0", 0, {}},
         }},
        {"applications", application_layouts()},
        {"small",
         {
             {"small-vector-8B", "vector:4K,8,16", 0, {}},
             {"small-triangle", "triangle:100,8", 0, {}},
             {"small-transpose", "transpose:64,8", 0, {}},
             {"small-indexed", "indexed:1K,1,100,1,7", 0, {}},
             {"small-off-1", "vector:1K,12,20", 1, {}},
             {"small-64B-vector", "vector:8,8,16", 0, {}},
             {"small-64B-struct", "struct:32,4,0:8,12:4,20:4", 0, {}},
             {"small-64B-subarray", "subarray:8,4x4x4,2x2x2,1x1x1", 0, {}},
             {"small-64B-indexed", "indexed:4,8,24,8,8", 0, {}},
             {"small-1KiB-vector", "vector:128,8,16", 0, {}},
             {"small-1KiB-struct", "struct:32,64,0:8,12:4,20:4", 0, {}},
             {"small-1KiB-subarray", "subarray:8,16x8x8,8x4x4,4x2x2", 0, {}},
             {"small-1KiB-indexed", "indexed:64,8,24,8,38", 0, {}},
             {"small-16KiB-vector", "vector:2K,8,16", 0, {}},
             {"small-16KiB-struct", "struct:32,1K,0:8,12:4,20:4", 0, {}},
             {"small-16KiB-subarray", "subarray:8,32x32x16,16x16x8,8x8x4", 0, {}},
             {"small-16KiB-indexed", "indexed:1K,8,24,8,1", 0, {}},
             {"small-64KiB-vector", "vector:8K,8,16", 0, {}},
             {"small-64KiB-struct", "struct:32,4K,0:8,12:4,20:4", 0, {}},
             {"small-64KiB-subarray", "subarray:8,64x32x32,32x16x16,16x8x8", 0, {}},
             {"small-64KiB-indexed", "indexed:4K,8,24,8,131", 0, {}},
         }},
    };
    return all;
}

}  // namespace

const std::vector<named_layout> *find_set(const std::string &name) {
    auto found = sets().find(name);
    return found == sets().end() ? nullptr : &found->second;
}

std::vector<std::string> set_names() {
    std::vector<std::string> names;
    for (const auto &one : sets()) {
        names.push_back(one.first);
    }
    return names;
}

std::optional<named_layout> find_layout(const std::string &name_or_text) {
    for (const auto &set : sets()) {
        for (const named_layout &one : set.second) {
            if (one.name == name_or_text) {
                return one;
            }
        }
    }
    if (name_or_text.find(':') == std::string::npos) {
        return std::nullopt;
    }
    return named_layout{name_or_text, name_or_text, 0, {}};
}

layout_ref layout_of(const std::string &text) {
    std::string error;
    layout_ref what = parse_layout(text, &error);
    if (what == nullptr) {
        throw run_error(error);
    }
    return what;
}

}  // namespace cuda_nc::tools
