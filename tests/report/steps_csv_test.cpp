// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include <gtest/gtest.h>

#include <hpcai/base/error.hpp>
#include <hpcai/report/csv.hpp>

namespace hpcai::report {
namespace {

const char* const kStepsHeader =
    "step,epoch,samples,end_seconds,learning_rate,loss,input_wait_seconds,forward_seconds,"
    "backward_seconds,communication_seconds,optimizer_seconds,other_seconds\n";

std::vector<StepRecord> two_steps() {
    return {{0, 0, 8, 0.1, 0.05, std::nan(""), {}},
            {1, 1, 8, 1.0 / 3, 0.1, 2.5, {0.001, 0.02, 0.04, 0.003, 0.004, 0.0}}};
}

std::string refusal_of_steps(const std::string& text) {
    try {
        steps_from_csv(text, "s.csv");
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::data);
        return error.what();
    }
    return "nothing was thrown";
}

TEST(StepsCsv, LeavesCellsEmptyWhereNothingWasMeasured) {
    EXPECT_EQ(steps_to_csv(two_steps()),
              kStepsHeader + std::string("0,0,8,0.1,0.05,,,,,,,\n"
                                         "1,1,8,0.3333333333333333,0.1,2.5,0.001,0.02,0.04,0.003,"
                                         "0.004,0\n"));
}

TEST(StepsCsv, BringsTheSameNumbersBack) {
    const std::vector<StepRecord> steps = steps_from_csv(steps_to_csv(two_steps()));
    ASSERT_EQ(steps.size(), 2u);
    EXPECT_TRUE(std::isnan(steps[0].loss));
    EXPECT_TRUE(std::isnan(steps[0].phases.other));
    EXPECT_EQ(steps[1].end_seconds, 1.0 / 3);
    EXPECT_EQ(steps[1].phases.communication, 0.003);
    EXPECT_EQ(steps_to_csv(steps), steps_to_csv(two_steps()));
    EXPECT_TRUE(steps_from_csv(kStepsHeader).empty());
}

TEST(StepsCsv, NamesTheLineAndColumnThatIsWrong) {
    const std::string good = kStepsHeader + std::string("0,0,8,0.1,0.05,,,,,,,\n");
    EXPECT_EQ(refusal_of_steps(good + "1,0,8,0.2,zero,,,,,,,\n"),
              "s.csv:3: learning_rate is \"zero\"; it must be a number");
    EXPECT_EQ(refusal_of_steps(good + "1,0,8,,0.1,,,,,,,\n"),
              "s.csv:3: end_seconds is \"\"; it must be a number");
    EXPECT_EQ(refusal_of_steps(good + "1,0,8,0.2,0.1,inf,,,,,,\n"),
              "s.csv:3: loss is \"inf\"; it must be a number or nothing");
    EXPECT_EQ(refusal_of_steps(good + "1,0,-8,0.2,0.1,,,,,,,\n"),
              "s.csv:3: samples is \"-8\"; it must be a whole number, 0 or more");
    EXPECT_EQ(refusal_of_steps(good + "1,0,8,0.2\n"), "s.csv:3: learning_rate is missing");
    EXPECT_EQ(refusal_of_steps(good + "1,0,8,0.2,0.1,,,,,,,,\n"),
              "s.csv:3: more cells than columns");
    EXPECT_EQ(refusal_of_steps(good + "2,0,8,0.2,0.1,,,,,,,\n"),
              "s.csv:3: step is \"2\"; it must be 1");
    EXPECT_EQ(refusal_of_steps(good + "1,2,8,0.2,0.1,,,,,,,\n"),
              "s.csv:3: epoch is \"2\"; it must be 0 or 0 + 1");
    EXPECT_EQ(refusal_of_steps(good + "1,0,8,0.05,0.1,,,,,,,\n"),
              "s.csv:3: end_seconds is \"0.05\"; it must be 0.1 or more");
    EXPECT_EQ(refusal_of_steps(good + "1,0,8,0.2"),
              "s.csv:3: the line has no newline; the file is truncated");
    EXPECT_NE(refusal_of_steps("step\n").find("s.csv:1: the header is \"step\""),
              std::string::npos);
    EXPECT_NE(refusal_of_steps("").find("s.csv: empty"), std::string::npos);
}

}  // namespace
}  // namespace hpcai::report
