#include "tools/perftest/tune/rule_trials.hpp"

#include <list>

#include <fmt/core.h>

namespace cuda_nc::tools {
namespace {

using gpu::kernel_rules;
using model::family;

// Points keep no text of their own.
const char *kept(std::string text) {
    static std::list<std::string> all;
    return all.emplace_back(std::move(text)).c_str();
}

// Blocks of `block` bytes, an odd multiple of `word`, that are aligned to words and no better.
tune_point vector_point(uint32_t word, uint32_t block) {
    return {family::strided,
            static_cast<uint8_t>(__builtin_ctz(word)),
            block,
            kept(fmt::format("vector:*,{},{}", block, 2 * block + word)),
            0,
            3};
}
tune_point list_point(uint32_t word, uint32_t block) {
    return {family::listed,
            static_cast<uint8_t>(__builtin_ctz(word)),
            block,
            kept(fmt::format("indexed:*,{0},{0},{1},1", block, word)),
            0,
            3};
}
tune_point matrix_point(uint32_t word, uint32_t block) {
    const uint32_t row = 64, pitch = 2 * block + word;
    return {family::strided,
            static_cast<uint8_t>(__builtin_ctz(word)),
            row * block,
            kept(fmt::format("nest:{},{},{},*,{}", block, row, pitch, row * pitch + word)),
            0,
            3};
}

// Blocks between the values that are tried, so that each value decides about other ones.
void add_limits(uint32_t word, uint32_t kernel_rules::*pack, std::vector<uint32_t> pack_values,
                const std::vector<uint32_t> &pack_blocks, uint32_t kernel_rules::*unpack,
                uint32_t kernel_rules::*vector, std::vector<rule_group> *all) {
    const uint32_t usual_unpack = gpu::usual_rules.*unpack;
    const uint32_t usual_vector = gpu::usual_rules.*vector;
    auto around = [](uint32_t usual) {
        return std::vector<uint32_t>{usual / 4, usual / 2, usual * 2, usual * 4};
    };
    // An odd number of words, a little less than each value or the usual one.
    auto blocks = [&](uint32_t usual) {
        return std::vector<uint32_t>{usual / 2 - word, usual - word, usual * 2 - word,
                                     usual * 4 - word};
    };
    rule_group packing{{}, {{pack, std::move(pack_values)}}};
    for (uint32_t block : pack_blocks) {
        packing.points.push_back(vector_point(word, block));
        packing.points.push_back(list_point(word, block));
    }
    all->push_back(std::move(packing));
    rule_group lists{{}, {{unpack, around(usual_unpack)}}};
    for (uint32_t block : blocks(usual_unpack)) {
        lists.points.push_back(list_point(word, block));
        lists.points.push_back(matrix_point(word, block));
    }
    all->push_back(std::move(lists));
    rule_group vectors{{}, {{vector, around(usual_vector)}}};
    for (uint32_t block : blocks(usual_vector)) {
        vectors.points.push_back(vector_point(word, block));
    }
    all->push_back(std::move(vectors));
}

std::vector<rule_group> make() {
    using r = kernel_rules;
    std::vector<rule_group> all = {
        // Whole words.
        {{{family::strided, 3, 8, "vector:*,8,16", 0, 3},
          {family::strided, 4, 64, "vector:*,64,128", 0, 3},
          {family::strided, 4, 4096, "vector:*,4K,8K", 0, 2},
          {family::strided, 2, 4, "vector:*,4,8", 0, 3},
          {family::strided, 3, 8 * 64, "nest:8,64,16,*,1032", 0, 3},
          {family::sparse, 3, 8, "vector:*,8,1000", 0, 9},
          {family::listed, 3, 8, "indexed:*,8,8,8,1", 0, 3.5},
          {family::listed, 4, 64, "indexed:*,64,64,16,1", 0, 2.1}},
         {{&r::word_threads, {128, 512, 1024}},
          {&r::pack_deep, {1 << 3}, true},
          {&r::pack_deep, {1 << 4}, true},
          {&r::unpack_deep, {1 << 3}, true},
          {&r::unpack_deep, {1 << 4}, true}}},
        {{{family::strided, 4, 64, "vector:*,64,128", 0, 3},
          {family::strided, 4, 32, "vector:*,32,64", 0, 3},
          {family::strided, 4, 16, "vector:*,16,32", 0, 3},
          {family::strided, 4, 64, "vector:*,64,256", 0, 3}},
         {{&r::half_line_reserve, {0, 30000, 42000, 48 << 10}}}},
        // Windows and pieces.
        {{{family::strided, 0, 12, "vector:*,12,20", 1, 3},
          {family::strided, 0, 256, "vector:*,256,512", 1, 2},
          {family::strided, 0, 4096, "vector:*,4K,8K", 1, 2},
          {family::strided, 2, 1020, "vector:*,1020,2044", 0, 2},
          {family::listed, 0, 250, "indexed:*,250,250,1,1", 0, 2.2}},
         {{&r::piece_threads, {128, 512, 1024}}}},
        // Units: lists that do not go by blocks.
        {{{family::uneven, 3, 4096, "indexed:*,8,8184,8,1", 0, 2},
          {family::uneven, 3, 8192, "indexed:*,8,16376,8,1", 0, 2},
          {family::uneven, 2, 2052, "indexed:*,4,4100,4,1", 0, 2},
          {family::uneven, 0, 30, "indexed:256K,1,60,1,1", 0, 2.5},
          {family::uneven, 0, 1024, "indexed:*,1,2047,1,1", 0, 2},
          {family::uneven, 0, 2048, "indexed:*,1,4095,1,1", 0, 2}},
         {{&r::unit_threads, {64, 256, 512}},
          {&r::unit_log2, {10, 11, 13, 14}},
          {&r::word_unit_log2, {10, 12, 13}},
          {&r::unit_blocks, {16, 31, 124}}}},
        // Lists by blocks or by units: of one size each, the one that is to be decided about.
        {{{family::uneven, 0, 50, "indexed:1K,1,100,1,7", 0, 2.5},
          {family::uneven, 0, 120, "indexed:16K,1,240,1,7", 0, 2.5},
          {family::uneven, 0, 120, "indexed:48K,1,240,1,7", 0, 2.5},
          {family::uneven, 0, 120, "indexed:128K,1,240,1,7", 0, 2.5}},
         {{&r::pack_blocks_1, {0, 1 << 20, 32 << 20}},
          {&r::unpack_blocks_1, {0, 1 << 20, 32 << 20}}}},
        {{{family::uneven, 3, 400, "triangle:100,8", 0, 2},
          {family::uneven, 3, 256, "indexed:32K,8,504,8,1", 0, 2.1},
          {family::uneven, 3, 256, "indexed:96K,8,504,8,1", 0, 2.1}},
         {{&r::pack_blocks_4, {0, 4 << 20, 1 << 30}},
          {&r::unpack_blocks_4, {0, 4 << 20, 16 << 20}}}},
        {{{family::transposed, 0, 1, "transpose:*,1", 0, 2},
          {family::transposed, 1, 2, "transpose:*,2", 0, 2},
          {family::transposed, 2, 4, "transpose:*,4", 0, 2},
          {family::transposed, 3, 8, "transpose:*,8", 0, 2},
          {family::transposed, 4, 16, "transpose:*,16", 0, 2}},
         {{&r::tile_width, {0, 4, 8}}}},
    };
    add_limits(1, &r::pack_words_1, {1, 2, 8, 16}, {2, 3, 7, 13}, &r::unpack_words_1,
               &r::vector_words_1, &all);
    add_limits(2, &r::pack_words_2, {4, 8, 32}, {6, 10, 22}, &r::unpack_words_2, &r::vector_words_2,
               &all);
    add_limits(4, &r::pack_words_4, {24, 48, 96, 384}, {36, 60, 124, 252}, &r::unpack_words_4,
               &r::vector_words_4, &all);
    return all;
}

}  // namespace

const std::vector<rule_group> &rule_groups() {
    static const std::vector<rule_group> all = make();
    return all;
}

}  // namespace cuda_nc::tools
