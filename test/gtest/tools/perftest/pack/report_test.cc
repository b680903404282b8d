#include <gtest/gtest.h>

#include "tools/perftest/pack/report.hpp"

namespace cuda_nc::tools {
namespace {

result_row packed_row() {
    result_row row;
    row.layout = "v";
    row.bytes = 8;
    row.time = summarise({3e-6});
    row.plain_copy = summarise({1e-6});
    return row;
}

TEST(pack_report, times_are_set_against_both_copies) {
    result_file file;
    file.rows = {packed_row(), packed_row()};
    file.rows[0].touched = 96;
    file.rows[0].sector_copy = summarise({2e-6});
    const nlohmann::json rows = nlohmann::json::parse(to_json(file))["rows"];
    EXPECT_DOUBLE_EQ(rows[0]["ratio"].get<double>(), 3);
    EXPECT_DOUBLE_EQ(rows[0]["sector_ratio"].get<double>(), 1.5);
    EXPECT_DOUBLE_EQ(rows[0]["sector_copy"]["median_us"].get<double>(), 2);
    EXPECT_EQ(rows[0]["touched_bytes"], 96);
    EXPECT_FALSE(rows[1].contains("sector_ratio") || rows[1].contains("sector_copy"));
    const std::string text = to_csv(file);
    EXPECT_NE(text.find(",ratio,sector_copy_median_us,sector_ratio,"), std::string::npos) << text;
    EXPECT_NE(text.find(",3.0000,2.000,1.5000,"), std::string::npos) << text;
    EXPECT_NE(text.find(",3.0000,,,"), std::string::npos) << text;
}

TEST(pack_report, files_tell_how_much_of_the_gpu_was_used) {
    result_file file;
    file.rows = {packed_row()};
    file.rows[0].max_sms = 8;
    EXPECT_EQ(nlohmann::json::parse(to_json(file))["rows"][0]["max_sms"], 8);
    const std::string text = to_csv(file);
    EXPECT_NE(text.find(",misalign,max_sms,min_us,"), std::string::npos) << text;
    EXPECT_NE(text.find(",0,8,3.000,"), std::string::npos) << text;
}

TEST(pack_report, files_tell_the_bytes_of_tables) {
    result_file file;
    file.rows = {packed_row()};
    file.rows[0].table_bytes = 4711;
    EXPECT_EQ(nlohmann::json::parse(to_json(file))["rows"][0]["table_bytes"], 4711);
    const std::string text = to_csv(file);
    EXPECT_NE(text.find(",table_bytes\n"), std::string::npos) << text;
    EXPECT_NE(text.find(",4711\n"), std::string::npos) << text;
}

}  // namespace
}  // namespace cuda_nc::tools
