// The application layouts move the bytes that their benchmarks' parameters say, in as many blocks.
#include <gtest/gtest.h>

#include <map>

#include "tools/perftest/layouts/applications.hpp"
#include "ucs/layout/layout_spec.hpp"

namespace cuda_nc::tools {
namespace {

struct expectation {
    uint64_t bytes;
    uint64_t blocks;  // at most: neighbours may touch
};

// By the formulas of the benchmarks, from their parameters.
std::map<std::string, expectation> expectations() {
    constexpr uint64_t real = 4, number = 8, complex = 16;
    const uint64_t wrf_x = 4 * (3 * 44) + (3 + 2) * (3 * 65 * 44);  // elements
    const uint64_t wrf_y = 4 * (23 * 3) + (3 + 2) * (23 * 65 * 3);
    return {
        {"WRF_x", {wrf_x * real, wrf_x / 3}},
        {"WRF_y", {wrf_y * real, wrf_y / 23}},
        {"MILC_su3_zd", {2 * 16 * (16 * 16 / 2) * 3 * 2 * real, 32}},
        {"NAS_LU_x", {5 * 1020 * number, 1}},
        {"NAS_LU_y", {5 * 1020 * number, 1020}},
        {"NAS_MG_x", {(258 - 2) * (258 - 2) * number, 256 * 256}},
        {"NAS_MG_y", {(514 - 2) * (258 - 2) * number, 256}},
        {"NAS_MG_z", {(514 - 2) * (258 - 2) * number, 256}},
        {"LAMMPS_full", {3062 * 8 * number, 6 * 3062}},
        {"LAMMPS_atomic", {243 * 6 * number, 4 * 243}},
        {"SPECFEM3D_oc", {3225 * real, 3225}},
        {"SPECFEM3D_cm", {(11797 + 3009) * 3 * real, 11797 + 3009}},
        {"SPECFEM3D_mt", {3 * 7600 * real, 7600}},
        {"FFT2_send", {1024 / 4 * 1024 / 4 * complex, 256 * 256}},
        {"FFT2_receive", {1024 / 4 * 1024 / 4 * complex, 256}},
        {"Astaroth_x", {8 * 256 * 256 * 3 * number, 8 * 256 * 256}},
        {"Astaroth_y", {8 * 256 * 256 * 3 * number, 8 * 256 * 3}},
        {"Astaroth_z", {8 * 256 * 256 * 3 * number, 8 * 256 * 3}},
        {"Astaroth_edge", {8 * 256 * 3 * 3 * number, 8 * 256 * 3}},
        {"Astaroth_corner", {8 * 27 * number, 8 * 9}},
        {"KV_cache_4K", {16 << 20, 4096}},
        {"KV_cache_16K", {16 << 20, 1024}},
        {"KV_cache_64K", {16 << 20, 256}},
    };
}

TEST(applications, move_what_their_parameters_say) {
    std::map<std::string, expectation> expected = expectations();
    for (const named_layout &one : application_layouts()) {
        std::string error;
        const layout_ref what = parse_layout(one.text, &error);
        ASSERT_NE(what, nullptr) << one.name << ": " << error;
        ASSERT_EQ(expected.count(one.name), 1u) << one.name;
        EXPECT_EQ(what->packed_size(), expected[one.name].bytes) << one.name;
        EXPECT_LE(what->total_blocks(), expected[one.name].blocks) << one.name;
        EXPECT_GE(what->total_blocks(), (expected[one.name].blocks + 2) / 3) << one.name;
        EXPECT_GE(what->upper_bound() - what->lower_bound(),
                  static_cast<int64_t>(expected[one.name].bytes))
            << one.name;
        expected.erase(one.name);
    }
    EXPECT_TRUE(expected.empty()) << expected.begin()->first;
}

TEST(applications, are_found_by_name) {
    EXPECT_TRUE(find_layout("WRF_x"));
    ASSERT_NE(find_set("applications"), nullptr);
    EXPECT_EQ(find_set("applications")->size(), application_layouts().size());
}

}  // namespace
}  // namespace cuda_nc::tools
