#include "ucs/model/predict.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "ucs/layout/layout_spec.hpp"

namespace cuda_nc::model {
namespace {

constexpr auto pack = gpu::direction::pack, unpack = gpu::direction::unpack;
constexpr unsigned sms = 132;

layout_ref make(const std::string &text) {
    std::string error;
    layout_ref made = parse_layout(text, &error);
    EXPECT_NE(made, nullptr) << text << ": " << error;
    return made;
}

gpu_profile h200() {
    gpu::device_properties p;
    p.name = "NVIDIA H200";
    p.compute_major = 9;
    p.l2_size = size_t(60) << 20;
    return default_gpu(p);
}

prediction predict(const std::string &text, gpu::direction dir, size_t misalign = 0,
                   packed_side where = packed_side::gpu) {
    return predict(h200(), sms, *make(text), dir, where, misalign);
}

struct recorded {
    const char *text;
    double pack, unpack;  // us
    size_t misalign;
};

// bench/results/2026-11-21-h200-nc_perftest.md
const recorded on_h200[] = {
    {"vector:4000,32000,64000", 62.7, 64.2, 0},
    {"vector:8000,64000,128000", 243.4, 249.1, 0},
    {"triangle:2000,8", 9.1, 8.9, 0},
    {"triangle:4000,8", 37.0, 40.3, 0},
    {"transpose:1024,8", 4.5, 4.4, 0},
    {"transpose:4096,8", 67.3, 67.4, 0},
    {"vector:32M,8,16", 186.3, 308.5, 0},
    {"vector:4M,64,128", 132.2, 149.3, 0},
    {"vector:1M,256,512", 128.1, 130.4, 0},
    {"vector:64K,4K,8K", 129.2, 131.1, 0},
    {"vector:2M,8,1000", 60.6, 133.1, 0},
    {"subarray:8,512x512x512,512x512x3,0x0x0", 6.7, 8.9, 0},
    {"subarray:8,512x512x512,512x3x512,0x0x0", 3.5, 3.6, 0},
    {"subarray:8,512x512x512,3x512x512,0x0x0", 3.5, 3.6, 0},
    {"subarray:4,128x64x64x128,64x32x32x64,0x0x0x0", 7.7, 7.6, 0},
    {"indexed:1M,8,8,8,5", 10.5, 16.7, 0},
    {"indexed:1M,64,64,8,5", 46.7, 57.8, 0},
    {"indexed:256K,1K,1K,8,5", 132.2, 138.5, 0},
    {"indexed:64K,8,4096,8,5", 74.0, 86.5, 0},
    {"indexed:8K,1,4096,1,5", 11.3, 13.4, 0},
    {"struct:24,986895,0:17", 11.6, 15.0, 0},
    {"vector:1398101,12,20", 10.9, 11.4, 0},
    {"vector:1398101,12,20", 12.4, 15.5, 1},
    {"vector:256K,64,128", 13.1, 20.5, 1},
};

// bench/results/2026-11-21-h200-h100-kernels.md
const recorded on_h100[] = {
    {"vector:4000,32000,64000", 90.3, 90.3, 0},
    {"vector:8000,64000,128000", 347.3, 347.3, 0},
    {"triangle:2000,8", 11.6, 12.8, 0},
    {"triangle:4000,8", 51.0, 53.9, 0},
    {"transpose:1024,8", 6.3, 5.8, 0},
    {"transpose:4096,8", 98.2, 95.5, 0},
    {"vector:32M,8,16", 266.5, 448.4, 0},
    {"vector:4M,64,128", 185.5, 214.3, 0},
    {"vector:1M,256,512", 181.9, 183.7, 0},
    {"vector:64K,4K,8K", 181.9, 183.7, 0},
    {"vector:2M,8,1000", 73.5, 151.8, 0},
    {"subarray:8,512x512x512,512x512x3,0x0x0", 7.8, 13.0, 0},
    {"subarray:8,512x512x512,512x3x512,0x0x0", 4.1, 4.2, 0},
    {"subarray:8,512x512x512,3x512x512,0x0x0", 4.0, 3.9, 0},
    {"subarray:4,128x64x64x128,64x32x32x64,0x0x0x0", 9.9, 9.5, 0},
    {"indexed:1M,8,8,8,5", 13.5, 19.8, 0},
    {"indexed:1M,64,64,8,5", 60.7, 72.7, 0},
    {"indexed:256K,1K,1K,8,5", 187.3, 187.3, 0},
    {"indexed:64K,8,4096,8,5", 104.2, 118.4, 0},
    {"indexed:8K,1,4096,1,5", 14.4, 16.0, 0},
    {"struct:24,986895,0:17", 15.3, 34.6, 0},
    {"vector:1398101,12,20", 16.8, 17.6, 0},
    {"vector:1398101,12,20", 17.2, 42.8, 1},
    {"vector:256K,64,128", 18.8, 50.9, 1},
};

template <size_t Rows>
size_t count_near(const gpu_profile &of, const recorded (&rows)[Rows]) {
    size_t near = 0;
    for (const recorded &one : rows) {
        const layout_ref what = make(one.text);
        for (auto dir : {pack, unpack}) {
            const double is = dir == pack ? one.pack : one.unpack;
            const double ratio =
                predict(of, sms, *what, dir, packed_side::gpu, one.misalign).each / is;
            near += ratio <= 1.25 && ratio >= 1 / 1.25;
            EXPECT_LT(std::fabs(std::log(ratio)), std::log(2.2))
                << one.text << (dir == pack ? " pack " : " unpack ") << ratio;
        }
    }
    return near;
}

TEST(model_predict, usual_figures_come_near_what_an_h200_did) {
    EXPECT_EQ(count_near(h200(), on_h200), 48u);
}

// Of this GPU only the bandwidth of copies is known, and its kernels were older ones.
TEST(model_predict, usual_figures_come_near_what_an_h100_did) {
    gpu::device_properties p;
    p.name = "NVIDIA H100 80GB HBM3";
    p.compute_major = 9;
    p.l2_size = size_t(50) << 20;
    EXPECT_GE(count_near(default_gpu(p), on_h100) * 10, 48u * 9);
}

TEST(model_predict, more_bytes_take_longer_whatever_the_layout) {
    for (const char *family : {"vector:%,8,16", "vector:%,8,1000", "vector:%,4K,8K",
                               "indexed:%,64,64,8,5", "indexed:%,8,512,8,5", "struct:24,%,0:17"}) {
        for (auto dir : {pack, unpack}) {
            double last = 0;
            for (uint64_t blocks = 64; blocks <= 64 << 10; blocks *= 4) {
                std::string text = family;
                text.replace(text.find('%'), 1, std::to_string(blocks));
                for (auto where : {packed_side::gpu, packed_side::pinned, packed_side::staged}) {
                    const prediction p = predict(text, dir, 0, where);
                    EXPECT_TRUE(std::isfinite(p.each) && p.each > 0 && p.single >= p.each) << text;
                }
                const prediction p = predict(text, dir);
                EXPECT_GT(p.single, last) << text;
                EXPECT_GE(p.each, h200().moves.call) << text;
                last = p.single;
            }
        }
    }
}

TEST(model_predict, shorter_sparser_and_wilder_blocks_take_longer) {
    for (auto dir : {pack, unpack}) {
        auto us = [&](const std::string &text, size_t off = 0) {
            return predict(text, dir, off).each;
        };
        EXPECT_GT(us("vector:2M,8,16"), us("vector:256K,64,128"));
        EXPECT_GT(us("vector:2M,8,100"), us("vector:2M,8,16"));
        EXPECT_GT(us("vector:2M,8,1000"), us("vector:2M,8,100"));
        EXPECT_GT(us("indexed:1M,8,8,8,5"), us("vector:1M,8,16"));
        EXPECT_GT(us("vector:256K,64,128", 1), us("vector:256K,64,128"));
        EXPECT_GT(predict("vector:64K,12,20", dir, 1, packed_side::pinned).single,
                  predict("vector:64K,12,20", dir, 1).single);
    }
}

TEST(model_predict, a_list_in_order_is_taken_for_strided) {
    std::string in_order = "struct:0,1", wild = "struct:0,1";
    for (int i = 0; i < 2000; ++i) {
        in_order += "," + std::to_string(i * 128 + i % 2 * 8) + ":64";
        wild += "," + std::to_string(i * 7919 % 2000 * 4096) + ":64";
    }
    EXPECT_LT(features_of(*make(in_order), 0).scattered, 0.1);
    EXPECT_GT(features_of(*make(wild), 0).scattered, 0.9);
    EXPECT_LT(predict(in_order, pack).rate, predict(wild, pack).rate);
}

TEST(model_predict, kernels_follow_the_profiles_rules) {
    gpu_profile of = h200();
    const layout_ref what = make("vector:1M,12,20");
    EXPECT_TRUE(plan_kernel(of, sms, *what, pack, 0, 0).words);
    of.rules.pack_words_4 = 11;
    EXPECT_FALSE(plan_kernel(of, sms, *what, pack, 0, 0).words);
    EXPECT_TRUE(plan_kernel(of, sms, *what, unpack, 0, 0).words);
}

TEST(model_predict, odd_layouts_have_finite_times) {
    for (const char *text : {"vector:1,1,1", "vector:1,3G,3G", "vector:3,8,-16", "vector:5,8,0",
                             "nest:1,2,-3,4,5,6,7", "vector:0,8,16", "indexed:2,1,1,1,1"}) {
        for (auto dir : {pack, unpack}) {
            const layout_ref what = make(text);
            const prediction p = predict(h200(), sms, *what, dir, packed_side::gpu, 3);
            EXPECT_TRUE(std::isfinite(p.each) && (p.each > 0 || what->packed_size() == 0)) << text;
            const prediction host = predict_host(default_host(), *what, dir, 3);
            EXPECT_TRUE(std::isfinite(host.each)) << text;
        }
    }
}

// bench/results/2026-11-22-h200-small-messages.md: 64 KiB, 1, 16 and 64 MiB
TEST(model_predict, messages_come_near_what_two_h200_did) {
    const struct {
        const char *texts[4];
        double us[4];
    } done[] = {
        {{"vector:8K,8,16", "vector:128K,8,16", "vector:2M,8,16", "vector:8M,8,16"},
         {16.0, 20.7, 72.7, 208.5}},
        {{"vector:1K,64,128", "vector:16K,64,128", "vector:256K,64,128", "vector:1M,64,128"},
         {14.8, 18.6, 65.7, 206.1}},
        {{"vector:16,4K,8K", "vector:256,4K,8K", "vector:4K,4K,8K", "vector:16K,4K,8K"},
         {14.9, 17.6, 60.4, 199.1}},
        {{"subarray:8,52x52x32,52x52x3,0x0x3", "subarray:8,209x209x32,209x209x3,0x0x3",
          "subarray:8,836x836x32,836x836x3,0x0x3", "subarray:8,1672x1672x32,1672x1672x3,0x0x3"},
         {15.0, 21.0, 83.2, 237.9}},
    };
    for (const auto &one : done) {
        for (int i = 0; i < 4; ++i) {
            const layout_ref what = make(one.texts[i]);
            const double us = predict_direct(h200(), sms, *what, 2.7, 0);
            EXPECT_NEAR(us / one.us[i], 1, 0.2) << one.texts[i];
        }
    }
}

TEST(model_predict, no_message_is_faster_than_its_kernels_or_its_link) {
    for (const char *text : {"vector:2M,8,1000", "indexed:1M,8,8,8,5", "vector:16K,4K,8K"}) {
        const layout_ref what = make(text);
        for (double link : {0.01, 2.7, 1000.0}) {
            const double us = predict_direct(h200(), sms, *what, link, 0);
            EXPECT_GE(us, predict(text, pack).single) << text;
            EXPECT_GE(us, predict(text, unpack).single) << text;
            EXPECT_GE(us, static_cast<double>(what->packed_size()) / (1 << 20) * link) << text;
        }
    }
}

TEST(model_predict, of_several_links_the_fastest_counts) {
    machine_profile machine;
    EXPECT_FALSE(fastest_link(machine, "a"));
    machine.links = {{"a", "b", 20}, {"a", "c", 3}, {"b", "a", 1}, {"a", "d", 5}};
    EXPECT_EQ(fastest_link(machine, "a"), 3);
    EXPECT_EQ(fastest_link(machine, "b"), 1);
    EXPECT_FALSE(fastest_link(machine, "c"));
}

}  // namespace
}  // namespace cuda_nc::model
