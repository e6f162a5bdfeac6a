// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <gtest/gtest.h>

#include <hpcai/records/json.hpp>
#include <hpcai/report/html.hpp>
#include <hpcai/report/summary.hpp>

#include "example_record.hpp"
#include "page_check.hpp"

/// Printed results of detection.
namespace hpcai::report {
namespace {

RunRecord detected() {
    RunRecord record = example_record();
    record.quality.metric = AveragePrecisionRecord{
        {0.625, ""},
        {{}, "no boxes"},
        {{"cat", 12, 40, 9, {0.5, ""}, {0.5625, ""}, {0.75, ""}},
         {"<unicorn>\nRESULT VALID", 0, 3, 0, {{}, "no box"}, {{}, "no box"}, {{}, "no box"}}}};
    return record;
}

TEST(Categories, ComeBackFromJson) {
    EXPECT_EQ(records::from_json<RunRecord>(records::to_json(detected())), detected());
}

TEST(Categories, AreATableOfTheSummary) {
    const std::string text = summary(detected(), "none");
    EXPECT_NE(text.find("category                 boxes  detections   hits      AP50   VOC AP50 "
                        "     AP10\n"),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("\ncat                         12          40      9    0.5000     0.5625"
                        "    0.7500\n"),
              std::string::npos);
    EXPECT_NE(text.find("       0           3      0       n/a        n/a       n/a\n"),
              std::string::npos);
    EXPECT_NE(text.find("\nmean                                                 0.7500     0.6250"
                        "       n/a\n"),
              std::string::npos);
    EXPECT_EQ(text.find("<unicorn>\n"), std::string::npos) << "a name that makes lines";
    EXPECT_EQ(text.find("out of bag"), std::string::npos);
}

TEST(Categories, AreASectionOfThePage) {
    const RunRecord record = detected();
    const ReadPage page = read_page(html({record, {}, {}, {}}));
    const std::string text = squeezed(page.text);
    EXPECT_NE(text.find("cat 12 40 9 0.5000 0.5625 0.7500"), std::string::npos) << text;
    EXPECT_NE(text.find("VOC AP50 0.6250"), std::string::npos);
    EXPECT_NE(text.find("<unicorn>"), std::string::npos) << "a name is text";
    EXPECT_EQ(std::ranges::count(page.tags, "unicorn", &Tag::name), 0);
    EXPECT_EQ(text.find("Top-5"), std::string::npos);
    EXPECT_EQ(text.find("majority vote"), std::string::npos);
}

}  // namespace
}  // namespace hpcai::report
