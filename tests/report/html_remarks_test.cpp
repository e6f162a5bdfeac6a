// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <hpcai/report/html.hpp>

#include "example_page.hpp"
#include "page_check.hpp"

namespace hpcai::report {
namespace {

TEST(Html, DrawsNoLearningCurveOfASingleStep) {
    const RunRecord record = example_record();
    const ReadPage page = read_page(html({record, {example_steps(1, 16), {}}, {}, {}}));
    EXPECT_TRUE(has(page, "There is no learning curve because each group has one step."));
    EXPECT_FALSE(has(page, "Training loss by step"));
}

TEST(Html, OmitsTopFiveWhereEveryAnswerIsAmongTheFirstFive) {
    RunRecord record = example_record();
    record.workload.classes = 6;
    EXPECT_TRUE(has(read_page(html(example_content(record))), "Top-5"));
    record.workload.classes = 5;
    EXPECT_FALSE(has(read_page(html(example_content(record))), "Top-5"));
}

TEST(Html, CallsSharesOfMeansOtherThanTheMediansOfTheSummary) {
    EXPECT_TRUE(has(read_page(html(example_content(example_record()))),
                    "(percent of the step; summary.txt has medians)"));
}

}  // namespace
}  // namespace hpcai::report
