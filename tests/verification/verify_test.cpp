// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <hpcai/verification/verify.hpp>

namespace hpcai::verification {
namespace {

TEST(Junit, HasATestCaseForEachFileThatFailsWithItsFindings) {
    Verification verification;
    verification.files = {"config.yaml", "result.json"};
    verification.findings = {{"result.json", "name is \"<a>\""},
                             {"result.json", "must be 'b' & \xff\x01\xEF\xBF\xBF"},
                             {"groups/0/\"x\"", "is missing"}};
    EXPECT_EQ(to_junit("results/<\"a\">", verification, false),
              R"(<?xml version="1.0" encoding="UTF-8"?>
<testsuite name="hpcai500 verify results/&lt;&quot;a&quot;&gt;" tests="3" failures="2" errors="0">
<testcase classname="results/&lt;&quot;a&quot;&gt;" name="config.yaml"></testcase>
<testcase classname="results/&lt;&quot;a&quot;&gt;" name="groups/0/&quot;x&quot;"><failure>is missing
</failure></testcase>
<testcase classname="results/&lt;&quot;a&quot;&gt;" name="result.json"><failure>name is &quot;&lt;a&gt;&quot;
must be &#39;b&#39; &amp; )"
              "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"
              R"(
</failure></testcase>
</testsuite>
)");
}

TEST(Junit, HasNoFailureIfNothingIsFound) {
    Verification verification;
    verification.files = {"result.json"};
    const std::string xml = to_junit("a", verification, false);
    EXPECT_NE(xml.find("tests=\"1\" failures=\"0\""), std::string::npos) << xml;
    EXPECT_EQ(xml.find("<failure"), std::string::npos) << xml;
}

}  // namespace
}  // namespace hpcai::verification
