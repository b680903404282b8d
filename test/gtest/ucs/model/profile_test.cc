#include "ucs/model/profile.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "ucs/model/profile_file.hpp"

namespace cuda_nc::model {
namespace {

constexpr auto pack = gpu::direction::pack, unpack = gpu::direction::unpack;

gpu::device_properties gpu_of(unsigned major, unsigned minor = 0, const char *name = "a GPU") {
    gpu::device_properties p;
    p.name = name;
    p.bus_id = "0000:1b:00.0";
    p.compute_major = major;
    p.compute_minor = minor;
    p.l2_size = size_t(50) << 20;
    return p;
}

machine_profile example() {
    machine_profile made;
    made.host = "somewhere";
    made.backend = "cuda";
    made.date = "2026-11-21T12:00:00Z";
    made.host_moves = default_host();
    made.gpus.push_back(default_gpu(gpu_of(9)));
    made.gpus[0].rules.unit_log2 = 11;
    made.links.push_back({"0000:1b:00.0", "0000:43:00.0", 2.7});
    return made;
}

std::string temporary(const std::string &name) {
    return testing::TempDir() + "cuda_nc_profile." + std::to_string(getpid()) + "." + name;
}

bool taken(const std::string &text, std::string *why_p = nullptr) {
    machine_profile read;
    std::string why;
    const bool good = parse_profile(text, &read, &why);
    EXPECT_EQ(good, why.empty()) << why;
    if (why_p != nullptr) {
        *why_p = why;
    }
    return good;
}

TEST(model_profile, what_is_written_is_read) {
    const std::string path = temporary("deep") + "/er/profile.json";
    std::string why;
    ASSERT_TRUE(write_profile(path, example(), &why)) << why;
    machine_profile read;
    bool exists = false;
    ASSERT_TRUE(read_profile(path, &read, &exists, &why)) << why;
    EXPECT_TRUE(exists && read.measured && read.gpus.at(0).measured);
    EXPECT_EQ(to_text(read), to_text(example()));
    // Again, over the first; no temporary file is left.
    machine_profile other = example();
    other.date = "later";
    ASSERT_TRUE(write_profile(path, other, &why)) << why;
    ASSERT_TRUE(read_profile(path, &read, &exists, &why)) << why;
    EXPECT_EQ(read.date, "later");
    EXPECT_EQ(unlink(path.c_str()), 0);
    EXPECT_EQ(rmdir(path.substr(0, path.rfind('/')).c_str()), 0);
    EXPECT_EQ(rmdir(temporary("deep").c_str()), 0);
}

TEST(model_profile, a_place_that_cannot_be_written_is_an_error) {
    std::string why;
    EXPECT_FALSE(write_profile("/proc/no/profile.json", example(), &why));
    EXPECT_FALSE(why.empty());
}

TEST(model_profile, a_missing_file_and_one_that_is_no_file_are_told_apart) {
    machine_profile read;
    bool exists = true;
    std::string why;
    EXPECT_FALSE(read_profile(temporary("none"), &read, &exists, &why));
    EXPECT_FALSE(exists);
    const std::string pipe = temporary("pipe");
    ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
    EXPECT_FALSE(read_profile(pipe, &read, &exists, &why));  // and does not wait for a writer
    EXPECT_TRUE(exists);
    EXPECT_EQ(why, "it is not a regular file");
    unlink(pipe.c_str());
    EXPECT_FALSE(read_profile("/dev/zero", &read, &exists, &why));
    EXPECT_FALSE(read_profile("/", &read, &exists, &why));
    const std::string large = temporary("large");
    std::ofstream(large) << std::string(3 << 20, ' ');
    EXPECT_FALSE(read_profile(large, &read, &exists, &why));
    EXPECT_EQ(why, "it is larger than any profile");
    unlink(large.c_str());
}

TEST(model_profile, hostile_texts_are_refused_with_a_sentence) {
    const std::string good = to_text(example());
    EXPECT_TRUE(taken(good));
    for (const char *text : {"", "{", "[]", "null", "3", "\"text\"", "{}", "{\"product\": 3}",
                             "{\"product\": \"other\"}", "\xff\xfe", "[[[[[[[["}) {
        EXPECT_FALSE(taken(text)) << text;
    }
    EXPECT_FALSE(taken(std::string(500000, '[')));
    EXPECT_FALSE(taken(std::string(100000, '[') + std::string(100000, ']')));
    std::string why;
    nlohmann::json one = nlohmann::json::parse(good);
    one["format"] = profile_format + 1;
    EXPECT_FALSE(taken(one.dump(), &why));
    EXPECT_EQ(why, "it is of another release");
}

// Every value in turn replaced by values that do not belong there.
TEST(model_profile, no_value_of_a_wrong_kind_or_range_is_taken) {
    const nlohmann::json good = nlohmann::json::parse(to_text(example()));
    const nlohmann::json flat = good.flatten();
    for (const auto &one : flat.items()) {
        const bool of_figure = one.key().find("/figures/") != std::string::npos;
        if (one.key() == "/units" ||
            (of_figure && one.key().find("/figures/3/") == std::string::npos)) {
            continue;  // one figure is enough
        }
        const nlohmann::json::json_pointer at(one.key());
        for (const nlohmann::json &bad :
             {nlohmann::json(-1), nlohmann::json(0.0), nlohmann::json(1e300), nlohmann::json(),
              nlohmann::json::array(), nlohmann::json::object(), nlohmann::json(true),
              nlohmann::json(std::string(5000, 'x'))}) {
            if (one.key().find("align_log2") != std::string::npos && bad == nlohmann::json(0.0)) {
                continue;
            }
            nlohmann::json changed = good;
            changed[at] = bad;
            EXPECT_FALSE(taken(changed.dump())) << one.key() << " = " << bad;
        }
        nlohmann::json parent = good;
        const std::string name = at.back();
        if (one.key().find("/rules/") != std::string::npos) {
            continue;
        }
        if (parent[at.parent_pointer()].is_object()) {
            parent[at.parent_pointer()].erase(name);
            EXPECT_FALSE(taken(parent.dump())) << one.key() << " is missing";
        }
    }
}

TEST(model_profile, rules_that_are_missing_are_the_usual_ones) {
    nlohmann::json all = nlohmann::json::parse(to_text(example()));
    machine_profile read;
    std::string why;
    ASSERT_TRUE(parse_profile(all.dump(), &read, &why)) << why;
    EXPECT_EQ(read.gpus.at(0).rules.unit_log2, 11u);
    EXPECT_TRUE(read.gpus[0].rules == example().gpus[0].rules);
    all["gpus"][0]["rules"].erase("unit_log2");
    all["gpus"][0]["rules"]["word_threads"] = 512;
    all["gpus"][0]["rules"]["of_a_later_release"] = 1;
    ASSERT_TRUE(parse_profile(all.dump(), &read, &why)) << why;
    EXPECT_EQ(read.gpus.at(0).rules.unit_log2, gpu::usual_rules.unit_log2);
    EXPECT_EQ(read.gpus[0].rules.word_threads, 512u);
    all["gpus"][0].erase("rules");
    ASSERT_TRUE(parse_profile(all.dump(), &read, &why)) << why;
    EXPECT_TRUE(read.gpus.at(0).rules == gpu::usual_rules);
}

TEST(model_profile, rules_out_of_their_range_are_refused) {
    const nlohmann::json good = nlohmann::json::parse(to_text(example()));
    for (const gpu::kernel_rule &one : gpu::all_kernel_rules) {
        nlohmann::json bad = {one.most + uint64_t{1}, (uint64_t{1} << 32) + one.least, 33.5, "33",
                              UINT64_MAX};
        if (one.least != 0) {
            bad.push_back(one.least - 1);
        }
        if (one.step != 1) {
            bad.push_back(one.least + 1);
        }
        if (one.power) {
            bad.push_back(one.least * 3);
        }
        for (const nlohmann::json &value : bad) {
            nlohmann::json changed = good;
            changed["gpus"][0]["rules"][one.name] = value;
            std::string why;
            EXPECT_FALSE(taken(changed.dump(), &why)) << one.name << " = " << value;
            EXPECT_EQ(why, std::string("its \"") + one.name + "\" is out of range");
        }
        for (uint32_t value : {one.least, one.most}) {
            nlohmann::json changed = good;
            changed["gpus"][0]["rules"][one.name] = value;
            EXPECT_TRUE(taken(changed.dump())) << one.name << " = " << value;
        }
    }
}

TEST(model_profile, no_cut_or_changed_text_does_harm) {
    const std::string good = to_text(example());
    const unsigned seed = std::random_device()();
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    machine_profile read;
    std::string why;
    for (int i = 0; i < 60; ++i) {
        const size_t cut = random() % (good.size() - 2);
        EXPECT_FALSE(parse_profile(good.substr(0, cut), &read, &why)) << cut;
        std::string changed = good;
        for (unsigned k = random() % 8 + 1; k != 0; --k) {
            changed[random() % changed.size()] = static_cast<char>(random());
        }
        machine_profile other;
        if (parse_profile(changed, &other, &why)) {  // harmless then: every number is one
            const double us = rate(other.gpus.empty() ? other.host_moves : other.gpus[0].moves,
                                   family::strided, pack, 3, 8, 1e6);
            EXPECT_TRUE(std::isfinite(us) && us > 0) << us;
        }
    }
}

TEST(model_profile, newer_generations_are_faster) {
    const unsigned majors[] = {7, 8, 9, 10};
    for (size_t i = 1; i < 4; ++i) {
        const gpu_profile older = default_gpu(gpu_of(majors[i - 1])),
                          newer = default_gpu(gpu_of(majors[i]));
        EXPECT_LT(newer.moves.far_copy, older.moves.far_copy);
        EXPECT_LT(rate(newer.moves, family::strided, pack, 3, 8, 1e9),
                  rate(older.moves, family::strided, pack, 3, 8, 1e9));
        EXPECT_LE(newer.down, older.down);
        EXPECT_LE(default_link(gpu_of(majors[i])), default_link(gpu_of(majors[i - 1])));
    }
    EXPECT_LT(default_gpu(gpu_of(9, 0, "NVIDIA H200")).moves.far_copy,
              default_gpu(gpu_of(9, 0, "NVIDIA H100 80GB HBM3")).moves.far_copy);
    // In between, older and newer than all: the nearest older one, or the oldest.
    EXPECT_EQ(default_gpu(gpu_of(8, 9)).down, default_gpu(gpu_of(8)).down);
    EXPECT_EQ(default_gpu(gpu_of(12)).down, default_gpu(gpu_of(10)).down);
    EXPECT_EQ(default_gpu(gpu_of(6)).down, default_gpu(gpu_of(7)).down);
    EXPECT_GT(default_gpu(gpu_of(0)).down, 0);
}

TEST(model_profile, rates_lie_between_the_figures) {
    moving by;
    by.cache_size = 1000000;
    by.near_copy = 1;
    by.far_copy = 2;
    by.figures = {{family::strided, pack, 3, 8, 4, 8}, {family::strided, pack, 3, 128, 1, 2}};
    const double near = 1000, far = 1e9;
    EXPECT_DOUBLE_EQ(rate(by, family::strided, pack, 3, 8, near), 4);
    EXPECT_DOUBLE_EQ(rate(by, family::strided, pack, 4, 8, far), 8);
    EXPECT_DOUBLE_EQ(rate(by, family::strided, pack, 3, 32, near), 2);
    EXPECT_DOUBLE_EQ(rate(by, family::strided, pack, 3, 1e6, near), 1);
    EXPECT_DOUBLE_EQ(rate(by, family::strided, pack, 3, 4, near), 8);  // twice as many blocks
    const double middle = rate(by, family::strided, pack, 3, 8, 1500000);
    EXPECT_GT(middle, 4);
    EXPECT_LT(middle, 8);
    // What was not measured: under the least alignment, by the strided family, by a plain copy.
    EXPECT_DOUBLE_EQ(rate(by, family::strided, pack, 0, 8, near), 4);
    EXPECT_DOUBLE_EQ(rate(by, family::listed, pack, 3, 8, near), 4);
    EXPECT_DOUBLE_EQ(rate(by, family::listed, unpack, 3, 8, near), 1);
}

}  // namespace
}  // namespace cuda_nc::model
