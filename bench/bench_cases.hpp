// The layouts that the host benchmarks measure: a list of blocks repeated over dimensions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "ucs/layout/layout_view.hpp"

namespace cuda_nc::bench {

struct piece {
    int64_t displacement;
    uint64_t length;
};

struct bench_case {
    std::string name;
    std::vector<piece> list;
    std::vector<layout_dim> dims;  // the first varies fastest
};

inline std::vector<piece> random_pieces(uint64_t total, uint64_t least, uint64_t most,
                                        uint64_t align) {
    std::mt19937_64 random(7);
    std::vector<piece> list;
    for (uint64_t sum = 0; sum < total; sum += list.back().length) {
        list.push_back({0, least + random() % (most - least + 1) / align * align});
    }
    // distinct places in random order
    int64_t at = 0;
    std::vector<size_t> order(list.size());
    for (size_t i = 0; i < order.size(); ++i) {
        order[i] = i;
    }
    std::shuffle(order.begin(), order.end(), random);
    for (size_t i : order) {
        list[i].displacement = at;
        at += static_cast<int64_t>(list[i].length + (1 + random() % 4) * align);
    }
    return list;
}

// `total`: packed bytes of each case, about.
inline std::vector<bench_case> bench_cases(uint64_t total) {
    std::vector<bench_case> cases;
    for (int64_t length : {8, 16, 64, 128, 256, 1024, 4096}) {
        const uint64_t block = static_cast<uint64_t>(length);
        cases.push_back(
            {"vector_" + std::to_string(length), {{0, block}}, {{total / block, 2 * length}}});
    }
    cases.push_back({"vector_8_stride_64", {{0, 8}}, {{total / 8, 64}}});
    uint64_t side = 1;  // of a cube of doubles that holds 16 times `total`
    while (side * side * side * 8 < total * 16 && side < 256) {
        side *= 2;
    }
    const int64_t n = static_cast<int64_t>(side);
    cases.push_back({"face_yz", {{0, 8}}, {{side, n * 8}, {side, n * n * 8}}});
    cases.push_back({"face_yz_4", {{0, 32}}, {{side, n * 8}, {side, n * n * 8}}});
    cases.push_back({"face_xz", {{0, side * 8}}, {{side, n * n * 8}}});
    cases.push_back({"inner_cube", {{0, side * 4}}, {{side / 2, n * 8}, {side / 2, n * n * 8}}});
    cases.push_back(
        {"subarray_4d", {{0, 48}}, {{10, 96}, {12, 96 * 20}, {total / 48 / 120, 96 * 20 * 24}}});
    cases.push_back({"subarray_4d_256",
                     {{0, 256}},
                     {{16, 512}, {32, 512 * 64}, {total / 256 / 512, 512 * 64 * 64}}});
    cases.push_back({"struct_d_2i_c", {{0, 17}}, {{total / 17, 24}}});
    cases.push_back({"struct_d_i_2f_c", {{0, 8}, {12, 4}, {20, 8}, {31, 1}}, {{total / 21, 40}}});
    cases.push_back({"struct_8_holes",
                     {{0, 4}, {8, 4}, {16, 4}, {24, 4}, {32, 8}, {48, 8}, {60, 2}, {64, 16}},
                     {{total / 50, 88}}});
    uint64_t rows = 1;
    while ((rows + 1) * (rows + 1) * 8 <= total) {
        ++rows;
    }
    cases.push_back({"transpose_8", {{0, 8}}, {{rows, static_cast<int64_t>(rows) * 8}, {rows, 8}}});
    cases.push_back({"transpose_4", {{0, 4}}, {{rows, static_cast<int64_t>(rows) * 4}, {rows, 4}}});
    cases.push_back(
        {"transpose_16", {{0, 16}}, {{rows, static_cast<int64_t>(rows) * 16}, {rows, 16}}});
    std::vector<piece> triangle;
    for (uint64_t row = 0; row * row * 4 < total; ++row) {
        triangle.push_back({static_cast<int64_t>(row * (rows * 2) * 8), (row + 1) * 8});
    }
    cases.push_back({"triangle", triangle, {}});
    cases.push_back({"random_8", random_pieces(total, 8, 8, 8), {}});
    cases.push_back({"random_16", random_pieces(total, 16, 16, 8), {}});
    cases.push_back({"random_64", random_pieces(total, 64, 64, 8), {}});
    cases.push_back({"random_256", random_pieces(total, 256, 256, 8), {}});
    cases.push_back({"random_8_120", random_pieces(total, 8, 120, 8), {}});
    cases.push_back({"random_1_200", random_pieces(total, 1, 200, 1), {}});
    std::vector<piece> sorted = random_pieces(total, 8, 120, 8);
    std::sort(sorted.begin(), sorted.end(),
              [](const piece &a, const piece &b) { return a.displacement < b.displacement; });
    cases.push_back({"ascending_8_120", sorted, {}});
    sorted = random_pieces(total, 8, 8, 8);
    std::sort(sorted.begin(), sorted.end(),
              [](const piece &a, const piece &b) { return a.displacement < b.displacement; });
    cases.push_back({"ascending_8", sorted, {}});
    return cases;
}

}  // namespace cuda_nc::bench
