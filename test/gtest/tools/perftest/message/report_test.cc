#include "tools/perftest/message/report.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace cuda_nc::tools {
namespace {

TEST(message_report, csv_has_a_line_a_row_and_quotes_texts) {
    message_row good, bad;
    good.test = "latency";
    good.layout = "a,\"b\"";
    good.bytes = 8;
    good.time = summarise({1e-6, 2e-6, 3e-6});
    good.contiguous = summarise({1e-6});
    good.verified = true;
    bad.error = "WRONG";
    const std::string text = message_csv({to_json(good), to_json(bad)});
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3);
    EXPECT_NE(text.find("\"a,\"\"b\"\"\""), std::string::npos) << text;
    EXPECT_NE(text.find(",2.0000,"), std::string::npos) << text;
    EXPECT_NE(text.find("\"WRONG\""), std::string::npos) << text;
    EXPECT_DOUBLE_EQ(to_json(good)["ratio"].get<double>(), 2);
}

}  // namespace
}  // namespace cuda_nc::tools
