// Sources of the parameters: Schneider, Gerstenberger, Hoefler: "Micro-applications for
// communication data access patterns and MPI datatypes" (EuroMPI 2012) and its DDTBench, whose
// names these are; Pearson: "Movement and placement of non-contiguous data in distributed GPU
// computing" (2021) for Astaroth; Kwon et al.: "Efficient memory management for large language
// model serving with PagedAttention" (SOSP 2023) for paged key-value caches.
//
// Index lists that the benchmarks read from runs of the applications are lists of random order
// here.
#include "tools/perftest/layouts/applications.hpp"

#include <fmt/core.h>

namespace cuda_nc::tools {
namespace {

std::string join(const std::vector<std::string> &parts) {
    std::string text = "parts:";
    for (const std::string &part : parts) {
        text += (text.back() == ':' ? "" : ";") + part;
    }
    return text;
}

// Halo of 4 two-dimensional, 3 three-dimensional and 2 four-dimensional arrays of float (of the
// last dimension's 2 values one is sent), one behind the other, 2x2 processes of case em_b_wave: i
// -4..27, k 1..65, j 34..85. Sent are i_size from i_start on, all k, j_size from j_start on.
std::string wrf(int i_start, int i_size, int j_start, int j_size) {
    constexpr uint64_t flat = 32 * 52 * 4, solid = flat * 65;
    uint64_t at = 0;
    std::vector<std::string> parts;
    for (int array = 0; array < 4; ++array, at += flat) {
        parts.push_back(
            fmt::format("{}=subarray:4,52x32,{}x{},{}x{}", at, j_size, i_size, j_start, i_start));
    }
    auto add_solid = [&] {
        parts.push_back(fmt::format("{}=subarray:4,52x65x32,{}x65x{},{}x0x{}", at, j_size, i_size,
                                    j_start, i_start));
        at += solid;
    };
    for (int array = 0; array < 3; ++array) {
        add_solid();
    }
    for (int array = 0; array < 2; ++array) {
        at += solid;  // the value that stays
        add_solid();
    }
    return join(parts);
}

// `atoms` of them out of an array of three doubles for each, and of arrays of one.
std::string lammps(uint64_t atoms, int single_arrays) {
    std::vector<std::string> parts = {fmt::format("0=indexed:{},24,24,8,7", atoms)};
    uint64_t at = atoms * 48;
    for (int array = 0; array < single_arrays; ++array, at += atoms * 16) {
        parts.push_back(fmt::format("{}=indexed:{},8,8,8,7", at, atoms));
    }
    return join(parts);
}

// 8 quantities of double, each in an array of its own: 256^3 and a radius of 3 around.
std::string astaroth(const std::string &sizes, const std::string &starts) {
    constexpr uint64_t array = uint64_t(262) * 262 * 262 * 8;
    std::vector<std::string> parts;
    for (uint64_t quantity = 0; quantity < 8; ++quantity) {
        parts.push_back(
            fmt::format("{}=subarray:8,262x262x262,{},{}", quantity * array, sizes, starts));
    }
    return join(parts);
}

}  // namespace

std::vector<named_layout> application_layouts() {
    return {
        {"WRF_x", wrf(22, 3, 4, 44), 0, {}},
        {"WRF_y", wrf(5, 23, 7, 3), 0, {}},
        // 16^4 lattice, vectors of 3 complex numbers
        {"MILC_su3_zd", "vector:32,3072,49152", 0, {}},
        {"NAS_LU_x", "vector:1,40800,40800", 0, {}},
        {"NAS_LU_y", "vector:1020,40,40880", 0, {}},
        {"NAS_MG_x", "subarray:8,258x258x514,256x256x1,1x1x1", 0, {}},
        {"NAS_MG_y", "subarray:8,258x258x514,256x1x512,1x1x1", 0, {}},
        {"NAS_MG_z", "subarray:8,258x258x514,1x256x512,1x1x1", 0, {}},
        {"LAMMPS_full", lammps(3062, 5), 0, {}},
        {"LAMMPS_atomic", lammps(243, 3), 0, {}},
        {"SPECFEM3D_oc", "indexed:3225,4,4,4,7", 0, {}},
        {"SPECFEM3D_cm", "parts:0=indexed:11797,12,12,4,7;283128=indexed:3009,12,12,4,7", 0, {}},
        {"SPECFEM3D_mt", "vector:7600,12,24", 0, {}},
        // 1024^2 complex numbers on 4 processes: sent by columns, received by rows
        {"FFT2_send", "nest:16,256,16384,256,16", 0, {}},
        {"FFT2_receive", "vector:256,4096,16384", 0, {}},
        {"Astaroth_x", astaroth("256x256x3", "3x3x3"), 0, {}},
        {"Astaroth_y", astaroth("256x3x256", "3x3x3"), 0, {}},
        {"Astaroth_z", astaroth("3x256x256", "3x3x3"), 0, {}},
        {"Astaroth_edge", astaroth("256x3x3", "3x3x3"), 0, {}},
        {"Astaroth_corner", astaroth("3x3x3", "3x3x3"), 0, {}},
        // 16 MiB of pages from anywhere in a pool of 32 MiB
        {"KV_cache_4K", "indexed:4K,4K,4K,4K,5", 0, {}},
        {"KV_cache_16K", "indexed:1K,16K,16K,16K,5", 0, {}},
        {"KV_cache_64K", "indexed:256,64K,64K,64K,5", 0, {}},
    };
}

}  // namespace cuda_nc::tools
