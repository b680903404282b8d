// The catalogue: every layout that a tool, a benchmark or the demo knows by name, as text (`nc_info
// --help` lists the forms; a `*` makes a family, see sizes.hpp). A table alone, which needs nothing
// of the project: the demo program has its own reader for it, as an oracle of the product's.
//
// Names are unique within the sets of nc_perftest; the demo and the host benchmark have names of
// their own.
#pragma once

#include <cstddef>

namespace cuda_nc::tools {

struct layout_row {
    const char *name, *text;
    size_t misalign = 0;  // bytes by which the laid-out buffer is off its alignment
    // Time over that of a plain copy of the same bytes, at most; 0: no such bar.
    double pack_bar = 0, unpack_bar = 0;
};

// What the kernels are judged by.
constexpr layout_row standard_layouts[] = {
    {"sub-matrix-4000", "vector:4000,32000,64000", 0, 1.03, 1.04},
    {"sub-matrix-8000", "vector:8000,64000,128000", 0, 1.03, 1.04},
    {"triangle-2000", "triangle:2000,8", 0, 1.08, 1.07},
    {"triangle-4000", "triangle:4000,8", 0, 1.10, 1.12},
    {"transpose-1024", "transpose:1024,8", 0, 0.85, 0.85},
    {"transpose-4096", "transpose:4096,8", 0, 1.04, 1.04},
    {"vector-8B", "vector:32M,8,16", 0, 1.40, 2.2},
    {"vector-64B", "vector:4M,64,128", 0, 1.04, 1.15},
    {"vector-256B", "vector:1M,256,512", 0, 1.02, 1.03},
    {"vector-4KiB", "vector:64K,4K,8K", 0, 1.02, 1.03},
    {"vector-8B-stride-1000", "vector:2M,8,1000", 0, 6.5, 16},
    {"face-x", "subarray:8,512x512x512,512x512x3,0x0x0", 0, 1.8, 2.5},
    {"face-y", "subarray:8,512x512x512,512x3x512,0x0x0", 0, 1.1, 1.15},
    {"face-z", "subarray:8,512x512x512,3x512x512,0x0x0", 0, 1.1, 1.15},
    {"subarray-4D", "subarray:4,128x64x64x128,64x32x32x64,0x0x0x0", 0, 1.08, 1.10},
    {"random-8B", "indexed:1M,8,8,8,5", 0, 2.0, 2.8},
    {"random-64B", "indexed:1M,64,64,8,5", 0, 1.25, 1.35},
    {"random-1KiB", "indexed:256K,1K,1K,8,5", 0, 1.04, 1.06},
    {"hindexed-8..4096B", "indexed:64K,8,4096,8,5", 0, 1.10, 1.15},
    {"hindexed-1..4096B-bytes", "indexed:8K,1,4096,1,5", 0, 1.6, 1.8},
    {"struct-17B", "struct:24,986895,0:17", 0, 1.6, 1.6},
    {"vector-12B", "vector:1398101,12,20", 0, 1.3, 1.3},
    {"vector-12B-off-1", "vector:1398101,12,20", 1, 1.7, 1.8},
    {"vector-64B-off-1", "vector:256K,64,128", 1, 1.8, 2.2},
};

// Families for messages of any size.
constexpr layout_row message_layouts[] = {
    {"one-block", "vector:1,*,*"},
    {"vector-8", "vector:*,8,16"},
    {"vector-64", "vector:*,64,128"},
    {"vector-256", "vector:*,256,512"},
    {"vector-4K", "vector:*,4K,8K"},
    {"sub-matrix", "vector:*,8*,16*"},
    {"triangle", "triangle:*,8"},
    {"transpose", "transpose:*,8"},
    {"plane-x", "subarray:8,*x*x32,*x*x3,0x0x3"},
    {"plane-y", "subarray:8,*x32x*,*x3x*,0x3x0"},
    {"plane-z", "subarray:8,32x*x*,3x*x*,3x0x0"},
    {"part-4D", "subarray:4,8*x4*x4*x8*,4*x2*x2*x4*,2*x*x*x2*"},
    {"struct", "struct:24,*,0:17"},
    {"random-8", "indexed:*,8,8,8,5"},
    {"random-64", "indexed:*,64,64,8,5"},
};

// Seconds on any machine.
constexpr layout_row small_layouts[] = {
    {"small-vector-8B", "vector:4K,8,16"},
    {"small-triangle", "triangle:100,8"},
    {"small-transpose", "transpose:64,8"},
    {"small-indexed", "indexed:1K,1,100,1,7"},
    {"small-off-1", "vector:1K,12,20", 1},
    {"small-64B-vector", "vector:8,8,16"},
    {"small-64B-struct", "struct:32,4,0:8,12:4,20:4"},
    {"small-64B-subarray", "subarray:8,4x4x4,2x2x2,1x1x1"},
    {"small-64B-indexed", "indexed:4,8,24,8,8"},
    {"small-1KiB-vector", "vector:128,8,16"},
    {"small-1KiB-struct", "struct:32,64,0:8,12:4,20:4"},
    {"small-1KiB-subarray", "subarray:8,16x8x8,8x4x4,4x2x2"},
    {"small-1KiB-indexed", "indexed:64,8,24,8,38"},
    {"small-16KiB-vector", "vector:2K,8,16"},
    {"small-16KiB-struct", "struct:32,1K,0:8,12:4,20:4"},
    {"small-16KiB-subarray", "subarray:8,32x32x16,16x16x8,8x8x4"},
    {"small-16KiB-indexed", "indexed:1K,8,24,8,1"},
    {"small-64KiB-vector", "vector:8K,8,16"},
    {"small-64KiB-struct", "struct:32,4K,0:8,12:4,20:4"},
    {"small-64KiB-subarray", "subarray:8,64x32x32,32x16x16,16x8x8"},
    {"small-64KiB-indexed", "indexed:4K,8,24,8,131"},
};

// bench/mpi_layouts, the demo: about 16 MiB each.
constexpr layout_row demo_layouts[] = {
    {"contiguous", "vector:1,16M,16M"},
    {"vector-8B", "vector:2M,8,16"},
    {"vector-64B", "vector:256K,64,128"},
    {"vector-256B", "vector:64K,256,512"},
    {"vector-4KiB", "vector:4K,4K,8K"},
    {"sub-matrix", "subarray:8,2048x2048,1448x1448,300x300"},
    {"triangle", "triangle:2048,8"},
    {"transpose", "transpose:1448,8"},
    {"face-x", "subarray:8,256x256x256,256x256x3,0x0x3"},
    {"face-y", "subarray:8,256x256x256,256x3x256,0x3x0"},
    {"face-z", "subarray:8,256x256x256,3x256x256,3x0x0"},
    {"subarray-4D", "subarray:4,128x64x64x128,64x32x32x64,32x16x16x32"},
    {"struct", "struct:24,986895,0:17"},
    {"random-8B", "indexed:256K,8,8,8,12345"},
    {"random-64B", "indexed:128K,64,64,8,12345"},
};

// bench/host_pack_bench and bench/mpi_pack_bench, as large as they are asked for.
constexpr layout_row host_layouts[] = {
    {"vector_8", "vector:*,8,16"},
    {"vector_16", "vector:*,16,32"},
    {"vector_64", "vector:*,64,128"},
    {"vector_128", "vector:*,128,256"},
    {"vector_256", "vector:*,256,512"},
    {"vector_1024", "vector:*,1024,2048"},
    {"vector_4096", "vector:*,4096,8192"},
    {"vector_8_stride_64", "vector:*,8,64"},
    {"face_yz", "subarray:8,256x256x256,256x256x1,0x0x0"},
    {"face_yz_4", "subarray:8,256x256x256,256x256x4,0x0x0"},
    {"face_xz", "subarray:8,256x256x256,256x1x256,0x0x0"},
    {"inner_cube", "subarray:8,256x256x256,128x128x128,0x0x0"},
    {"subarray_4d", "nest:48,10,96,12,1920,*,46080"},
    {"subarray_4d_256", "nest:256,16,512,32,32768,*,2097152"},
    {"struct_d_2i_c", "struct:24,*,0:17"},
    {"struct_d_i_2f_c", "struct:40,*,0:8,12:4,20:8,31:1"},
    {"struct_8_holes", "struct:88,*,0:4,8:4,16:4,24:4,32:8,48:8,60:2,64:16"},
    {"transpose_8", "transpose:*,8"},
    {"transpose_4", "transpose:*,4"},
    {"transpose_16", "transpose:*,16"},
    {"triangle", "triangle:*,8"},
    {"random_8", "indexed:*,8,8,8,7"},
    {"random_16", "indexed:*,16,16,8,7"},
    {"random_64", "indexed:*,64,64,8,7"},
    {"random_256", "indexed:*,256,256,8,7"},
    {"random_8_120", "indexed:*,8,120,8,7"},
    {"random_1_200", "indexed:*,1,200,1,7"},
};

// The same in ascending order of their blocks' displacements.
constexpr layout_row ascending_host_layouts[] = {
    {"ascending_8_120", "indexed:*,8,120,8,7"},
    {"ascending_8", "indexed:*,8,8,8,7"},
};

}  // namespace cuda_nc::tools
