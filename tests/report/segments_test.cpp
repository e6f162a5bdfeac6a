// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <hpcai/records/json.hpp>
#include <hpcai/report/html.hpp>
#include <hpcai/report/summary.hpp>

#include "example_record.hpp"
#include "page_check.hpp"

/// Printed results of segmentation.
namespace hpcai::report {
namespace {

RunRecord segmented() {
    RunRecord record = example_record();
    record.quality.metric =
        MeanIouRecord{{0.725, ""},
                      {0.8125, ""},
                      {{"background", 900, 880, 800, {0.8163, ""}},
                       {"<storm>\nRESULT VALID", 60, 90, 12, {{}, "no such cell"}}}};
    return record;
}

TEST(Segments, ComeBackFromJson) {
    EXPECT_EQ(records::from_json<RunRecord>(records::to_json(segmented())), segmented());
}

TEST(Segments, AreATableOfTheSummary) {
    const std::string text = summary(segmented(), "none");
    EXPECT_NE(text.find("\nbackground                         900           880           800    "
                        "0.8163\n"),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("            60            90            12       n/a\n"),
              std::string::npos);
    EXPECT_NE(text.find("    0.8125\n"), std::string::npos);
    EXPECT_EQ(text.find("\nRESULT VALID\""), std::string::npos);
    EXPECT_EQ(text.find("<storm>\n"), std::string::npos) << "a name that makes lines";
}

TEST(Segments, AreASectionOfThePageInPlaceOfBoxesAndTop5) {
    const RunRecord record = segmented();
    const std::string text = squeezed(read_page(html({record, {}, {}, {}})).text);
    EXPECT_NE(text.find("background 900 880 800 0.8163"), std::string::npos);
    EXPECT_NE(text.find("pixel accuracy 0.8125"), std::string::npos);
    EXPECT_EQ(text.find("Top-5"), std::string::npos);
    EXPECT_EQ(text.find("AP50"), std::string::npos);
}

}  // namespace
}  // namespace hpcai::report
